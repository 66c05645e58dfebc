/* SPDX-License-Identifier: Apache-2.0
 * Several values for one step, and structures by name on their whole way: from datasets to the
 * replicas, and from what these return to the results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "training.h"

static const char *const image_and_label[] = {"image", "label"};

/* Elements 'image' i and 'label' 100 + i, in batches of four. */
static cadre_dataset *images(int64_t count)
{
    cadre_dataset *const both[] = {
        cadre_dataset_range(0, count, 1), cadre_dataset_range(100, 100 + count, 1)};
    return cadre_dataset_batch(
        cadre_dataset_named(cadre_dataset_zip(both, 2), image_and_label, 2), 4, false);
}

static cadre_distributed_dataset *distribute(cadre_strategy *strategy, cadre_dataset *data)
{
    cadre_distributed_dataset *distributed;
    assert_public_ok(cadre_distribute_dataset(strategy, data, NULL, &distributed));
    assert_true(cadre_next_epoch(distributed, 1, NULL));
    return distributed;
}

static int64_t sum_of(const cadre_tensor *tensor)
{
    int64_t sum = 0;
    const int64_t *values = cadre_tensor_const_data(tensor);
    for (int64_t i = 0; i < cadre_tensor_count(tensor); i++) {
        sum += values[i];
    }
    return sum;
}

static cadre_status return_sum(cadre_replica *replica, const char *input, const char *output)
{
    cadre_tensor *tensor;
    cadre_tensor *sum;
    CADRE_TRY(cadre_replica_input(replica, input, &tensor));
    CADRE_TRY(cadre_tensor_from_i64(sum_of(tensor), &sum));
    return cadre_replica_output(replica, output, sum);
}

/* The sum over all replicas of what is called so; the outputs are those of one step. */
static int64_t reduced(cadre_strategy *strategy, cadre_per_replica *const outputs[],
    uint32_t n_outputs, const char *name)
{
    cadre_per_replica *part;
    cadre_tensor *sum;
    assert_public_ok(cadre_values_named(outputs, n_outputs, name, &part));
    assert_public_ok(cadre_reduce(strategy, CADRE_SUM, part, CADRE_AXIS_NONE, &sum));
    int64_t value = *(const int64_t *)cadre_tensor_const_data(sum);
    cadre_tensor_release(sum);
    cadre_per_replica_release(part);
    return value;
}

/* --- from datasets to results --- */

static cadre_status sum_by_name(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_tensor *label;
    (void)outputs;
    (void)user;
    CADRE_TRY(cadre_replica_input(replica, "label", &label));
    if (label != inputs[1]) {
        return cadre_fail(CADRE_INTERNAL, "the label is the second input");
    }
    CADRE_TRY(return_sum(replica, "image", "sums/image"));
    return return_sum(replica, "label", "sums/label");
}

static void names_go_from_the_dataset_to_the_result(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data = distribute(strategy, images(10));
    cadre_element_spec spec;
    cadre_per_replica *batch;
    cadre_per_replica *outputs[2];
    int64_t sums[2] = {0};
    assert_public_ok(cadre_distributed_spec(data, &spec));
    assert_string_equal(spec.names[0], "image");
    assert_string_equal(spec.names[1], "label");
    while (cadre_next(data, &batch) == CADRE_OK) {
        cadre_per_replica *both;
        assert_public_ok(cadre_run(strategy, sum_by_name, NULL, batch, 2, outputs));
        sums[0] += reduced(strategy, outputs, 2, "sums/image");
        assert_public_ok(cadre_values_named(outputs, 2, "sums", &both)); /* a structure of two */
        assert_int_equal(cadre_per_replica_components(both), 2);
        sums[1] += reduced(strategy, &both, 1, "label");
        cadre_per_replica_release(both);
    }
    assert_int_equal(sums[0], 45);
    assert_int_equal(sums[1], 1045);
    cadre_strategy_release(strategy);
}

/* --- several values --- */

struct received {
    int64_t rate;
    int64_t id;
    int64_t rows;
};

static cadre_status receive(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct received *received = &((struct received *)user)[cadre_replica_local_id(replica)];
    cadre_tensor *image;
    cadre_tensor *rate;
    (void)outputs;
    CADRE_TRY(cadre_replica_input(replica, "batch/image", &image));
    CADRE_TRY(cadre_replica_input(replica, "rate", &rate));
    if (cadre_replica_input_count(replica) != 4 || image != inputs[0] || rate != inputs[2]) {
        return cadre_fail(CADRE_INTERNAL, "inputs are those of the arguments, in their order");
    }
    received->rows += cadre_tensor_rows(image);
    received->rate = sum_of(rate);
    received->id = sum_of(inputs[3]);
    return CADRE_OK;
}

