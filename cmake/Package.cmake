# Packages: cpack -G DEB, RPM or TGZ in the build directory (scripts/packages-check builds and tries all three). Plugins that were built
# become part of the package and of what it depends on; -DMOLSIEVE_CUDA=OFF -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON leave them out.

# Whoever builds a package answers for it: MOLSIEVE_PACKAGER, else Debian's variables, else the author of commits here.
function(packager_find out)
  execute_process(COMMAND git config user.name OUTPUT_VARIABLE name OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  execute_process(COMMAND git config user.email OUTPUT_VARIABLE mail OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
                  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  if(DEFINED ENV{DEBEMAIL})
    set(name $ENV{DEBFULLNAME})
    set(mail $ENV{DEBEMAIL})
  endif()
  set(${out} "${name} <${mail}>" PARENT_SCOPE)
  if("${name}" STREQUAL "" OR "${mail}" STREQUAL "")
    set(${out} "nobody <root@localhost>" PARENT_SCOPE) # lintian refuses it
  endif()
endfunction()
packager_find(packager)
set(MOLSIEVE_PACKAGER "${packager}" CACHE STRING "The maintainer of packages: NAME <MAIL>")

set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_NAME molsieve)
set(CPACK_PACKAGE_VENDOR molsieve)
set(CPACK_PACKAGE_CONTACT "${MOLSIEVE_PACKAGER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "screens molecules: files in, ranked and queryable results out")
set(CPACK_PACKAGE_DESCRIPTION "Ranks libraries of small molecules by predicted properties, with an
error estimate for each. A run can be stopped at any moment and
continues with the same result, bit for bit.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
if(CMAKE_INSTALL_PREFIX MATCHES "^/opt")
  set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
endif()

# Three packages for Debian: the program, the C library, and what compiles with it. One .rpm and one archive have everything.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program library development)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(version "${PROJECT_VERSION}")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME molsieve)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "libxgboost0, sqlite3")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libmolsieve-predict0) # its SOVERSION
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "molsieve (= ${version})") # its worker, its models
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/packages/triggers)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libmolsieve-predict-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} (= ${version})")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "predicts properties of molecules, a library for C
Opens a model of molsieve and predicts SMILES, or atoms with positions,
with an error estimate for each.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "predicts properties of molecules, files for development
The header of the C library of molsieve, with files for pkg-config and
CMake.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/packages/stage.cmake)
set(CPACK_MOLSIEVE_SOURCE ${PROJECT_SOURCE_DIR}) # only variables of this kind reach the script

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE "Apache-2.0 AND GPL-2.0-only") # the program; the chemistry worker
set(CPACK_RPM_PACKAGE_GROUP Applications/Engineering)
set(CPACK_RPM_PACKAGE_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
set(CPACK_RPM_SPEC_MORE_DEFINE "%define packager ${MOLSIEVE_PACKAGER}")
set(CPACK_RPM_POST_INSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/cmake/packages/ldconfig.sh)
set(CPACK_RPM_POST_UNINSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/cmake/packages/ldconfig.sh)
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION
    /usr/share/man /usr/share/man/man1 /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh
    /usr/share/zsh/site-functions /usr/share/fish /usr/share/fish/vendor_completions.d /usr/share/modulefiles /usr/share/doc
    /usr/lib/pkgconfig /usr/lib/cmake /usr/include)
include(CPack)
