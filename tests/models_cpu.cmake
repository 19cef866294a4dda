# The cpu engine: against the oracle, its properties, its speed.
add_library(molsieve_made_batch STATIC twin/made_batch.c)
target_include_directories(molsieve_made_batch PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(molsieve_made_batch PUBLIC molsieve::models PRIVATE molsieve::warnings m)

molsieve_test(cpu_product unit/product_test.c LABEL unit USES molsieve::models)
molsieve_test(bf16 unit/bf16_test.c LABEL unit USES molsieve::models m)
molsieve_test(cpu_engine twin/cpu_engine_test.c LABEL twin threads USES molsieve_made_batch)
molsieve_test(cpu_precision twin/precision_test.c LABEL twin USES molsieve_made_batch)
molsieve_test(cpu_nodes twin/cpu_nodes_test.c LABEL twin USES molsieve_made_batch)
molsieve_test(cpu_prop prop/cpu_test.c LABEL prop USES molsieve_made_batch)
molsieve_test(cpu_golden golden/cpu_test.c LABEL golden USES molsieve_golden)
molsieve_test(golden_precision golden/precision_test.c LABEL golden USES molsieve_golden)