static cadre_status own_id(const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    (void)user;
    ret_value->count = 1;
    return cadre_tensor_from_i64(context->replica_id_in_sync_group, &ret_value->tensors[0]);
}

static void a_step_takes_several_values(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data = distribute(strategy, images(10));
    struct received received[2] = {{0}};
    cadre_per_replica *batch;
    cadre_per_replica *ids;
    cadre_tensor *rate;
    assert_public_ok(cadre_values_from_function(strategy, own_id, NULL, &ids));
    while (cadre_next(data, &batch) == CADRE_OK) {
        assert_public_ok(cadre_tensor_from_i64(7 + (int64_t)cadre_step(data), &rate));
        const cadre_argument arguments[] = {
            {.values = batch, .name = "batch"}, {.tensor = rate, .name = "rate"}, {.values = ids}};
        assert_public_ok(cadre_run_arguments(strategy, receive, received, arguments, 3, 0, NULL));
        cadre_tensor_release(rate);
    }
    assert_int_equal(received[0].rows + received[1].rows, 10);
    assert_int_equal(cadre_step(data), 3); /* the batch was consumed */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(received[i].rate, 9);
        assert_int_equal(received[i].id, i);
    }
    assert_public_ok(cadre_run_arguments(strategy, training_nothing, NULL, NULL, 0, 0, NULL));
    cadre_per_replica_release(ids);
    cadre_strategy_release(strategy);
}

/* --- two datasets in one step --- */

static cadre_status sum_both(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    CADRE_TRY(return_sum(replica, "labelled/image", "labelled"));
    return return_sum(replica, "other", "other");
}

/* Zipped they are one stream of zip's length, whose batches come apart again; here of four rows and
 * of seven. */
static void a_step_is_consumed_two_datasets(void **state)
{
    (void)state;
    for (uint32_t replicas = 1; replicas <= 4; replicas *= 2) {
        cadre_strategy *strategy = training_strategy(replicas);
        cadre_dataset *const two[] = {
            images(10), cadre_dataset_batch(cadre_dataset_range(0, 100, 1), 7, false)};
        cadre_distributed_dataset *data = distribute(strategy, cadre_dataset_zip(two, 2));
        cadre_per_replica *batch;
        cadre_per_replica *outputs[2];
        int64_t labelled = 0;
        int64_t other = 0;
        assert_int_equal(cadre_distributed_steps(data), 3);
        while (cadre_next(data, &batch) == CADRE_OK) {
            cadre_argument arguments[] = {{.name = "labelled"}, {.name = "other"}};
            assert_public_ok(cadre_values_named(&batch, 1, "0", &arguments[0].values));
            assert_public_ok(cadre_values_named(&batch, 1, "1", &arguments[1].values));
            assert_int_equal(cadre_per_replica_components(arguments[0].values), 2);
            assert_public_ok(
                cadre_run_arguments(strategy, sum_both, NULL, arguments, 2, 2, outputs));
            labelled += reduced(strategy, outputs, 2, "labelled");
            other += reduced(strategy, outputs, 2, "other");
            cadre_per_replica_release(arguments[0].values);
            cadre_per_replica_release(arguments[1].values);
        }
        assert_int_equal(labelled, 45);
        assert_int_equal(other, 20 * 21 / 2); /* its first three batches */
        assert_int_equal(cadre_step(data), 3);
        assert_int_equal(cadre_strategy_position(strategy), 3);
        assert_false(cadre_next_epoch(data, 1, NULL));
        cadre_strategy_release(strategy);
    }
}

static void batches_of_two_datasets_are_refused(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data[2] = {
        distribute(strategy, images(10)), distribute(strategy, images(10))};
    cadre_argument arguments[2] = {{0}};
    assert_public_ok(cadre_next(data[0], &arguments[0].values));
    assert_public_ok(cadre_next(data[1], &arguments[1].values));
    assert_public_error(
        cadre_run_arguments(strategy, training_nothing, NULL, arguments, 2, 0, NULL),
        CADRE_INVALID_ARGUMENT,
        "argument 1 of a step is a batch of another dataset or another step than one before it, "
        "and a step is one of the ledger's of one dataset: put the datasets together with "
        "cadre_dataset_zip");
    /* The same batch twice is one: it is consumed once. */
    arguments[1].values = arguments[0].values;
    assert_public_ok(cadre_run_arguments(strategy, training_nothing, NULL, arguments, 2, 0, NULL));
    assert_int_equal(cadre_step(data[0]), 1);
    assert_int_equal(cadre_step(data[1]), 0);
    cadre_strategy_release(strategy);
}

/* --- values that the program makes --- */

