# Configuration, commands and help.
molsieve_test(workflow unit/workflow_test.c LABEL unit USES molsieve::pipeline)
molsieve_test(field unit/field_test.c LABEL unit USES molsieve::pipeline)
molsieve_test(yaml unit/yaml_test.c LABEL unit USES molsieve::pipeline)
molsieve_test(cmd unit/cmd_test.c LABEL unit USES molsieve::pipeline)
if(TARGET molsieve::stages)
  molsieve_test(config unit/config_test.c LABEL unit USES molsieve::stages PkgConfig::JANSSON)
endif()
