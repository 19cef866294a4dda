# The reference operations of models/, and the stored tensors they must reproduce.
add_library(molsieve_golden STATIC golden/golden.c golden/model_file.c twin/sample.c)
target_include_directories(molsieve_golden PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(molsieve_golden PUBLIC molsieve::models PkgConfig::CMOCKA PRIVATE molsieve::warnings)

molsieve_test(golden_bases golden/bases_test.c LABEL golden USES molsieve_golden)
molsieve_test(golden_layers golden/layer_test.c LABEL golden USES molsieve_golden)
molsieve_test(golden_models golden/model_test.c LABEL golden USES molsieve_golden)
molsieve_add_test(golden_models_large test_golden_models large)
set_tests_properties(golden_models_large PROPERTIES LABELS golden SKIP_RETURN_CODE 77 TIMEOUT 1200
  ENVIRONMENT "MOLSIEVE_SHARED=${MOLSIEVE_SHARED}")
molsieve_test(golden_appendix golden/appendix_test.c LABEL golden USES molsieve_golden)
molsieve_test(ref_gradient twin/ref_gradient_test.c LABEL twin USES molsieve_golden)
molsieve_test(ref_model prop/ref_model_test.c LABEL prop USES molsieve_golden)
molsieve_test(models unit/models_test.c LABEL unit USES molsieve::models)
molsieve_test(ref_oom oom/ref_test.c LABEL oom USES molsieve::models)
molsieve_test(safetensors_fuzz fuzz/safetensors_test.c LABEL fuzz USES molsieve::models)
