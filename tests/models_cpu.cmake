# The cpu engine: against the oracle, its properties, its speed.
add_library(molsieve_made_batch STATIC twin/made_batch.c)
target_include_directories(molsieve_made_batch PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(molsieve_made_batch PUBLIC molsieve::models PRIVATE molsieve::warnings m)

molsieve_test(cpu_product unit/product_test.c LABEL unit USES molsieve::models)
molsieve_test(bf16 unit/bf16_test.c LABEL unit USES molsieve::models m)
molsieve_test(cpu_engine twin/cpu_engine_test.c LABEL twin USES molsieve_made_batch)
molsieve_test(cpu_prop prop/cpu_test.c LABEL prop USES molsieve_made_batch)
molsieve_test(cpu_golden golden/cpu_test.c LABEL golden USES molsieve_golden)
target_sources(test_cpu_golden PRIVATE golden/model_file.c)

# Not a test: bench_models [batch] [seconds a figure] [threads].
find_path(OPENBLAS_INCLUDE openblas_config.h PATH_SUFFIXES openblas openblas-pthread)
find_library(OPENBLAS_LIBRARY openblas)
if(OPENBLAS_INCLUDE AND OPENBLAS_LIBRARY)
  add_executable(bench_models EXCLUDE_FROM_ALL bench/bench_models.c bench/bench_batch.c bench/bench_blas.c)
  target_include_directories(bench_models PRIVATE ${OPENBLAS_INCLUDE})
  target_link_libraries(bench_models PRIVATE ${OPENBLAS_LIBRARY})
else()
  add_executable(bench_models EXCLUDE_FROM_ALL bench/bench_models.c bench/bench_batch.c bench/bench_blas_none.c)
endif()
target_include_directories(bench_models PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(bench_models PRIVATE molsieve::models molsieve::warnings m)
