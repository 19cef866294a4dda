# Configuration, commands and help.
molsieve_test(workflow unit/workflow_test.c LABEL unit USES molsieve::pipeline)
molsieve_test(workflow_settings unit/workflow_settings_test.c LABEL unit USES molsieve::pipeline)
molsieve_test(workflow_words golden/workflow_words_test.c LABEL golden USES molsieve::pipeline m)
target_compile_definitions(test_workflow_words PRIVATE MOLSIEVE_TESTS="${CMAKE_CURRENT_SOURCE_DIR}")
target_include_directories(test_workflow_words PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
molsieve_test(field unit/field_test.c LABEL unit USES molsieve::pipeline)
molsieve_test(yaml unit/yaml_test.c LABEL unit USES molsieve::pipeline)
target_link_options(test_yaml PRIVATE -Wl,--wrap=read)
molsieve_test(sdf unit/sdf_test.c LABEL unit USES molsieve::chem)
molsieve_test(valence unit/valence_test.c LABEL unit USES molsieve::chem)
molsieve_test(cmd unit/cmd_test.c LABEL unit USES molsieve::pipeline)
if(TARGET molsieve::stages)
  molsieve_test(bench unit/bench_test.c LABEL unit USES molsieve::stages molsieve_made_batch)
  target_link_options(test_bench PRIVATE -Wl,--wrap=dlsym,--wrap=dlopen)
  molsieve_test(bench_steps unit/bench_steps_test.c LABEL unit USES molsieve::stages molsieve_made_batch)
  molsieve_test(config unit/config_test.c LABEL unit USES molsieve::stages PkgConfig::JANSSON)
  molsieve_test(repeat_table unit/repeat_table_test.c LABEL unit USES molsieve::stages PkgConfig::JANSSON)
endif()
if(TARGET molsieve)
  foreach(name all_problems_of_a_file_are_reported_with_their_places
               syntax_that_is_not_a_workflow_is_refused_in_one_line where_each_value_comes_from_is_shown
               terminal_controls_in_a_workflow_are_never_printed terminal_controls_are_escaped_in_json
               every_command_stage_and_topic_has_help completion_scripts_are_valid_and_complete
               committed_files_match_the_tables_they_are_made_from the_demonstration_is_copied_and_runs
               a_demonstration_that_was_not_copied_in_full_is_copied_again a_demonstration_names_only_files_it_has_and_has_one_kind
               a_workflow_writes_where_it_says_and_nowhere_else
               common_mistakes_are_answered_with_what_to_write settings_of_nothing_and_lists_in_lists_are_answered american_spellings_are_read_as_british_ones
               graphs_without_positions_are_refused_where_a_network_reads a_path_with_blanks_can_be_copied_from_the_screen
               a_dumb_terminal_gets_lines_and_a_full_disk_one_message)
    molsieve_script_test(cli_${name} cli/config_cli.py LABEL cli ARGS ${name})
  endforeach()
  foreach(name doctor_finds_no_fault_on_this_machine bench_measures_what_it_is_asked_for bench_shows_each_row_when_it_is_measured)
    molsieve_script_test(cli_${name} cli/machine_cli.py LABEL cli ARGS ${name})
  endforeach()
  molsieve_script_test(cli_results_can_be_asked_and_exported cli/results_cli.py LABEL cli ARGS results_can_be_asked_and_exported)
  molsieve_script_test(cli_results_of_other_settings_are_told cli/results_cli.py LABEL cli ARGS results_of_other_settings_are_told)
  foreach(name help_fits_80_columns_in_terminals_and_pipes output_of_a_screen_fits_80_columns output_about_molecules_fits_80_columns a_pipe_gets_each_message_on_one_line)
    molsieve_script_test(cli_${name} cli/columns_cli.py LABEL cli ARGS ${name})
  endforeach()
endif()
foreach(name links_and_names_of_files_lead_somewhere sections_and_operations_that_are_named_exist
             decisions_that_are_named_exist_and_all_are_in_the_index commands_options_and_settings_that_are_named_exist
             documented_variables_are_those_that_are_read tests_that_are_named_exist cases_of_scripts_are_tests
             pages_and_program_agree_on_version_and_exit_codes
             own_data_is_trained_on_and_screened_as_the_page_says commands_of_the_comparison_work_as_printed)
  molsieve_script_test(docs.${name} cli/docs.py LABEL cli ARGS ${name})
endforeach()
molsieve_script_test(cli_install cli/install.py LABEL cli ARGS an_installed_tree_can_be_moved_and_removed)
molsieve_script_test(wheel_licences cli/wheel_licences.py LABEL cli ARGS every_copied_file_has_a_licence_text_or_is_refused)
molsieve_script_test(cli_plan_guess cli/plan_guess.sh LABEL cli)
molsieve_test(config_fuzz fuzz/config_fuzz.c LABEL fuzz USES molsieve::pipeline)
target_include_directories(test_config_fuzz PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
