/* SPDX-License-Identifier: Apache-2.0
 * What a newcomer gives wrongly: tensors, datasets, values of replicas, losses, states. */
#include "mistakes.h"

/* The error of a dataset is returned where it is distributed. */
static cadre_status distribute(struct fixture *fixture, cadre_dataset *data)
{
    cadre_distributed_dataset *distributed;
    return cadre_distribute_dataset(
        fixture->strategy, data, &(cadre_input_options){.name = "wrong"}, &distributed);
}

static cadre_dataset *six(void)
{
    return cadre_dataset_range(0, 6, 1);
}

/* ---- tensors ---- */

static cadre_status a_negative_dimension(struct fixture *fixture)
{
    (void)fixture;
    cadre_tensor *tensor;
    return cadre_tensor_create(CADRE_F32, 1, (const int64_t[]){-2}, &tensor);
}

static cadre_status too_many_dimensions(struct fixture *fixture)
{
    (void)fixture;
    cadre_tensor *tensor;
    const int64_t dims[CADRE_RANK_MAX + 1] = {0};
    return cadre_tensor_create(CADRE_F32, CADRE_RANK_MAX + 1, dims, &tensor);
}

static cadre_status no_dimensions(struct fixture *fixture)
{
    (void)fixture;
    cadre_tensor *tensor;
    return cadre_tensor_create(CADRE_F32, 2, NULL, &tensor);
}

static cadre_status no_such_type(struct fixture *fixture)
{
    (void)fixture;
    cadre_tensor *tensor;
    return cadre_tensor_create((cadre_dtype)99, 0, NULL, &tensor);
}

static cadre_status no_data(struct fixture *fixture)
{
    (void)fixture;
    cadre_tensor *tensor;
    return cadre_tensor_from_data(CADRE_F32, 1, (const int64_t[]){2}, NULL, &tensor);
}

static cadre_status rows_beyond_the_end(struct fixture *fixture)
{
    cadre_tensor *view;
    return cadre_tensor_view_rows(fixture->pair, 1, 2, &view);
}

static cadre_status rows_of_a_scalar(struct fixture *fixture)
{
    cadre_tensor *view;
    return cadre_tensor_view_rows(fixture->scalar, 0, 1, &view);
}

static cadre_status a_copy_of_nothing(struct fixture *fixture)
{
    (void)fixture;
    cadre_tensor *copy;
    return cadre_tensor_copy(NULL, &copy);
}

/* ---- datasets ---- */

static cadre_status a_range_that_stands_still(struct fixture *fixture)
{
    return distribute(fixture, cadre_dataset_batch(cadre_dataset_range(0, 6, 0), 2, false));
}

static cadre_status batches_of_nothing(struct fixture *fixture)
{
    return distribute(fixture, cadre_dataset_batch(six(), 0, false));
}

static cadre_status no_batches(struct fixture *fixture)
{
    return distribute(fixture, six());
}

static cadre_status slices_of_different_lengths(struct fixture *fixture)
{
    cadre_tensor *const tensors[] = {fixture->pair, fixture->triple};
    return distribute(
        fixture, cadre_dataset_batch(cadre_dataset_tensor_slices(tensors, 2), 2, false));
}

static cadre_status no_function_to_map(struct fixture *fixture)
{
    return distribute(
        fixture, cadre_dataset_batch(cadre_dataset_map(six(), NULL, NULL, NULL), 2, false));
}

static cadre_status fail_without_a_word(const cadre_element *in, cadre_element *out, void *user)
{
    (void)in;
    (void)out;
    (void)user;
    return CADRE_DATA_LOSS;
}

static cadre_status a_map_that_fails(struct fixture *fixture)
{
    return distribute(fixture,
        cadre_dataset_batch(cadre_dataset_map(six(), fail_without_a_word, NULL, NULL), 2, false));
}

static cadre_status a_negative_take(struct fixture *fixture)
{
    return distribute(fixture, cadre_dataset_batch(cadre_dataset_take(six(), -1), 2, false));
}

static cadre_status a_zip_of_none(struct fixture *fixture)
{
    return distribute(fixture, cadre_dataset_batch(cadre_dataset_zip(NULL, 0), 2, false));
}

static cadre_status a_pattern_without_files(struct fixture *fixture)
{
    const char *patterns[] = {"/nowhere/*.txt"};
    return distribute(
        fixture, cadre_dataset_batch(cadre_dataset_list_files(patterns, 1, NULL), 2, false));
}

static cadre_status a_file_that_is_not_there(struct fixture *fixture)
{
    return distribute(fixture, cadre_dataset_batch(cadre_dataset_npy("/nowhere/x.npy"), 2, false));
}

static cadre_status a_shuffle_of_all_that_ends_nowhere(struct fixture *fixture)
{
    cadre_dataset *endless = cadre_dataset_repeat(six(), -1);
    return distribute(fixture,
        cadre_dataset_batch(cadre_dataset_shuffle(endless, CADRE_SHUFFLE_ALL, 1, NULL), 2, false));
}

