molsieve_test(metric unit/metric_test.c LABEL unit USES molsieve::models)
target_link_options(test_metric PRIVATE -Wl,--wrap=pl_arena_get)
molsieve_test(conformal unit/conformal_test.c LABEL unit USES molsieve::models)
molsieve_test(budget unit/budget_test.c LABEL unit USES molsieve::models)
molsieve_test(checkpoint unit/checkpoint_test.c LABEL unit USES molsieve::models)
molsieve_test(checkpoint_files unit/checkpoint_files_test.c LABEL unit USES molsieve::models)
molsieve_test(prefetch unit/prefetch_test.c LABEL unit threads USES molsieve::models)
molsieve_test(steps unit/steps_test.c LABEL unit USES molsieve::models)
molsieve_test(optimiser_lamb unit/optimiser_test.c LABEL unit threads USES molsieve::models)
target_link_options(test_optimiser_lamb PRIVATE ${seen_locks})
molsieve_test(optimiser_soap unit/soap_test.c LABEL unit threads USES molsieve::models)
target_link_options(test_optimiser_soap PRIVATE -Wl,--wrap=pl_arena_get)
molsieve_test(train twin/train_test.c LABEL twin threads USES molsieve::models)
molsieve_test(train_errors unit/train_errors_test.c LABEL unit threads USES molsieve::models)
target_link_options(test_train_errors PRIVATE -Wl,--wrap=pl_arena_get)
molsieve_test(train_epochs unit/train_epochs_test.c LABEL unit threads USES molsieve::models)
molsieve_test(model_refused unit/model_refused_test.c LABEL unit USES molsieve::models)
molsieve_test(model_file unit/model_file_test.c LABEL unit USES molsieve::models)
molsieve_test(model_join unit/model_join_test.c LABEL unit USES molsieve::models)
molsieve_test(model_damage unit/model_damage_test.c LABEL unit USES molsieve::models)
molsieve_test(sparse unit/sparse_test.c LABEL unit USES molsieve::models)
molsieve_test(warm_start unit/warm_start_test.c LABEL unit USES molsieve::models molsieve_made_mol)
molsieve_test(domain unit/domain_test.c LABEL unit USES molsieve::models)
target_link_options(test_domain PRIVATE -Wl,--wrap=pl_arena_get)
molsieve_test(range unit/range_test.c LABEL unit USES molsieve::models)
molsieve_test(traits unit/traits_test.c LABEL unit USES molsieve::models)
target_link_options(test_traits PRIVATE -Wl,--wrap=pl_arena_get)
molsieve_test(train_engine twin/train_engine_test.c LABEL twin threads USES molsieve::models)
target_link_options(test_train_engine PRIVATE ${seen_requests} -Wl,--wrap=pl_arena_get)
molsieve_test(train_oom oom/train_oom_test.c LABEL oom USES molsieve::models)
foreach(case a_split_depends_on_the_seed_and_the_molecules_alone whole_scaffolds_are_in_one_part
        scaffold_splits_of_others_are_theirs shares_that_whole_groups_cannot_have_are_warned_of
        a_split_by_time_trains_on_what_came_first a_molecule_of_several_times_counts_as_of_the_last)
  molsieve_script_test(${case} cli/split_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case the_weights_are_the_same_after_kills a_budget_ends_with_a_whole_schedule every_fault_point_of_training_is_survived
        a_missing_model_file_is_written_again
        a_signal_ends_with_75_and_nothing_is_lost
        one_torn_checkpoint_is_survived_and_two_are_an_error the_gap_of_2500_molecules_is_learned
        a_prediction_in_another_unit_is_another_property a_replaced_model_file_is_refused
        many_input_files_become_one_provenance_entry
        radial_nodes_work_and_a_coarse_grid_is_warned_of
        scores_depend_on_nothing_but_the_molecule models_that_do_not_fit_are_refused_before_any_work)
  molsieve_script_test(${case} cli/train_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case a_classifier_is_trained_evaluated_and_reported values_that_are_no_class_are_refused_or_left_out
        weighted_classes_keep_honest_probabilities a_ranking_is_compared_with_known_actives)
  molsieve_script_test(${case} cli/classify_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case a_family_is_learned_evaluated_and_scored a_model_without_a_network_reads_any_element more_elements_than_a_model_has_leave_molecules_out a_score_is_explained what_moved_a_score_is_drawn structures_that_no_member_needs_are_skipped a_family_with_a_network_is_the_mean_of_both classes_are_learned_as_probabilities
        auto_keeps_a_network_only_where_it_helps mistakes_in_a_family_are_refused_before_work labels_that_cannot_be_learned_are_told what_a_family_lacks_is_told_before_work
        errors_of_fewer_splits_say_so)
  molsieve_script_test(family.${case} cli/family_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case a_molecule_at_several_temperatures_is_several_observations workers_and_kills_change_nothing
        scores_equal_predictions_and_a_gap_fails what_lacks_a_column_is_told_before_any_work
        shards_merge_into_one_run limits_do_not_widen_the_domain_of_a_column fit_takes_columns units_and_limits_of_columns_are_heard what_is_beside_a_column_may_have_its_name_and_unit a_screen_in_shards_and_an_evaluation_equal_one_run a_network_reads_columns_and_descriptors each_structure_of_a_molecule_has_its_columns_and_descriptors)
  molsieve_script_test(inputs.${case} cli/inputs_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case targets_with_missing_values_are_learned_together classes_with_missing_values_are_learned_together
        the_twelve_targets_of_qm9_are_learned_and_predicted what_leaves_nothing_to_learn_is_refused_or_told
        targets_that_cannot_be_learned_are_left_out what_is_left_out_moves_no_other_target
        a_name_that_begins_with_another_is_explained_by_itself models_that_learned_a_target_from_others_differ
        models_of_one_name_and_other_units_stay_apart
        limits_are_learned_from_and_never_tested rankings_weigh_targets_and_models_share_a_property conflicting_target_settings_are_refused_before_work)
  molsieve_script_test(targets.${case} cli/targets_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case a_similarity_is_to_molecules_that_have_the_target a_target_with_gaps_has_a_domain_of_its_own calibration_gives_each_target_the_domain_of_its_own)
  molsieve_script_test(gaps.${case} cli/gaps_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case a_set_of_kernels_gives_the_same_bytes_for_any_jobs shards_and_resumes_with_other_kernels_are_reported
        structures_of_different_machines_are_reported native_structures_of_other_kernels_are_reported a_model_file_names_its_training_kernels)
  molsieve_script_test(kernels.${case} cli/kernels_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case a_training_starts_from_another_model members_share_a_start_model_but_not_the_order an_unsuitable_start_model_is_refused_before_work
        a_model_of_molecules_in_another_form_is_warned_of)
  molsieve_script_test(warm_start.${case} cli/warm_start_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case a_radial_basis_is_trained_stored_and_read two_of_four_weights_are_kept_over_kills_and_ranks noise_is_learned_from_and_not_in_the_file
        noise_gives_the_same_bytes_after_kills_and_with_ranks noise_that_nothing_learns_from_is_told_at_its_line
        denoising_alone_makes_a_start_for_a_training what_denoising_alone_does_not_have_is_told what_a_graph_or_a_family_cannot_use_is_told_at_its_line)
  molsieve_script_test(se3.${case} cli/se3_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case a_published_network_is_averaged_by_default a_natural_network_needs_no_average
             the_default_network_cannot_tell_mirror_images_apart)
  molsieve_script_test(mirror.${case} cli/mirror_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case scores_are_means_over_the_structures each_structure_gives_a_value_and_the_score_is_their_mean
        kills_workers_and_shards_give_the_same_structures undefined_stereo_of_a_smiles_is_reported
        defined_stereo_is_built_or_the_record_fails)
  molsieve_script_test(structures.${case} cli/structures_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case members_are_learned_and_scored_together classes_have_members_too wrong_member_counts_and_names_are_refused
        joined_networks_predict_their_mean classes_are_joined_by_their_log_odds)
  molsieve_script_test(members.${case} cli/members_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case a_score_names_the_nearest_training_molecule a_similarity_minimum_ranks_the_same_with_shards
        scores_of_earlier_rules_are_made_again errors_are_reported_by_similarity intervals_are_in_the_model_and_with_every_score)
  molsieve_script_test(${case} cli/domain_e2e.py LABEL cli ARGS ${case})
endforeach()
foreach(case generated_3d_is_outside_a_model_of_measured_3d size_charge_rings_and_form_decide_the_domain unseen_elements_are_failure_rows_with_a_reason)
  molsieve_script_test(range.${case} cli/range_e2e.py LABEL cli ARGS ${case})
endforeach()

# Run by hand; these are no tests.
add_executable(bench_fingerprint EXCLUDE_FROM_ALL bench/bench_fingerprint.c)
target_link_libraries(bench_fingerprint PRIVATE molsieve::models molsieve::warnings)
add_dependencies(bench_fingerprint molsieve-chem)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_executable(bench_sparse EXCLUDE_FROM_ALL bench/bench_sparse.c)
  target_link_libraries(bench_sparse PRIVATE molsieve::models molsieve::warnings m)
endif()
foreach(case nearest_neighbours_are_beside_the_model_everywhere a_model_worse_than_a_baseline_is_not_recommended
        an_existing_model_is_evaluated_on_new_labels labels_that_do_not_fit_are_refused molecules_that_chose_the_epoch_do_not_calibrate a_model_is_calibrated_again_with_the_same_weights)
  molsieve_script_test(${case} cli/judge_e2e.py LABEL cli ARGS ${case})
endforeach()