static cadre_status pair_of(
    const cadre_value_context *context, cadre_element *ret_value, void *user)
{
    static const char *const swapped[] = {"label", "image"};
    bool alike = user == NULL;
    ret_value->names = alike || context->replica_id_in_sync_group == 0 ? image_and_label : swapped;
    for (; ret_value->count < 2; ret_value->count++) {
        CADRE_TRY(cadre_tensor_from_i64(
            (int64_t)ret_value->count, &ret_value->tensors[ret_value->count]));
    }
    return CADRE_OK;
}

static void values_have_the_names_of_their_elements(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *pair;
    cadre_per_replica *outputs[2];
    bool differ = true;
    assert_public_ok(cadre_values_from_function(strategy, pair_of, NULL, &pair));
    assert_public_ok(cadre_run(strategy, sum_by_name, NULL, pair, 2, outputs));
    assert_int_equal(reduced(strategy, outputs, 2, "sums/label"), 2);
    cadre_per_replica_release(pair);
    assert_public_error(cadre_values_from_function(strategy, pair_of, &differ, &pair),
        CADRE_INVALID_ARGUMENT, "components of other names");
    cadre_strategy_release(strategy);
}

static char *printed(cadre_per_replica *value)
{
    char *text;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    assert_public_ok(cadre_value_print(value, to));
    assert_int_equal(fclose(to), 0);
    return text;
}

static void structures_are_printed_as_dicts_and_tuples(void **state)
{
    (void)state;
    static const char *const names[] = {
        "0/image/left", "0/image/right", "0/label", "1", "2", "3/a/x"};
    static const char *const wanted[] = {
        "({'image': {'left': <cadre_tensor: shape=(), dtype=int64, numpy=0>, 'right': "
        "<cadre_tensor: shape=(), dtype=int64, numpy=1>}, 'label': <cadre_tensor: shape=(), "
        "dtype=int64, numpy=2>}, <cadre_tensor: shape=(), dtype=int64, numpy=3>, <cadre_tensor: "
        "shape=(), dtype=int64, numpy=4>, {'a': {'x': <cadre_tensor: shape=(), dtype=int64, "
        "numpy=5>}})\n",
        "(<cadre_tensor: shape=(), dtype=int64, numpy=0>, <cadre_tensor: shape=(), dtype=int64, "
        "numpy=1>)\n"};
    cadre_strategy *strategy = training_strategy(1);
    for (int named = 1; named >= 0; named--) {
        cadre_argument arguments[6];
        cadre_per_replica *value;
        uint32_t count = named ? 6 : 2;
        for (uint32_t i = 0; i < count; i++) {
            arguments[i] = (cadre_argument){.name = named ? names[i] : NULL};
            assert_public_ok(cadre_tensor_from_i64((int64_t)i, &arguments[i].tensor));
        }
        assert_public_ok(cadre_values_join(strategy, arguments, count, &value));
        char *text = printed(value);
        assert_string_equal(text, wanted[1 - named]);
        free(text);
        cadre_per_replica_release(value);
        for (uint32_t i = 0; i < count; i++) {
            cadre_tensor_release(arguments[i].tensor);
        }
    }
    cadre_strategy_release(strategy);
}

/* --- outputs --- */

/* As many as there may be. */
static cadre_status give_all(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    for (int i = 0; i < CADRE_OUTPUTS_MAX + (user != NULL ? 1 : 0); i++) {
        char name[32];
        cadre_tensor *tensor;
        snprintf(name, sizeof name, "output-%d", i);
        CADRE_TRY(cadre_tensor_from_i64(i, &tensor));
        CADRE_TRY(cadre_replica_output(replica, name, tensor));
    }
    return CADRE_OK;
}

static void there_are_64_outputs(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *outputs[CADRE_OUTPUTS_MAX];
    bool more = true;
    for (int step = 0; step < 2; step++) {
        assert_public_ok(cadre_run(strategy, give_all, NULL, NULL, CADRE_OUTPUTS_MAX, outputs));
        assert_int_equal(reduced(strategy, outputs, CADRE_OUTPUTS_MAX, "output-63"), 126);
    }
    assert_public_error(cadre_run(strategy, give_all, &more, NULL, CADRE_OUTPUTS_MAX, outputs),
        CADRE_INVALID_ARGUMENT, "there is no place for output 'output-64'");
    cadre_strategy_release(strategy);
}

enum wrong { OTHER_NAMES, SOME_UNNAMED, TWICE, EMPTY, NO_TENSOR, NO_NAME, NOT_LOOKED_AT };

