cmake_minimum_required(VERSION 3.22)
# cmake -DTO=... -DSOURCE=... -DVERSION=... -DCOMPILER=... -DBUILD_TYPE=... -P Version.cmake
# Writes version_made.h; the file is touched only when something in it changed.
execute_process(COMMAND git -C ${SOURCE} describe --always --exclude=* --abbrev=12 --dirty=+changes
  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(COMMIT unknown)
endif()
file(CONFIGURE OUTPUT ${TO} @ONLY CONTENT
"/* made by cmake/Version.cmake; do not edit */
#define MOLSIEVE_VERSION \"@VERSION@\"
#define MOLSIEVE_COMMIT \"@COMMIT@\"
#define MOLSIEVE_COMPILER \"@COMPILER@\"
#define MOLSIEVE_BUILD_TYPE \"@BUILD_TYPE@\"
#define MOLSIEVE_SOURCE_DIR \"@SOURCE@\"
")
