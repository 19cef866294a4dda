molsieve_test(collective unit/collective_test.c LABEL unit USES molsieve::models)
target_link_options(test_collective PRIVATE -Wl,--wrap=calloc)
foreach(plugin IN ITEMS old_plugin fit_plugin)
  add_library(${plugin} MODULE unit/old_plugin.c)
  target_include_directories(${plugin} PRIVATE ${PROJECT_SOURCE_DIR})
  # Both have one name for what they hold, which AddressSanitizer takes for a fault.
  target_compile_options(${plugin} PRIVATE -fno-sanitize=all)
endforeach()
target_compile_definitions(fit_plugin PRIVATE FITS)
target_compile_definitions(test_collective PRIVATE OLD_PLUGIN="$<TARGET_FILE:old_plugin>" FIT_PLUGIN="$<TARGET_FILE:fit_plugin>")
add_dependencies(test_collective old_plugin fit_plugin)

molsieve_test(launcher_env unit/launcher_env_test.c LABEL unit USES molsieve::models)
molsieve_test(ranks_wire unit/tcp_wire_test.c LABEL unit USES molsieve::models)
target_link_options(test_ranks_wire PRIVATE -Wl,--wrap=send,--wrap=recv,--wrap=malloc,--wrap=calloc)
molsieve_test(ranks_meet unit/meet_test.c LABEL unit USES molsieve::models)
target_link_options(test_ranks_meet PRIVATE -Wl,--wrap=calloc)
molsieve_test(ranks_lost unit/lost_ranks_test.c LABEL unit USES molsieve::models)
target_link_options(test_ranks_lost PRIVATE -Wl,--wrap=calloc)

# Ranks that need no launcher.
add_executable(collective_ranks hpc/collective_ranks.c)
target_link_libraries(collective_ranks PRIVATE molsieve::models molsieve::warnings PkgConfig::CMOCKA)
foreach(n 1 2 3 4)
  molsieve_add_test(collective_ranks.tcp.${n} collective_ranks tcp ${n})
  set_tests_properties(collective_ranks.tcp.${n} PROPERTIES LABELS hpc TIMEOUT 300)
endforeach()
foreach(case ranks_over_tcp_give_the_same_model a_rank_lost_over_tcp_ends_all_and_the_run_resumes
        ranks_that_do_not_fit_are_refused_over_tcp)
  molsieve_script_test(ranks.${case} cli/ranks_e2e.py LABEL hpc ARGS ${case})
endforeach()
molsieve_script_test(ranks.ranks_on_two_hosts_agree_and_a_cut_cable_ends_all cli/hosts_e2e.py LABEL hpc
  ARGS ranks_on_two_hosts_agree_and_a_cut_cable_ends_all)

# Job scripts, in a Slurm that is started for it and under stubs of qsub and bsub.
foreach(case scripts_ask_for_what_the_settings_say
        pbs_lsf_and_grid_engine_jobs_resubmit_and_merge
        slurm_jobs_resubmit_until_nothing_more_can_be_done lost_slurm_array_tasks_are_resubmitted
        campaigns_as_jobs_give_what_one_machine_gives slurm_rounds_and_arrays_give_what_one_machine_gives)
  molsieve_script_test(jobs.${case} cli/jobs_e2e.py LABEL hpc ARGS ${case})
endforeach()

# The NCCL plugin's source, compiled with an emulated NCCL and CUDA: processes of this machine.
add_library(molsieve_nccl_emulated MODULE ${PROJECT_SOURCE_DIR}/models/comm/nccl/nccl.c emulator/nccl/emulated.cpp)
target_include_directories(molsieve_nccl_emulated PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/emulator/nccl ${CMAKE_CURRENT_SOURCE_DIR}
  ${PROJECT_SOURCE_DIR})
target_link_libraries(molsieve_nccl_emulated PRIVATE molsieve::models molsieve::base molsieve::warnings ZLIB::ZLIB)
target_link_options(molsieve_nccl_emulated PRIVATE -Wl,--exclude-libs,ALL -Wl,-Bsymbolic)
set_target_properties(molsieve_nccl_emulated PROPERTIES OUTPUT_NAME molsieve_nccl
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/emulated)
add_dependencies(collective_ranks molsieve_nccl_emulated)
foreach(n 1 2 3 4)
  molsieve_add_test(collective_ranks.nccl.${n} collective_ranks $<TARGET_FILE:molsieve_nccl_emulated> ${n} nccl)
  set_tests_properties(collective_ranks.nccl.${n} PROPERTIES LABELS hpc TIMEOUT 300
    ENVIRONMENT "MOLSIEVE_EMULATOR_DEVICES=${n}")
endforeach()
foreach(case ranks_over_nccl_give_the_same_model ranks_on_emulated_gpus_give_the_same_model
        members_learn_one_after_the_other_on_emulated_gpus
        without_room_for_a_second_engine_validation_waits a_sharded_optimiser_gives_the_same_model a_sharded_optimiser_resumes_with_other_ranks
        a_sharded_optimiser_checkpoints_within_an_epoch
        a_rank_lost_between_gpus_ends_all_and_the_run_resumes
        a_rank_lost_over_nccl_ends_all_and_the_run_resumes missing_parts_of_nccl_are_reported)
  molsieve_script_test(ranks.${case} cli/nccl_e2e.py LABEL hpc ARGS ${case})
  set_property(TEST ranks.${case} APPEND PROPERTY ENVIRONMENT "MOLSIEVE_EMULATED=${CMAKE_CURRENT_BINARY_DIR}/emulated")
endforeach()

# Real ranks and a real scheduler, where there is an MPI.
if(NOT TARGET molsieve_mpi)
  return()
endif()
add_dependencies(collective_ranks molsieve_mpi)
foreach(n 1 2 3 4)
  molsieve_add_test(collective_ranks.${n} ${MPIEXEC_EXECUTABLE} --oversubscribe -n ${n}
           $<TARGET_FILE:collective_ranks> $<TARGET_FILE:molsieve_mpi> ${n})
  set_tests_properties(collective_ranks.${n} PROPERTIES LABELS hpc TIMEOUT 300
    ENVIRONMENT "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1")
endforeach()
foreach(case any_number_of_ranks_gives_the_same_model a_killed_rank_ends_all_and_the_run_goes_on
        a_signal_to_any_rank_stops_all_with_75 a_rank_that_is_stuck_ends_all_with_7
        impossible_rank_settings_are_refused_before_work srun_starts_ranks_in_a_real_slurm
        a_rank_killed_under_srun_ends_all_and_the_run_goes_on)
  molsieve_script_test(ranks.${case} cli/ranks_e2e.py LABEL hpc ARGS ${case})
endforeach()