static cadre_status a_shuffle_without_a_buffer(struct fixture *fixture)
{
    return distribute(
        fixture, cadre_dataset_batch(cadre_dataset_shuffle(six(), 0, 1, NULL), 2, false));
}

static cadre_status a_name_that_is_taken(struct fixture *fixture)
{
    cadre_distributed_dataset *distributed;
    return cadre_distribute_dataset(fixture->strategy, cadre_dataset_batch(six(), 2, false),
        &(cadre_input_options){.name = "data"}, &distributed);
}

static cadre_status a_batch_before_any_epoch(struct fixture *fixture)
{
    cadre_per_replica *batch;
    return cadre_next(fixture->data, &batch);
}

static cadre_status files_where_there_are_none(struct fixture *fixture)
{
    cadre_distributed_dataset *distributed;
    return cadre_distribute_dataset(fixture->strategy, cadre_dataset_batch(six(), 2, false),
        &(cadre_input_options){.name = "files", .auto_shard = CADRE_SHARD_FILE}, &distributed);
}

/* ---- values ---- */

static cadre_status give_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    struct fixture *fixture = user;
    return cadre_tensor_copy(
        cadre_replica_id(replica) == 0 ? fixture->pair : fixture->triple, &outputs[0]);
}

static cadre_status an_output_that_is_missing(struct fixture *fixture)
{
    cadre_per_replica *outputs[2];
    return cadre_run(fixture->strategy, give_one, fixture, NULL, 2, outputs);
}

static cadre_status a_sum_of_other_shapes(struct fixture *fixture)
{
    cadre_per_replica *output;
    cadre_tensor *sum;
    CADRE_TRY(cadre_run(fixture->strategy, give_one, fixture, NULL, 1, &output));
    return cadre_reduce(fixture->strategy, CADRE_SUM, output, CADRE_AXIS_NONE, &sum);
}

static cadre_status an_axis_that_is_not_there(struct fixture *fixture)
{
    cadre_per_replica *output;
    cadre_tensor *sum;
    CADRE_TRY(cadre_run(fixture->strategy, give_one, fixture, NULL, 1, &output));
    return cadre_reduce(fixture->strategy, CADRE_SUM, output, 5, &sum);
}

static cadre_status an_output_behind_the_next_step(struct fixture *fixture)
{
    cadre_per_replica *output;
    cadre_tensor *sum;
    CADRE_TRY(cadre_run(fixture->strategy, give_one, fixture, NULL, 1, &output));
    CADRE_TRY(cadre_run(fixture->strategy, training_nothing, NULL, NULL, 0, NULL));
    return cadre_reduce(fixture->strategy, CADRE_SUM, output, CADRE_AXIS_NONE, &sum);
}

static cadre_status values_for_other_replicas(struct fixture *fixture)
{
    cadre_per_replica *values;
    cadre_tensor *const three[] = {fixture->pair, fixture->pair, fixture->pair};
    return cadre_values_from_tensors(fixture->strategy, three, 3, &values);
}