static cadre_status give_wrong(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    enum wrong wrong = *(const enum wrong *)user;
    bool second = cadre_replica_local_id(replica) == 1;
    cadre_tensor *tensor;
    (void)inputs;
    CADRE_TRY(cadre_tensor_from_i64(1, &tensor));
    switch (wrong) {
    case OTHER_NAMES:
        return cadre_replica_output(replica, second ? "loss" : "cost", tensor);
    case SOME_UNNAMED:
        if (second) {
            outputs[0] = tensor;
            return CADRE_OK;
        }
        return cadre_replica_output(replica, "cost", tensor);
    case TWICE:
        CADRE_TRY(cadre_replica_output(replica, "cost", cadre_tensor_retain(tensor)));
        return cadre_replica_output(replica, "cost", tensor);
    case EMPTY:
        return cadre_replica_output(replica, "", tensor);
    case NO_TENSOR:
        cadre_tensor_release(tensor);
        return cadre_replica_output(replica, "cost", NULL);
    case NO_NAME:
        return cadre_replica_output(replica, NULL, tensor);
    default:
        (void)cadre_replica_output(replica, "", tensor); /* it fails the step all the same */
        return cadre_tensor_from_i64(1, &outputs[0]);
    }
}

static void wrong_outputs_fail_the_step(void **state)
{
    (void)state;
    static const struct {
        enum wrong wrong;
        const char *part;
    } cases[] = {
        {OTHER_NAMES, "output 0 is called 'cost' by replica 0 and 'loss' by replica 1"},
        {SOME_UNNAMED, "output 0 is called 'cost' by replica 0 and '' by replica 1"},
        {TWICE, "has given an output 'cost' already, as number 0"},
        {EMPTY, "the name is empty"},
        {NO_TENSOR, "tensor"},
        {NO_NAME, "name"},
        {NOT_LOOKED_AT, "the name is empty"},
    };
    cadre_strategy *strategy = training_strategy(2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_per_replica *output;
        enum wrong wrong = cases[i].wrong;
        assert_public_error(cadre_run(strategy, give_wrong, &wrong, NULL, 1, &output),
            CADRE_INVALID_ARGUMENT, cases[i].part);
        assert_null(output);
        assert_int_equal(cadre_strategy_position(strategy), 0);
    }
    cadre_strategy_release(strategy);
}

/* --- what is not there --- */

static cadre_status look_for(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_tensor *tensor;
    (void)inputs;
    (void)outputs;
    return cadre_replica_input(replica, user, &tensor);
}

static void missing_names_are_reported_with_the_known(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_distributed_dataset *data = distribute(strategy, images(10));
    cadre_per_replica *batch;
    cadre_per_replica *part;
    cadre_tensor *tensor;
    char name[] = "lable";
    char twice[] = "image";
    assert_public_ok(cadre_next(data, &batch));
    assert_public_error(cadre_run(strategy, look_for, name, batch, 0, NULL), CADRE_NOT_FOUND,
        "no component is called 'lable'; of the 2 that there are: 'image', 'label'");
    assert_public_error(
        cadre_run(strategy, look_for, name, NULL, 0, NULL), CADRE_NOT_FOUND, "of the 0");
    const cadre_argument arguments[] = {{.values = batch}, {.values = batch}};
    assert_public_error(cadre_run_arguments(strategy, look_for, twice, arguments, 2, 0, NULL),
        CADRE_INVALID_ARGUMENT, "2 components are called 'image'");
    assert_public_error(
        cadre_values_named(&batch, 1, "imag", &part), CADRE_NOT_FOUND, "'image', 'label'");
    assert_null(part);
    cadre_per_replica *const values[] = {batch, batch};
    assert_public_error(cadre_values_named(values, 2, "image", &part), CADRE_INVALID_ARGUMENT,
        "2 components are called 'image'");
    assert_public_error(
        cadre_values_named(NULL, 1, "image", &part), CADRE_INVALID_ARGUMENT, "values");
    assert_public_error(cadre_values_named(&batch, 1, NULL, &part), CADRE_INVALID_ARGUMENT, "name");
    assert_public_error(
        cadre_values_named(&batch, 1, "image", NULL), CADRE_INVALID_ARGUMENT, "ret_values");
    assert_public_error(cadre_replica_input(NULL, "image", &tensor), CADRE_FAILED_PRECONDITION, "");
    assert_public_error(cadre_run_arguments(strategy, look_for, NULL, NULL, 1, 0, NULL),
        CADRE_INVALID_ARGUMENT, "arguments");
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_go_from_the_dataset_to_the_result),
        cmocka_unit_test(a_step_takes_several_values),
        cmocka_unit_test(a_step_is_consumed_two_datasets),
        cmocka_unit_test(batches_of_two_datasets_are_refused),
        cmocka_unit_test(values_have_the_names_of_their_elements),
        cmocka_unit_test(structures_are_printed_as_dicts_and_tuples),
        cmocka_unit_test(there_are_64_outputs),
        cmocka_unit_test(wrong_outputs_fail_the_step),
        cmocka_unit_test(missing_names_are_reported_with_the_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
