# The store, plans and runs, with three small stages of their own (toy.c).
add_library(toy STATIC toy.c)
target_link_libraries(toy PUBLIC molsieve::pipeline PRIVATE molsieve::warnings)
target_include_directories(toy PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})

molsieve_test(store unit/store_test.c LABEL unit USES toy)
molsieve_test(pages unit/pages_test.c LABEL unit USES toy)
molsieve_test(parts unit/parts_test.c LABEL unit USES toy)
molsieve_test(lock unit/lock_test.c LABEL unit USES toy)
target_link_options(test_lock PRIVATE -Wl,--wrap=nanosleep)
molsieve_test(recovery unit/recovery_test.c LABEL unit USES toy)
set(seen_calls -Wl,--wrap=fsync,--wrap=rename,--wrap=nanosleep) # unit/calls.h
target_link_options(test_recovery PRIVATE ${seen_calls} -Wl,--wrap=statfs)
molsieve_test(written unit/written_test.c LABEL unit USES toy)
set(seen_statements -Wl,--wrap=sqlite3_close,--wrap=sqlite3_close_v2) # unit/statements.h
target_link_options(test_written PRIVATE ${seen_statements})
molsieve_test(claim unit/claim_test.c LABEL unit threads USES toy)
molsieve_test(progress unit/progress_test.c LABEL unit threads USES toy)
molsieve_test(run unit/run_test.c LABEL unit threads USES toy)
molsieve_test(plan_oom oom/plan_test.c LABEL oom USES toy)
target_link_options(test_plan_oom PRIVATE ${seen_statements} -Wl,--wrap=calloc,--wrap=strdup)
molsieve_test(engine_signals crash/signals_test.c LABEL crash threads USES toy)
molsieve_test(engine_crash crash/engine_test.c LABEL crash USES toy)
molsieve_script_test(engine_cli cli/engine_cli.py LABEL cli)
