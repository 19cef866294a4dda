# read, prepare, rank, write; the schema; the program from end to end.
molsieve_test(stages unit/stages_test.c LABEL unit USES molsieve::stages)
molsieve_test(qm9bin unit/qm9bin_test.c LABEL unit USES molsieve::chem)
