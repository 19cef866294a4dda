# One folder, one static library, one list of what it may use.
#
#   molsieve_room(chem SOURCES mol.c graph.c USES molsieve::base)
#   molsieve_test(graph unit/graph_test.c LABEL unit USES molsieve::chem)

add_library(molsieve_warnings INTERFACE)
add_library(molsieve::warnings ALIAS molsieve_warnings)
target_compile_options(molsieve_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wshadow;-Wvla;-Wstrict-prototypes;-Wmissing-prototypes>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>
  $<$<AND:$<BOOL:${MOLSIEVE_WERROR}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>)

function(molsieve_room name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;USES;PRIVATE_USES")
  add_library(molsieve_${name} STATIC ${arg_SOURCES})
  add_library(molsieve::${name} ALIAS molsieve_${name})
  target_include_directories(molsieve_${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
  target_link_libraries(molsieve_${name}
    PUBLIC ${arg_USES} PRIVATE molsieve::warnings ${arg_PRIVATE_USES})
endfunction()

# A test: a program of ours or a command. tests/watch.c runs it, and ends it after a minute in which it does nothing. The
# TIMEOUT of a test is for those that compute for ever; a busy machine may be twenty times slower than a quiet one.
function(molsieve_add_test name command)
  set_property(DIRECTORY PROPERTY PROGRAM_OF_${name} ${command})
  if(TARGET ${command})
    set(command $<TARGET_FILE:${command}>)
  endif()
  add_test(NAME ${name} COMMAND watch ${command} ${ARGN})
endfunction()

# A cmocka program; exit 77 means skipped, with a message that says why. Status 0 counts only after its last test (tests/ended.c).
# PARTS n: as n tests NAME.k, each the program with the words `k n`.
function(molsieve_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT;PARTS" "LABEL;USES")
  list(POP_FRONT arg_UNPARSED_ARGUMENTS source)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 1200)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${MOLSIEVE_PATIENCE}")
  add_executable(test_${name} ${source} $<TARGET_OBJECTS:cmocka_ended>)
  target_link_libraries(test_${name} PRIVATE ${arg_USES} molsieve::warnings PkgConfig::CMOCKA m)
  target_link_options(test_${name} PRIVATE -Wl,--wrap=_cmocka_run_group_tests)
  set(tests ${name})
  if(arg_PARTS)
    set(tests "")
    foreach(k RANGE 1 ${arg_PARTS})
      molsieve_add_test(${name}.${k} test_${name} ${k} ${arg_PARTS})
      list(APPEND tests ${name}.${k})
    endforeach()
  else()
    molsieve_add_test(${name} test_${name})
  endif()
  set_tests_properties(${tests} PROPERTIES LABELS "${arg_LABEL}" SKIP_RETURN_CODE 77
    TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "OMP_NUM_THREADS=1;OPENBLAS_NUM_THREADS=1")
endfunction()

# A shell or Python script run with MOLSIEVE=program; same skip rule.
function(molsieve_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "LABEL;ARGS")
  list(POP_FRONT arg_UNPARSED_ARGUMENTS script)
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 1200)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${MOLSIEVE_PATIENCE}")
  molsieve_add_test(${name} ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${arg_ARGS})
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABEL}" SKIP_RETURN_CODE 77 TIMEOUT ${arg_TIMEOUT}
    ENVIRONMENT "MOLSIEVE=$<TARGET_FILE:molsieve>;MOLSIEVE_SOURCE=${PROJECT_SOURCE_DIR}")
endfunction()

# A target that builds what the tests with one of these labels need: their programs, and all that is no program of a test.
function(molsieve_tests_target target)
  get_property(tests DIRECTORY PROPERTY TESTS)
  get_property(needed DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  list(FILTER needed EXCLUDE REGEX "^(test|tests|fuzz_corpus|bench)_")
  foreach(test ${tests})
    get_property(labels TEST ${test} PROPERTY LABELS)
    get_property(program DIRECTORY PROPERTY PROGRAM_OF_${test})
    string(REGEX REPLACE "^.<TARGET_FILE:(.*)>$" "\\1" program "${program}")
    foreach(label ${ARGN})
      if(label IN_LIST labels AND TARGET "${program}")
        list(APPEND needed ${program})
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES needed)
  add_custom_target(${target} DEPENDS molsieve molsieve-chem ${needed})
endfunction()
