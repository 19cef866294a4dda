# Members of a model family.
add_library(molsieve_family_toy STATIC family_toy.c)
target_include_directories(molsieve_family_toy PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(molsieve_family_toy PUBLIC molsieve::models PRIVATE molsieve::warnings m)

molsieve_test(trees unit/trees_test.c LABEL unit USES molsieve_family_toy molsieve::models m)
molsieve_test(trees_limits unit/trees_limits_test.c LABEL unit USES molsieve_family_toy molsieve::models m)
target_link_options(test_trees_limits PRIVATE -Wl,--wrap=dlsym)
molsieve_test(trees_refused unit/trees_refused_test.c LABEL unit USES molsieve_family_toy molsieve::models m)
target_link_options(test_trees_refused PRIVATE -Wl,--wrap=dlsym)
molsieve_test(tree_set unit/tree_set_test.c LABEL unit USES molsieve::models m)
molsieve_test(tree_member unit/tree_member_test.c LABEL unit USES molsieve::models m)
target_link_options(test_tree_member PRIVATE -Wl,--wrap=pl_arena_get)
molsieve_test(family_parts unit/family_parts_test.c LABEL unit USES molsieve::models m)
molsieve_test(gp unit/gp_test.c LABEL unit USES molsieve_family_toy molsieve::models m)
molsieve_test(gp_refused unit/gp_refused_test.c LABEL unit USES molsieve_family_toy molsieve::models m)
molsieve_test(gp_parts unit/gp_parts_test.c LABEL unit USES molsieve::models m)
molsieve_test(gp_file unit/gp_file_test.c LABEL unit USES molsieve::models m)
molsieve_test(family_file unit/family_file_test.c LABEL unit USES molsieve_family_toy molsieve::models m)
target_link_options(test_family_file PRIVATE -Wl,--wrap=pl_arena_get)

# Not a test: learns what tests/bench/family.py writes.
add_executable(bench_family EXCLUDE_FROM_ALL bench/bench_family.c)
target_link_libraries(bench_family PRIVATE molsieve::models molsieve::warnings)
