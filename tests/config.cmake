# Configuration, commands and help.
molsieve_test(workflow unit/workflow_test.c LABEL unit USES molsieve::pipeline)
