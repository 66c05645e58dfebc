/* SPDX-License-Identifier: Apache-2.0
 * What a newcomer gives wrongly: tensors, datasets, values of replicas, losses, states. */
#include "mistakes.h"

/* A dataset says what is wrong with it where it is distributed. */
static cadre_status distribute(struct stand *stand, cadre_dataset *data)
{
    cadre_distributed_dataset *distributed;
    return cadre_distribute_dataset(
        stand->strategy, data, &(cadre_input_options){.name = "wrong"}, &distributed);
}

static cadre_dataset *six(void)
{
    return cadre_dataset_range(0, 6, 1);
}

/* ---- tensors ---- */

static cadre_status a_negative_dimension(struct stand *stand)
{
    (void)stand;
    cadre_tensor *tensor;
    return cadre_tensor_create(CADRE_F32, 1, (const int64_t[]){-2}, &tensor);
}

static cadre_status too_many_dimensions(struct stand *stand)
{
    (void)stand;
    cadre_tensor *tensor;
    const int64_t dims[CADRE_RANK_MAX + 1] = {0};
    return cadre_tensor_create(CADRE_F32, CADRE_RANK_MAX + 1, dims, &tensor);
}

static cadre_status no_dimensions(struct stand *stand)
{
    (void)stand;
    cadre_tensor *tensor;
    return cadre_tensor_create(CADRE_F32, 2, NULL, &tensor);
}

static cadre_status no_such_type(struct stand *stand)
{
    (void)stand;
    cadre_tensor *tensor;
    return cadre_tensor_create((cadre_dtype)99, 0, NULL, &tensor);
}

static cadre_status no_data(struct stand *stand)
{
    (void)stand;
    cadre_tensor *tensor;
    return cadre_tensor_from_data(CADRE_F32, 1, (const int64_t[]){2}, NULL, &tensor);
}

static cadre_status rows_beyond_the_end(struct stand *stand)
{
    cadre_tensor *view;
    return cadre_tensor_view_rows(stand->pair, 1, 2, &view);
}

static cadre_status rows_of_a_scalar(struct stand *stand)
{
    cadre_tensor *view;
    return cadre_tensor_view_rows(stand->scalar, 0, 1, &view);
}

static cadre_status a_copy_of_nothing(struct stand *stand)
{
    (void)stand;
    cadre_tensor *copy;
    return cadre_tensor_copy(NULL, &copy);
}

/* ---- datasets ---- */

static cadre_status a_range_that_stands_still(struct stand *stand)
{
    return distribute(stand, cadre_dataset_batch(cadre_dataset_range(0, 6, 0), 2, false));
}

static cadre_status batches_of_nothing(struct stand *stand)
{
    return distribute(stand, cadre_dataset_batch(six(), 0, false));
}

static cadre_status no_batches(struct stand *stand)
{
    return distribute(stand, six());
}

static cadre_status slices_of_different_lengths(struct stand *stand)
{
    cadre_tensor *const tensors[] = {stand->pair, stand->triple};
    return distribute(
        stand, cadre_dataset_batch(cadre_dataset_tensor_slices(tensors, 2), 2, false));
}

static cadre_status no_function_to_map(struct stand *stand)
{
    return distribute(
        stand, cadre_dataset_batch(cadre_dataset_map(six(), NULL, NULL, NULL), 2, false));
}

static cadre_status fail_without_a_word(const cadre_element *in, cadre_element *out, void *user)
{
    (void)in;
    (void)out;
    (void)user;
    return CADRE_DATA_LOSS;
}

static cadre_status a_map_that_fails(struct stand *stand)
{
    return distribute(stand,
        cadre_dataset_batch(cadre_dataset_map(six(), fail_without_a_word, NULL, NULL), 2, false));
}

static cadre_status a_negative_take(struct stand *stand)
{
    return distribute(stand, cadre_dataset_batch(cadre_dataset_take(six(), -1), 2, false));
}

static cadre_status a_zip_of_none(struct stand *stand)
{
    return distribute(stand, cadre_dataset_batch(cadre_dataset_zip(NULL, 0), 2, false));
}

static cadre_status a_pattern_without_files(struct stand *stand)
{
    const char *patterns[] = {"/nowhere/*.txt"};
    return distribute(
        stand, cadre_dataset_batch(cadre_dataset_list_files(patterns, 1, NULL), 2, false));
}

static cadre_status a_file_that_is_not_there(struct stand *stand)
{
    return distribute(stand, cadre_dataset_batch(cadre_dataset_npy("/nowhere/x.npy"), 2, false));
}

static cadre_status a_shuffle_of_all_that_ends_nowhere(struct stand *stand)
{
    cadre_dataset *endless = cadre_dataset_repeat(six(), -1);
    return distribute(stand,
        cadre_dataset_batch(cadre_dataset_shuffle(endless, CADRE_SHUFFLE_ALL, 1, NULL), 2, false));
}