static cadre_status no_batch_to_run(struct fixture *fixture)
{
    cadre_per_replica *batch;
    while (cadre_next_epoch(fixture->data, 1, NULL)) {
        while (cadre_next(fixture->data, &batch) == CADRE_OK) {
            CADRE_TRY(cadre_run(fixture->strategy, training_nothing, NULL, batch, 0, NULL));
        }
    }
    return cadre_next(fixture->data, &batch);
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

static cadre_status a_failure_without_a_word(struct fixture *fixture)
{
    return cadre_run(fixture->strategy, give_up, NULL, NULL, 0, NULL);
}

/* ---- losses, metrics ---- */

static cadre_status weights_that_do_not_fit(cadre_replica *replica, struct fixture *fixture)
{
    cadre_tensor *loss;
    return cadre_compute_average_loss(replica, fixture->pair, fixture->triple, NULL, &loss);
}

static cadre_status a_loss_that_is_a_number(cadre_replica *replica, struct fixture *fixture)
{
    cadre_tensor *loss;
    return cadre_compute_average_loss(replica, fixture->scalar, NULL, NULL, &loss);
}

static cadre_status a_metric_without_targets(struct fixture *fixture)
{
    cadre_metric *metric;
    CADRE_TRY(cadre_metric_create(
        fixture->strategy, CADRE_METRIC_MEAN_SQUARED_ERROR, "error", NULL, &metric));
    cadre_status status = cadre_metric_update(NULL, metric, fixture->pair, NULL, NULL);
    cadre_metric_release(metric);
    return status;
}

static cadre_status no_such_metric(struct fixture *fixture)
{
    cadre_metric *metric;
    return cadre_metric_create(fixture->strategy, (cadre_metric_kind)50, "odd", NULL, &metric);
}

/* ---- checkpoints, the end ---- */

static int64_t counted;

static cadre_status a_state_of_no_bytes(struct fixture *fixture)
{
    return cadre_state_register(fixture->strategy, "empty", &counted, 0);
}

static cadre_status a_state_twice(struct fixture *fixture)
{
    CADRE_TRY(cadre_state_register(fixture->strategy, "counted", &counted, sizeof counted));
    return cadre_state_register(fixture->strategy, "counted", &counted, sizeof counted);
}

static cadre_status a_state_too_late(struct fixture *fixture)
{
    CADRE_TRY(cadre_run(fixture->strategy, training_nothing, NULL, NULL, 0, NULL));
    return cadre_state_register(fixture->strategy, "late", &counted, sizeof counted);
}

static cadre_status an_exit_code_that_is_none(struct fixture *fixture)
{
    return cadre_preemption_handler_set(
        fixture->strategy, &(cadre_preemption_options){.exit_code = 300});
}

static cadre_status a_report_without_a_name(struct fixture *fixture)
{
    return cadre_report(fixture->strategy, "", 1);
}

static const struct mistake mistakes[] = {
    BETWEEN_STEPS(a_negative_dimension, BAD, "-2"),
    BETWEEN_STEPS(too_many_dimensions, BAD, "limit of 8 dimensions"),
    BETWEEN_STEPS(no_dimensions, BAD, "dims is NULL"),
    BETWEEN_STEPS(no_such_type, BAD, "enum cadre_dtype"),
    BETWEEN_STEPS(no_data, BAD, "data is NULL"),
    BETWEEN_STEPS(rows_beyond_the_end, CADRE_OUT_OF_RANGE, "2 rows from row 1"),
    BETWEEN_STEPS(rows_of_a_scalar, BAD, "a scalar has no rows"),
    BETWEEN_STEPS(a_copy_of_nothing, BAD, "'tensor'"),
    BETWEEN_STEPS(a_range_that_stands_still, BAD, "step is 0"),
    BETWEEN_STEPS(batches_of_nothing, BAD, "size 0"),
    BETWEEN_STEPS(no_batches, BAD, "call cadre_dataset_batch first"),
    BETWEEN_STEPS(slices_of_different_lengths, BAD, "3 rows and tensor 0 has 2"),
    BETWEEN_STEPS(no_function_to_map, BAD, "the function is NULL"),
    BETWEEN_STEPS(a_map_that_fails, CADRE_DATA_LOSS, "say why with cadre_fail"),
    BETWEEN_STEPS(a_negative_take, BAD, "count -1"),
    BETWEEN_STEPS(a_zip_of_none, BAD, "no dataset was given"),
    BETWEEN_STEPS(a_pattern_without_files, CADRE_NOT_FOUND, "/nowhere/*.txt"),
    BETWEEN_STEPS(a_file_that_is_not_there, CADRE_NOT_FOUND, "/nowhere/x.npy"),
    BETWEEN_STEPS(a_shuffle_of_all_that_ends_nowhere, BAD, "give a buffer size"),
    BETWEEN_STEPS(a_shuffle_without_a_buffer, BAD, "CADRE_SHUFFLE_ALL"),
    BETWEEN_STEPS(a_name_that_is_taken, CADRE_ALREADY_EXISTS, "another name"),
    BETWEEN_STEPS(a_batch_before_any_epoch, EARLY, "call cadre_next_epoch before"),
    BETWEEN_STEPS(files_where_there_are_none, CADRE_NOT_FOUND, "use CADRE_SHARD_DATA"),
    BETWEEN_STEPS(an_output_that_is_missing, BAD, "left output 1 of 2 empty"),
    BETWEEN_STEPS(a_sum_of_other_shapes, BAD, "f32 [2] and f32 [3]"),
    BETWEEN_STEPS(an_axis_that_is_not_there, BAD, "axis 5 is outside"),
    BETWEEN_STEPS(an_output_behind_the_next_step, BAD, "cadre_per_replica_retain"),
    BETWEEN_STEPS(values_for_other_replicas, BAD, "give one for each"),
    BETWEEN_STEPS(no_batch_to_run, CADRE_OUT_OF_RANGE, "has no step 3 in epoch 0"),
    BETWEEN_STEPS(a_failure_without_a_word, BAD, "give one with cadre_fail"),
    INSIDE(weights_that_do_not_fit, BAD, "give a scalar, one weight a row"),
    INSIDE(a_loss_that_is_a_number, BAD, "one for each row"),
    BETWEEN_STEPS(a_metric_without_targets, EARLY, "in the function given to cadre_run"),
    BETWEEN_STEPS(no_such_metric, BAD, "enum cadre_metric_kind"),
    BETWEEN_STEPS(a_state_of_no_bytes, BAD, "has 0 bytes"),
    BETWEEN_STEPS(a_state_twice, CADRE_ALREADY_EXISTS, "is taken"),
    BETWEEN_STEPS(a_state_too_late, EARLY, "register all before"),
    BETWEEN_STEPS(an_exit_code_that_is_none, BAD, "give 1 to 255"),
    BETWEEN_STEPS(a_report_without_a_name, BAD, "is empty"),
};

static void each_mistake_is_reported(void **state)
{
    (void)state;
    mistakes_check(mistakes, sizeof mistakes / sizeof mistakes[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_mistake_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
