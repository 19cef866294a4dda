molsieve_test(base unit/base_test.c LABEL unit threads USES molsieve::base)
molsieve_add_test(layers ${PROJECT_SOURCE_DIR}/scripts/check_layers.sh)
molsieve_add_test(words ${PROJECT_SOURCE_DIR}/scripts/check_words.sh)
set_tests_properties(layers words PROPERTIES LABELS unit)