static cadre_status a_shuffle_without_a_buffer(struct stand *stand)
{
    return distribute(
        stand, cadre_dataset_batch(cadre_dataset_shuffle(six(), 0, 1, NULL), 2, false));
}

static cadre_status a_name_that_is_taken(struct stand *stand)
{
    cadre_distributed_dataset *distributed;
    return cadre_distribute_dataset(stand->strategy, cadre_dataset_batch(six(), 2, false),
        &(cadre_input_options){.name = "data"}, &distributed);
}

static cadre_status a_batch_before_any_epoch(struct stand *stand)
{
    cadre_per_replica *batch;
    return cadre_next(stand->data, &batch);
}

static cadre_status files_where_there_are_none(struct stand *stand)
{
    cadre_distributed_dataset *distributed;
    return cadre_distribute_dataset(stand->strategy, cadre_dataset_batch(six(), 2, false),
        &(cadre_input_options){.name = "files", .auto_shard = CADRE_SHARD_FILE}, &distributed);
}

/* ---- values ---- */

static cadre_status give_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    struct stand *stand = user;
    return cadre_tensor_copy(
        cadre_replica_id(replica) == 0 ? stand->pair : stand->triple, &outputs[0]);
}

static cadre_status an_output_that_is_missing(struct stand *stand)
{
    cadre_per_replica *outputs[2];
    return cadre_run(stand->strategy, give_one, stand, NULL, 2, outputs);
}

static cadre_status a_sum_of_other_shapes(struct stand *stand)
{
    cadre_per_replica *output;
    cadre_tensor *sum;
    CADRE_TRY(cadre_run(stand->strategy, give_one, stand, NULL, 1, &output));
    return cadre_reduce(stand->strategy, CADRE_SUM, output, CADRE_AXIS_NONE, &sum);
}

static cadre_status an_axis_that_is_not_there(struct stand *stand)
{
    cadre_per_replica *output;
    cadre_tensor *sum;
    CADRE_TRY(cadre_run(stand->strategy, give_one, stand, NULL, 1, &output));
    return cadre_reduce(stand->strategy, CADRE_SUM, output, 5, &sum);
}

static cadre_status an_output_behind_the_next_step(struct stand *stand)
{
    cadre_per_replica *output;
    cadre_tensor *sum;
    CADRE_TRY(cadre_run(stand->strategy, give_one, stand, NULL, 1, &output));
    CADRE_TRY(cadre_run(stand->strategy, training_nothing, NULL, NULL, 0, NULL));
    return cadre_reduce(stand->strategy, CADRE_SUM, output, CADRE_AXIS_NONE, &sum);
}

static cadre_status values_for_other_replicas(struct stand *stand)
{
    cadre_per_replica *values;
    cadre_tensor *const three[] = {stand->pair, stand->pair, stand->pair};
    return cadre_values_from_tensors(stand->strategy, three, 3, &values);
}

static cadre_status no_batch_to_run(struct stand *stand)
{
    cadre_per_replica *batch;
    while (cadre_next_epoch(stand->data, 1, NULL)) {
        while (cadre_next(stand->data, &batch) == CADRE_OK) {
            CADRE_TRY(cadre_run(stand->strategy, training_nothing, NULL, batch, 0, NULL));
        }
    }
    return cadre_next(stand->data, &batch);
}

static cadre_status give_up(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_INVALID_ARGUMENT;
}

static cadre_status a_failure_without_a_word(struct stand *stand)
{
    return cadre_run(stand->strategy, give_up, NULL, NULL, 0, NULL);
}

/* ---- losses, metrics ---- */

static cadre_status weights_that_do_not_fit(cadre_replica *replica, struct stand *stand)
{
    cadre_tensor *loss;
    return cadre_compute_average_loss(replica, stand->pair, stand->triple, NULL, &loss);
}

static cadre_status a_loss_that_is_a_number(cadre_replica *replica, struct stand *stand)
{
    cadre_tensor *loss;
    return cadre_compute_average_loss(replica, stand->scalar, NULL, NULL, &loss);
}

static cadre_status a_metric_without_targets(struct stand *stand)
{
    cadre_metric *metric;
    CADRE_TRY(cadre_metric_create(
        stand->strategy, CADRE_METRIC_MEAN_SQUARED_ERROR, "error", NULL, &metric));
    cadre_status status = cadre_metric_update(NULL, metric, stand->pair, NULL, NULL);
    cadre_metric_release(metric);
    return status;
}

static cadre_status no_such_metric(struct stand *stand)
{
    cadre_metric *metric;
    return cadre_metric_create(stand->strategy, (cadre_metric_kind)50, "odd", NULL, &metric);
}

/* ---- checkpoints, the end ---- */

static int64_t counted;

