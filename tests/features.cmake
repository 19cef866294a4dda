# Graphs, stored bases and batches.
add_library(molsieve_made_mol STATIC made_mol.c)
target_include_directories(molsieve_made_mol PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(molsieve_made_mol PUBLIC molsieve::chem PRIVATE molsieve::warnings m)

molsieve_test(graph unit/graph_test.c LABEL unit USES molsieve_made_mol)
molsieve_test(graph_prop prop/graph_test.c LABEL prop USES molsieve_made_mol)
molsieve_test(feature unit/feature_test.c LABEL unit USES molsieve_made_mol molsieve::models)
molsieve_test(blocks_golden golden/blocks_test.c LABEL golden USES molsieve_made_mol molsieve::models m)
target_compile_definitions(test_blocks_golden PRIVATE MOLSIEVE_TESTS="${CMAKE_CURRENT_SOURCE_DIR}")
target_include_directories(test_blocks_golden PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
molsieve_test(graph_block_fuzz fuzz/graph_block_test.c LABEL fuzz
  USES molsieve_made_mol molsieve::models ZLIB::ZLIB)
molsieve_test(codec fuzz/codec_test.c LABEL fuzz USES molsieve_made_mol ZLIB::ZLIB)
molsieve_test(graph_oom oom/graph_oom_test.c LABEL oom USES molsieve_made_mol molsieve::models)
molsieve_test(basis_stored prop/basis_stored_test.c LABEL prop USES molsieve_made_mol molsieve::models)
target_link_options(test_basis_stored PRIVATE -Wl,--wrap=malloc)
if(TARGET molsieve::stages)
  molsieve_test(feature_stages unit/feature_stages_test.c LABEL unit USES molsieve_made_mol toy molsieve::stages)
endif()

# Not a test: prints the table of tests/bench/results/features-*.md.
if(TARGET toy AND TARGET molsieve_golden)
  add_executable(bench_features bench/bench_features.c)
  target_link_libraries(bench_features PRIVATE toy molsieve_golden molsieve::models molsieve::warnings)
endif()
