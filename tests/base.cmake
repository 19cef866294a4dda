molsieve_test(base unit/base_test.c LABEL unit threads USES molsieve::base)
add_test(NAME layers COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_layers.sh)
add_test(NAME words COMMAND ${PROJECT_SOURCE_DIR}/scripts/check_words.sh)
set_tests_properties(layers words PROPERTIES LABELS unit)
