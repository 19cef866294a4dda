# The reference operations of models/, and the stored tensors they must reproduce.
add_library(molsieve_golden STATIC golden/golden.c)
target_include_directories(molsieve_golden PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(molsieve_golden PUBLIC molsieve::models PkgConfig::CMOCKA PRIVATE molsieve::warnings)

molsieve_test(golden_bases golden/bases_test.c LABEL golden USES molsieve_golden)
molsieve_test(golden_layers golden/layer_test.c LABEL golden USES molsieve_golden)
