molsieve_test(metric unit/metric_test.c LABEL unit USES molsieve::models)
molsieve_test(checkpoint unit/checkpoint_test.c LABEL unit USES molsieve::models)
molsieve_test(train twin/train_test.c LABEL twin USES molsieve::models)
molsieve_test(model_file unit/model_file_test.c LABEL unit USES molsieve::models)
