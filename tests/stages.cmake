# read, prepare, rank, write; the schema; the program from end to end.
molsieve_test(stages unit/stages_test.c LABEL unit threads USES molsieve::stages)
molsieve_test(structures unit/structures_test.c LABEL unit USES molsieve::stages toy)
molsieve_test(report unit/report_test.c LABEL unit USES molsieve::stages)
molsieve_test(qm9bin unit/qm9bin_test.c LABEL unit USES molsieve::chem)

function(molsieve_e2e script label)
  foreach(name ${ARGN})
    molsieve_script_test(${script}.${name} cli/${script}.py LABEL ${label} ARGS ${name})
  endforeach()
endfunction()

molsieve_e2e(e2e_ingest cli
  formats_and_their_records_add_up duplicates_are_one_molecule_with_the_mean_of_their_labels
  workers_do_not_change_a_byte signals_stop_cleanly_and_the_run_goes_on
  every_messy_file_is_accounted_for other_tools_read_the_database structures_are_built_once)
molsieve_e2e(e2e_ingest crash
  kills_at_any_moment_change_nothing faults_before_and_after_each_commit_change_nothing)
molsieve_e2e(e2e_bad_input cli
  one_bad_molecule_costs_one_molecule a_missing_file_is_said_with_its_place
  an_empty_file_is_a_warning_and_nothing_at_all_an_error a_wrong_format_fails_records_and_says_so
  binary_junk_of_every_name_is_refused_record_by_record a_line_of_100_megabytes_is_one_record_and_little_memory
  a_truncated_gzip_keeps_what_was_whole too_many_failures_stop_with_status_3
  a_database_of_a_newer_version_or_of_another_kind_is_left_alone a_directory_that_cannot_be_written_is_said)
molsieve_e2e(e2e_rank cli
  one_objective_orders_by_its_value_with_ties_by_inchikey sums_weights_caution_and_bounds_are_what_they_say
  conformers_of_hits_are_written_as_sdf mistakes_in_the_settings_are_all_reported_at_once)
molsieve_e2e(shards cli
  any_number_of_shards_gives_the_rows_of_one_run labels_models_and_blocks_are_those_of_one_run
  shards_that_are_missing_are_named shard_auto_understands_job_arrays
  the_heartbeat_tells_what_another_host_may_know)
molsieve_e2e(shards crash kills_in_shards_and_in_the_merge_change_nothing)
molsieve_e2e(report_e2e cli
  a_screen_is_told_in_one_page a_training_is_told_in_one_page a_run_that_has_only_begun_has_a_report)
molsieve_script_test(screen_500 cli/screen_500.py LABEL cli TIMEOUT 900)
