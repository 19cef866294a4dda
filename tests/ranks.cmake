molsieve_test(collective unit/collective_test.c LABEL unit USES molsieve::models)
add_library(old_plugin MODULE unit/old_plugin.c)
target_include_directories(old_plugin PRIVATE ${PROJECT_SOURCE_DIR})
set_property(TEST collective APPEND PROPERTY ENVIRONMENT "OLD_PLUGIN=$<TARGET_FILE:old_plugin>")
add_dependencies(test_collective old_plugin)

molsieve_test(ranks_launch unit/launch_test.c LABEL unit USES molsieve::models)
molsieve_test(ranks_meet unit/meet_test.c LABEL unit USES molsieve::models)

# Ranks that need no launcher.
add_executable(collective_ranks hpc/collective_ranks.c)
target_link_libraries(collective_ranks PRIVATE molsieve::models molsieve::warnings PkgConfig::CMOCKA)
foreach(n 1 2 3 4)
  add_test(NAME collective_ranks.tcp.${n} COMMAND collective_ranks tcp ${n})
  set_tests_properties(collective_ranks.tcp.${n} PROPERTIES LABELS hpc TIMEOUT 120)
endforeach()
foreach(case ranks_over_tcp_give_the_same_model a_rank_lost_over_tcp_ends_all_with_7_and_the_run_goes_on
        ranks_that_do_not_fit_are_refused_over_tcp)
  molsieve_script_test(ranks.${case} cli/ranks_e2e.py LABEL hpc ARGS ${case})
endforeach()

# Real ranks and a real scheduler, where there is an MPI.
if(NOT TARGET molsieve_mpi)
  return()
endif()
add_dependencies(collective_ranks molsieve_mpi)
foreach(n 1 2 3 4)
  add_test(NAME collective_ranks.${n} COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe -n ${n}
           $<TARGET_FILE:collective_ranks> $<TARGET_FILE:molsieve_mpi> ${n})
  set_tests_properties(collective_ranks.${n} PROPERTIES LABELS hpc TIMEOUT 120
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1")
endforeach()
foreach(case any_number_of_ranks_gives_the_same_model a_killed_rank_ends_all_and_the_run_goes_on
        a_signal_to_any_rank_stops_all_with_75 a_rank_that_is_stuck_ends_all_with_7
        what_cannot_work_is_said_before_any_work srun_starts_ranks_in_a_real_slurm)
  molsieve_script_test(ranks.${case} cli/ranks_e2e.py LABEL hpc ARGS ${case})
endforeach()
