# The cuda engine without a GPU: its plugin's kernels as C++ on the fiber emulator.
# A GPU contracts a*b+c; the emulator does too, where this machine can.
include(CheckCSourceRuns)
check_c_source_runs("int main(void) { return !__builtin_cpu_supports(\"fma\"); }" MOLSIEVE_HOST_FMA)
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-mtls-dialect=gnu2 MOLSIEVE_TLS_DESCRIPTORS) # fibers live in thread-local memory
# A Debug build by clang is compiled, and its emulator seldom run: without optimisation that takes 3 s instead of 24. For
# ThreadSanitizer -O1 saves 11 s of compilation, and costs 2 s in its tests.
set(emulated_level $<IF:$<CONFIG:Debug>,$<$<C_COMPILER_ID:GNU>:-O2>,-O3>)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
  set(emulated_level -O1)
endif()
set(emulated_options ${emulated_level} $<$<BOOL:${MOLSIEVE_TLS_DESCRIPTORS}>:-mtls-dialect=gnu2> $<$<BOOL:${MOLSIEVE_HOST_FMA}>:-mavx2;-mfma;-ffp-contract=fast>)

add_library(molsieve_cuda_emulated MODULE emulator/emulated.cpp emulator/emulated_structures.cpp)
# It uses some of the runtime.
set_source_files_properties(emulator/emulated_structures.cpp PROPERTIES COMPILE_OPTIONS -Wno-unused-function)
target_include_directories(molsieve_cuda_emulated PRIVATE ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_options(molsieve_cuda_emulated PRIVATE ${emulated_options})
target_link_libraries(molsieve_cuda_emulated PRIVATE molsieve::warnings)
set_target_properties(molsieve_cuda_emulated PROPERTIES CXX_VISIBILITY_PRESET hidden OUTPUT_NAME molsieve_cuda
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/emulated)

set(emulated_environment "MOLSIEVE_PLUGINS=${CMAKE_CURRENT_BINARY_DIR}/emulated;MOLSIEVE_CUDA_FENCES=1"
  "MOLSIEVE_CUBLASLT=${CMAKE_CURRENT_BINARY_DIR}/emulated/libcublasLt.so")

add_library(emulated_here OBJECT emulator/here.c)
target_compile_definitions(emulated_here PRIVATE EMULATED="${CMAKE_CURRENT_BINARY_DIR}/emulated")

# An emulated cuBLASLt, and one that lacks a function, as the plugin opens them.
foreach(which cublasLt cublasLt_old)
  add_library(${which}_emulated MODULE emulator/cublaslt/emulated.cpp)
  target_include_directories(${which}_emulated PRIVATE ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(${which}_emulated PRIVATE ${emulated_options})
  target_link_libraries(${which}_emulated PRIVATE molsieve::warnings)
  set_target_properties(${which}_emulated PROPERTIES CXX_VISIBILITY_PRESET hidden OUTPUT_NAME ${which}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/emulated)
endforeach()
target_compile_definitions(cublasLt_old_emulated PRIVATE WITHOUT_CHECK)

# A test that reaches the emulator through the engine's own loader.
function(molsieve_emulated_test name)
  molsieve_test(${name} ${ARGN})
  add_dependencies(test_${name} molsieve_cuda_emulated cublasLt_emulated cublasLt_old_emulated)
  target_link_libraries(test_${name} PRIVATE emulated_here)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "${emulated_environment}")
endfunction()

molsieve_test(emulator unit/emulator_test.cpp LABEL unit)
target_include_directories(test_emulator PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
# It uses parts of the runtime; listed after the warnings, where clang accepts it, too.
set_source_files_properties(unit/emulator_test.cpp PROPERTIES COMPILE_OPTIONS -Wno-unused-function)
molsieve_test(cuda_batch unit/cuda_batch_test.c LABEL unit USES molsieve_made_batch)
molsieve_emulated_test(cuda_ops unit/cuda_ops_test.c LABEL unit USES molsieve::models)
molsieve_emulated_test(cuda_engine twin/cuda_engine_test.c LABEL twin USES molsieve_made_batch)
molsieve_emulated_test(cuda_products twin/cuda_products_test.c LABEL twin USES molsieve_made_batch ${CMAKE_DL_LIBS})
molsieve_emulated_test(cuda_units twin/cuda_units_test.c LABEL twin USES molsieve_made_batch)
molsieve_emulated_test(cuda_few twin/cuda_few_test.c LABEL twin USES molsieve_made_batch)
molsieve_test(cublaslt unit/cublaslt_test.c LABEL unit)
target_include_directories(test_cublaslt PRIVATE ${PROJECT_SOURCE_DIR})
find_path(CUBLASLT_INCLUDE_DIR cublasLt.h HINTS /usr/local/cuda/include ENV CUDA_HOME PATH_SUFFIXES include)
mark_as_advanced(CUBLASLT_INCLUDE_DIR)
if(CUBLASLT_INCLUDE_DIR) # else it is skipped
  target_include_directories(test_cublaslt SYSTEM PRIVATE ${CUBLASLT_INCLUDE_DIR})
endif()
molsieve_emulated_test(cuda_memory twin/cuda_memory_test.c LABEL twin USES molsieve_made_batch)
molsieve_emulated_test(cuda_together twin/cuda_together_test.c LABEL twin USES molsieve_made_batch)

molsieve_emulated_test(cuda_structures twin/cuda_structures_test.c LABEL twin USES molsieve_sdf_mol)
target_compile_definitions(test_cuda_structures PRIVATE MOLSIEVE_TESTS="${CMAKE_CURRENT_SOURCE_DIR}")

# The GPU part of another version.
add_library(other_cuda MODULE unit/other_cuda.c)
target_include_directories(other_cuda PRIVATE ${PROJECT_SOURCE_DIR})
set_target_properties(other_cuda PROPERTIES OUTPUT_NAME molsieve_cuda LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/other)
molsieve_test(other_cuda unit/other_cuda_test.c LABEL unit USES molsieve::models)
target_compile_definitions(test_other_cuda PRIVATE OTHER="${CMAKE_CURRENT_BINARY_DIR}/other")
add_dependencies(test_other_cuda other_cuda)

molsieve_emulated_test(cuda_train twin/cuda_train_test.c LABEL twin threads USES molsieve::models)

set(seen_requests -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=pthread_create) # twin/requests.h
molsieve_emulated_test(cuda_beside twin/cuda_beside_test.c LABEL twin USES molsieve::models)
target_link_options(test_cuda_beside PRIVATE ${seen_requests})
set_tests_properties(cuda_beside PROPERTIES TIMEOUT 1200)
molsieve_add_test(cuda_train_engine $<TARGET_FILE:test_train_engine> cuda) # its target comes later
molsieve_add_test(cuda_golden test_cpu_golden cuda)
molsieve_add_test(cuda_golden_layers test_golden_layers cuda)
target_link_libraries(test_cpu_golden PRIVATE emulated_here)
target_link_libraries(test_golden_layers PRIVATE emulated_here)
set_tests_properties(cuda_train_engine PROPERTIES LABELS twin)
set_tests_properties(cuda_golden cuda_golden_layers PROPERTIES LABELS golden)
set(emulated_tests cuda_train_engine cuda_golden cuda_golden_layers)

# Some of them with the sanitizers, which see every access of every kernel. For ThreadSanitizer (also cuda_train) the
# threads of a block are threads.
if(CMAKE_C_FLAGS MATCHES "-fsanitize=")
  molsieve_add_test(cuda_races test_cuda_together engines*)
  molsieve_add_test(cuda_engine_san test_cuda_engine tables_in_pieces*)
  molsieve_add_test(cuda_train_san $<TARGET_FILE:test_train_engine> cuda graphs_fences*)
  set_tests_properties(cuda_races PROPERTIES LABELS threads)
  set_tests_properties(cuda_engine_san cuda_train_san PROPERTIES LABELS san)
  list(APPEND emulated_tests cuda_races cuda_engine_san cuda_train_san)
endif()
set_tests_properties(${emulated_tests} PROPERTIES TIMEOUT 1200
  ENVIRONMENT "${emulated_environment}")

molsieve_script_test(cuda_cli cli/cuda_cli.py LABEL cli)
set_property(TEST cuda_cli APPEND PROPERTY ENVIRONMENT "MOLSIEVE_EMULATED=${CMAKE_CURRENT_BINARY_DIR}/emulated")
molsieve_add_test(cuda_budget ${PROJECT_SOURCE_DIR}/scripts/cuda-budget ${PROJECT_BINARY_DIR}/cuda-budget)
set_tests_properties(cuda_budget PROPERTIES LABELS budget SKIP_RETURN_CODE 77)
