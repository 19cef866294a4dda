molsieve_test(base unit/base_test.c LABEL unit threads USES molsieve::base)
molsieve_test(program unit/program_test.c LABEL unit USES molsieve::base)
molsieve_add_test(layers ${PROJECT_SOURCE_DIR}/scripts/check_layers.sh)
molsieve_add_test(layers_caught ${CMAKE_CURRENT_SOURCE_DIR}/cli/layers.py)
molsieve_add_test(ternaries_caught ${CMAKE_CURRENT_SOURCE_DIR}/cli/ternaries.py)
molsieve_add_test(words ${PROJECT_SOURCE_DIR}/scripts/check_words.sh)
molsieve_add_test(format ${PROJECT_SOURCE_DIR}/scripts/format --check)
set_tests_properties(layers layers_caught ternaries_caught words format PROPERTIES LABELS unit)
if(CMAKE_BINARY_DIR STREQUAL "${PROJECT_SOURCE_DIR}/build/dev") # whose commands scripts/lint reads
  molsieve_add_test(lint ${PROJECT_SOURCE_DIR}/scripts/lint)
  molsieve_add_test(nearest_quick ${PROJECT_SOURCE_DIR}/scripts/nearest --quick) # as run-tests calls it
  molsieve_add_test(nearest_file ${PROJECT_SOURCE_DIR}/scripts/nearest pipeline/base/text.c)
endif()
