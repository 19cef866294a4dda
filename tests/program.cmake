# The real program with every stage: killed, stopped, doubled, starved, damaged.
foreach(stage read prepare graph basis split train evaluate score rank write together external)
  molsieve_script_test(kills.${stage} crash/kills.py LABEL crash ARGS ${stage})
endforeach()

function(molsieve_crash script)
  foreach(name ${ARGN})
    molsieve_script_test(${script}.${name} crash/${script}.py LABEL crash ARGS ${name})
  endforeach()
endfunction()

molsieve_crash(stops
  fault_points_of_records_are_survived fault_points_of_molecules_are_survived
  fault_points_of_whole_stages_are_survived
  signals_end_with_75_and_the_run_goes_on a_second_signal_ends_the_run_and_its_workers_at_once
  a_second_run_is_refused_and_harms_nothing a_full_disk_ends_with_6_and_the_run_goes_on
  too_little_free_space_ends_with_6_before_it_is_full a_screen_gives_the_same_bytes_for_1_2_and_5_workers)
molsieve_crash(together
  parallel_stages_give_the_bytes_of_serial_ones fault_points_while_all_are_at_work_are_survived
  a_run_that_is_killed_repeatedly_finishes signals_stop_all_of_them_and_all_go_on
  a_failing_stage_stops_the_others_and_names_itself a_late_failure_ends_long_work_of_other_stages
  memory_does_not_grow_with_the_number_of_molecules)
molsieve_crash(damage
  a_damaged_checkpoint_gives_way_to_the_previous_one a_flipped_bit_in_a_block_is_found_and_named a_log_of_another_database_is_noticed
  missing_features_are_computed_again_when_needed
  foreign_and_newer_databases_are_left_unchanged a_truncated_database_is_reported_and_kept
  an_unwritable_directory_is_reported)
molsieve_crash(flips
  a_flipped_bit_of_results_is_noticed_or_harmless a_damaged_page_of_any_table_is_never_passed_over
  a_damaged_name_in_the_sums_of_rows_is_refused a_flipped_bit_of_features_is_noticed_or_harmless a_flipped_bit_of_a_name_of_a_block_is_noticed
  a_flipped_bit_of_a_model_is_noticed_or_harmless a_flipped_bit_of_a_checkpoint_is_noticed_or_harmless
  a_flipped_bit_of_the_heartbeat_is_noticed_or_harmless
  other_programs_may_write_tables_of_their_own a_table_changed_by_others_is_reported_and_can_be_kept)

# On sshfs: the work directory of several hosts (root).
molsieve_crash(network
  a_second_host_is_refused_and_harms_nothing the_claim_of_a_dead_host_expires
  a_lost_connection_ends_with_6_and_the_run_goes_on)

molsieve_crash(small valgrind_finds_nothing)
# Also run by the build with sanitizers (labels san, threads).
molsieve_script_test(small.every_stage_and_command_runs_clean crash/small.py LABEL crash san threads
  ARGS every_stage_and_command_runs_clean)
# A disk that fails and a disk whose power is cut (crash/shim.c, by LD_PRELOAD).
add_library(shim MODULE crash/shim.c)
target_link_libraries(shim PRIVATE molsieve::warnings ${CMAKE_DL_LIBS} Threads::Threads)
if(NOT CMAKE_C_FLAGS MATCHES "-fsanitize")
  add_library(statements MODULE crash/statements.c)
  target_link_libraries(statements PRIVATE molsieve::warnings ${CMAKE_DL_LIBS} SQLite::SQLite3)
endif()
add_library(clock MODULE crash/clock.c)
target_link_libraries(clock PRIVATE molsieve::warnings)
molsieve_crash(stops setting_the_system_clock_is_survived)
molsieve_crash(disk failing_calls_are_survived power_cuts_lose_nothing a_reader_rolls_back_a_half_written_transaction)