static cadre_status a_state_of_no_bytes(struct stand *stand)
{
    return cadre_state_register(stand->strategy, "empty", &counted, 0);
}

static cadre_status a_state_twice(struct stand *stand)
{
    CADRE_TRY(cadre_state_register(stand->strategy, "counted", &counted, sizeof counted));
    return cadre_state_register(stand->strategy, "counted", &counted, sizeof counted);
}

static cadre_status a_state_too_late(struct stand *stand)
{
    CADRE_TRY(cadre_run(stand->strategy, training_nothing, NULL, NULL, 0, NULL));
    return cadre_state_register(stand->strategy, "late", &counted, sizeof counted);
}

static cadre_status an_exit_code_that_is_none(struct stand *stand)
{
    return cadre_preemption_handler_set(
        stand->strategy, &(cadre_preemption_options){.exit_code = 300});
}

static cadre_status a_report_without_a_name(struct stand *stand)
{
    return cadre_report(stand->strategy, "", 1);
}

static const struct mistake mistakes[] = {
    OUTSIDE(a_negative_dimension, BAD, "-2"),
    OUTSIDE(too_many_dimensions, BAD, "limit of 8 dimensions"),
    OUTSIDE(no_dimensions, BAD, "dims is NULL"),
    OUTSIDE(no_such_type, BAD, "enum cadre_dtype"),
    OUTSIDE(no_data, BAD, "data is NULL"),
    OUTSIDE(rows_beyond_the_end, CADRE_OUT_OF_RANGE, "2 rows from row 1"),
    OUTSIDE(rows_of_a_scalar, BAD, "a scalar has no rows"),
    OUTSIDE(a_copy_of_nothing, BAD, "'tensor'"),
    OUTSIDE(a_range_that_stands_still, BAD, "step is 0"),
    OUTSIDE(batches_of_nothing, BAD, "size 0"),
    OUTSIDE(no_batches, BAD, "call cadre_dataset_batch first"),
    OUTSIDE(slices_of_different_lengths, BAD, "3 rows and tensor 0 has 2"),
    OUTSIDE(no_function_to_map, BAD, "the function is NULL"),
    OUTSIDE(a_map_that_fails, CADRE_DATA_LOSS, "say why with cadre_fail"),
    OUTSIDE(a_negative_take, BAD, "count -1"),
    OUTSIDE(a_zip_of_none, BAD, "no dataset was given"),
    OUTSIDE(a_pattern_without_files, CADRE_NOT_FOUND, "/nowhere/*.txt"),
    OUTSIDE(a_file_that_is_not_there, CADRE_NOT_FOUND, "/nowhere/x.npy"),
    OUTSIDE(a_shuffle_of_all_that_ends_nowhere, BAD, "give a buffer size"),
    OUTSIDE(a_shuffle_without_a_buffer, BAD, "CADRE_SHUFFLE_ALL"),
    OUTSIDE(a_name_that_is_taken, CADRE_ALREADY_EXISTS, "another name"),
    OUTSIDE(a_batch_before_any_epoch, EARLY, "call cadre_next_epoch before"),
    OUTSIDE(files_where_there_are_none, CADRE_NOT_FOUND, "use CADRE_SHARD_DATA"),
    OUTSIDE(an_output_that_is_missing, BAD, "left output 1 of 2 empty"),
    OUTSIDE(a_sum_of_other_shapes, BAD, "f32 [2] and f32 [3]"),
    OUTSIDE(an_axis_that_is_not_there, BAD, "axis 5 is outside"),
    OUTSIDE(an_output_behind_the_next_step, BAD, "cadre_per_replica_retain"),
    OUTSIDE(values_for_other_replicas, BAD, "give one for each"),
    OUTSIDE(no_batch_to_run, CADRE_OUT_OF_RANGE, "has no step 3 in epoch 0"),
    OUTSIDE(a_failure_without_a_word, BAD, "say why with cadre_fail"),
    INSIDE(weights_that_do_not_fit, BAD, "give a scalar, one weight a row"),
    INSIDE(a_loss_that_is_a_number, BAD, "one for each row"),
    OUTSIDE(a_metric_without_targets, EARLY, "in the function given to cadre_run"),
    OUTSIDE(no_such_metric, BAD, "enum cadre_metric_kind"),
    OUTSIDE(a_state_of_no_bytes, BAD, "has 0 bytes"),
    OUTSIDE(a_state_twice, CADRE_ALREADY_EXISTS, "is taken"),
    OUTSIDE(a_state_too_late, EARLY, "register all before"),
    OUTSIDE(an_exit_code_that_is_none, BAD, "give 1 to 255"),
    OUTSIDE(a_report_without_a_name, BAD, "is empty"),
};

static void each_mistake_is_told(void **state)
{
    (void)state;
    mistakes_check(mistakes, sizeof mistakes / sizeof mistakes[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_mistake_is_told)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
