/* SPDX-License-Identifier: Apache-2.0
 * Distributed input: the worked cases of the semantics as numbers, the same global order at any
 * number of workers, each sample once per epoch, and what is refused. */
#include "tests/unit/input/cmocka_unit.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/input/reading.h"

enum chain {
    BATCHED,           /* range -> batch: indexable, cut without reading the rest */
    MAPPED,            /* range -> batch -> map: indexable, the batch size hidden */
    SEQUENTIAL,        /* range -> buffer of 1 -> batch */
    SEQUENTIAL_BATCHES /* range -> batch -> buffer of 1 */
};

static cadre_dataset *make_chain(enum chain chain, int64_t count, int64_t batch)
{
    cadre_dataset *data = cadre_dataset_range(0, count, 1);
    data = chain == SEQUENTIAL ? make_sequential(data) : data;
    data = cadre_dataset_batch(data, batch, false);
    data = chain == MAPPED ? cadre_dataset_map(data, copy_element, NULL, NULL) : data;
    return chain == SEQUENTIAL_BATCHES ? make_sequential(data) : data;
}

static const struct {
    int64_t count;
    int64_t batch;
    uint32_t workers;
    uint32_t replicas;
    const char *steps;
} data_cases[] = {
    {8, 3, 2, 1, "[0 1] | [2] / [3 4] | [5] / [6] | [7]"},
    {9, 2, 2, 1, "[0] | [1] / [2] | [3] / [4] | [5] / [6] | [7] / [8] | []"},
    {12, 4, 2, 1, "[0 1] | [2 3] / [4 5] | [6 7] / [8 9] | [10 11]"},
    {14, 4, 2, 1, "[0 1] | [2 3] / [4 5] | [6 7] / [8 9] | [10 11] / [12] | [13]"},
    {16, 8, 2, 2, "[0 1][4 5] | [2 3][6 7] / [8 9][12 13] | [10 11][14 15]"},
    {8, 4, 3, 1, "[0 1] | [2 3] | [] / [4 5] | [6 7] | []"},
    {4, 2, 1, 2, "[0][1] / [2][3]"},
    {4, 4, 1, 5, "[0][1][2][3][]"},
    {6, 4, 1, 2, "[0 1][2 3] / [4][5]"},
    {8, 4, 1, 3, "[0 1][2 3][] / [4 5][6 7][]"},
    {9, 4, 1, 2, "[0 1][2 3] / [4 5][6 7] / [8][]"},
    {9, 4, 1, 4, "[0][1][2][3] / [4][5][6][7] / [8][][][]"},
    {10, 4, 1, 2, "[0 1][2 3] / [4 5][6 7] / [8][9]"},
    {5, 5, 1, 4, "[0 1][2 3][4][]"}, /* not 2 1 1 1 */
    {5, 5, 2, 2, "[0 1][4] | [2 3][]"},
    {7, 7, 1, 3, "[0 1 2][3 4 5][6]"},
    {7, 7, 1, 4, "[0 1][2 3][4 5][6]"},
    {1, 4, 1, 3, "[0][][]"},
    {1, 4, 3, 2, "[0][] | [][] | [][]"},
    {9, 6, 1, 2, "[0 1 2][3 4 5] / [6 7][8]"},
    {0, 4, 2, 2, ""},
    {7, 3, 1, 1, "[0 1 2] / [3 4 5] / [6]"},
};

static void check_data_cases(enum chain chain, cadre_shard_policy policy)
{
    for (size_t i = 0; i < sizeof data_cases / sizeof data_cases[0]; i++) {
        char text[1024];
        if (chain == MAPPED && data_cases[i].count == 0) {
            continue; /* nothing to see the type of the map by */
        }
        assert_string_equal(
            steps_text(make_chain(chain, data_cases[i].count, data_cases[i].batch),
                data_cases[i].workers, data_cases[i].replicas, policy, text, sizeof text),
            data_cases[i].steps);
    }
}

static void data_policy_indexable(void **state)
{
    (void)state;
    check_data_cases(BATCHED, CADRE_SHARD_DATA);
    check_data_cases(BATCHED, CADRE_SHARD_AUTO);
}

static void data_policy_map_after_batch(void **state)
{
    (void)state;
    check_data_cases(MAPPED, CADRE_SHARD_DATA);
}

/* Batches whose rows only reading tells, then others that are cut without it: the rows of a step
 * are its own. */
static void data_policy_both_kinds_of_batches(void **state)
{
    (void)state;
    char text[1024];
    cadre_dataset *data = cadre_dataset_batch(cadre_dataset_range(0, 8, 1), 4, false);
    data = cadre_dataset_map(data, copy_element, NULL, NULL);
    data = cadre_dataset_concatenate(
        data, cadre_dataset_batch(cadre_dataset_range(8, 14, 1), 3, false));
    assert_string_equal(steps_text(data, 2, 1, CADRE_SHARD_DATA, text, sizeof text),
        "[0 1] | [2 3] / [4 5] | [6 7] / [8 9] | [10] / [11 12] | [13]");

    /* By one reader, step after step. */
    data = cadre_dataset_batch(cadre_dataset_range(0, 8, 1), 4, false);
    data = cadre_dataset_map(data, copy_element, NULL, NULL);
    data = cadre_dataset_concatenate(
        data, cadre_dataset_batch(cadre_dataset_range(8, 14, 1), 3, false));
    const struct distributed_layout layout = {
        .workers = 2, .replicas = 1, .policy = CADRE_SHARD_DATA, .name = "both"};
    struct distributed_input *input = NULL;
    struct cadre_error error = {0};
    ASSERT_OK(distributed_input_open(data, &layout, &input, &error));
    for (uint64_t step = 0; step < 4; step++) {
        struct distributed_batch batch = {0};
        ASSERT_OK(distributed_input_read(input, 0, step, &batch, &error));
        assert_int_equal(batch.global_rows, step < 2 ? 4 : 3);
        distributed_batch_clear(&batch);
    }
    distributed_input_close(input);
    cadre_dataset_release(data);
}

static void data_policy_sequential(void **state)
{
    (void)state;
    check_data_cases(SEQUENTIAL, CADRE_SHARD_DATA);
    check_data_cases(SEQUENTIAL_BATCHES, CADRE_SHARD_DATA);
}

static const struct {
    int64_t count;
    int64_t batch;
    uint32_t workers;
    uint32_t replicas;
    const char *steps;
} off_cases[] = {
    {12, 8, 2, 1, "[0 1 2 3] | [0 1 2 3] / [4 5 6 7] | [4 5 6 7] / [8 9 10 11] | [8 9 10 11]"},
    {12, 4, 2, 1,
        "[0 1] | [0 1] / [2 3] | [2 3] / [4 5] | [4 5] / [6 7] | [6 7] / [8 9] | [8 9] / "
        "[10 11] | [10 11]"},
    {5, 5, 1, 4, "[0 1][2][3][4]"},
    /* The tail: sizes 3 3 take the batches of 6 and 3 rows as one stream. */
    {9, 6, 1, 2, "[0 1 2][3 4 5] / [6 7 8][]"},
    /* G 10, 2 x 2: the lists 3 3 2 2 and 2 2 3 3. */
    {10, 10, 2, 2, "[0 1 2][3 4 5] | [0 1][2 3] / [6 7][8 9] | [4 5 6][7 8 9]"},
    /* G 5, 3 x 1: the lists 2 2 1, 2 1 2 and 1 2 2. */
    {5, 5, 3, 1, "[0 1] | [0 1] | [0] / [2 3] | [2] | [1 2] / [4] | [3 4] | [3 4]"},
    {7, 4, 1, 1, "[0 1 2 3] / [4 5 6]"},
};

static void off_policy_sizes_rule(void **state)
{
    (void)state;
    const enum chain chains[] = {BATCHED, SEQUENTIAL, SEQUENTIAL_BATCHES};
    for (size_t c = 0; c < 3; c++) {
        for (size_t i = 0; i < sizeof off_cases / sizeof off_cases[0]; i++) {
            char text[1024];
            const struct distributed_layout layout = {.workers = off_cases[i].workers,
                .replicas = off_cases[i].replicas,
                .policy = CADRE_SHARD_OFF,
                .rebatch = CADRE_REBATCH_TENSORFLOW};
            assert_string_equal(
                steps_text_of(make_chain(chains[c], off_cases[i].count, off_cases[i].batch),
                    &layout, text, sizeof text),
                off_cases[i].steps);
        }
    }
}

/* A map after the batch hides its size, so each batch is cut alone; all workers hold the same. */
static void off_policy_split_rule(void **state)
{
    (void)state;
    char text[1024];
    assert_string_equal(
        steps_text(make_chain(MAPPED, 5, 4), 2, 1, CADRE_SHARD_OFF, text, sizeof text),
        "[0 1] | [0 1] / [2 3] | [2 3] / [4] | [4] / [] | []");
    assert_string_equal(
        steps_text(make_chain(MAPPED, 5, 5), 1, 4, CADRE_SHARD_OFF, text, sizeof text),
        "[0 1][2 3][4][]");
}

static cadre_dataset *shuffled(int64_t count, int64_t batch, uint64_t seed)
{
    cadre_dataset *data = cadre_dataset_range(0, count, 1);
    data = cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, seed, NULL);
    return cadre_dataset_batch(data, batch, false);
}

/* The rows of one step in global order: piece after piece, whichever worker has it. */
static void global_order(cadre_dataset *data, uint32_t workers, uint32_t replicas, uint64_t epoch,
    struct numbers *ret_numbers)
{
    struct distributed_input *inputs[8] = {0};
    struct cadre_error error = {0};
    struct digest consumed = {0};
    struct digest whole = {0};
    ret_numbers->count = 0;
    for (uint32_t w = 0; w < workers; w++) {
        const struct distributed_layout layout = {.workers = workers,
            .worker_index = w,
            .replicas = replicas,
            .policy = CADRE_SHARD_DATA,
            .name = "order"};
        ASSERT_OK(distributed_input_open(data, &layout, &inputs[w], &error));
    }
    int64_t steps = distributed_input_steps(inputs[0], epoch);
    for (uint64_t step = 0; step < (uint64_t)steps; step++) {
        struct distributed_batch batches[8] = {0};
        for (uint32_t w = 0; w < workers; w++) {
            ASSERT_OK(distributed_input_read(inputs[w], epoch, step, &batches[w], &error));
            digest_merge(&consumed, &batches[w].consumed);
        }
        for (uint32_t piece = 0; piece < workers * replicas; piece++) {
            numbers_add(ret_numbers, batches[piece % workers].elements[piece / workers].tensors[0]);
        }
        for (uint32_t w = 0; w < workers; w++) {
            distributed_batch_clear(&batches[w]);
        }
    }
    /* What was consumed is what the whole set is, whatever the order and the layout. */
    struct digest_key key = digest_key_make("order", 5, epoch);
    for (size_t id = 0; id < ret_numbers->count; id++) {
        digest_add(&whole, &key, id);
    }
    assert_true(digest_equal(&consumed, &whole));
    for (uint32_t w = 0; w < workers; w++) {
        distributed_input_close(inputs[w]);
    }
}

static void order_is_the_same_at_any_number_of_workers(void **state)
{
    (void)state;
    static const uint32_t layouts[][2] = {{1, 1}, {1, 4}, {2, 1}, {2, 2}, {3, 1}, {5, 1}, {5, 3}};
    cadre_dataset *data = shuffled(1000, 64, 11);
    struct numbers plain;
    read_epoch(data, 2, &plain);
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        struct numbers found;
        global_order(data, layouts[i][0], layouts[i][1], 2, &found);
        assert_int_equal(found.count, plain.count);
        assert_memory_equal(found.values, plain.values, plain.count * 8);
    }
    cadre_dataset_release(data);
}

static void epochs_differ_and_hold_each_sample_once(void **state)
{
    (void)state;
    cadre_dataset *data = shuffled(1000, 64, 11);
    struct numbers epochs[3];
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        bool seen[1000] = {false};
        global_order(data, 3, 2, epoch, &epochs[epoch]);
        assert_int_equal(epochs[epoch].count, 1000);
        for (size_t i = 0; i < 1000; i++) {
            int64_t value = epochs[epoch].values[i];
            assert_false(seen[value]);
            seen[value] = true;
        }
    }
    for (size_t a = 0; a < 3; a++) {
        for (size_t b = 0; b < a; b++) {
            assert_true(memcmp(epochs[a].values, epochs[b].values, 8000) != 0);
        }
    }
    cadre_dataset_release(data);
}

/* Any order of reading, any history: the same step. */
static void steps_can_be_read_in_any_order(void **state)
{
    (void)state;
    const enum chain chains[] = {BATCHED, MAPPED, SEQUENTIAL};
    const uint64_t order[] = {3, 0, 2, 2, 1, 3};
    for (size_t c = 0; c < 3; c++) {
        for (int policy = CADRE_SHARD_OFF; policy <= CADRE_SHARD_DATA; policy += 3) {
            struct cadre_error error = {0};
            struct distributed_input *input = NULL;
            cadre_dataset *data = make_chain(chains[c], 14, 4);
            const struct distributed_layout layout = {.workers = 2,
                .worker_index = 1,
                .replicas = 1,
                .policy = (cadre_shard_policy)policy};
            ASSERT_OK(distributed_input_open(data, &layout, &input, &error));
            for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
                struct distributed_batch batch = {0};
                struct numbers numbers = {.count = 0};
                ASSERT_OK(distributed_input_read(input, 0, order[i], &batch, &error));
                numbers_add(&numbers, batch.elements[0].tensors[0]);
                int64_t first =
                    policy == CADRE_SHARD_OFF ? (int64_t)order[i] * 2 : (int64_t)order[i] * 4 + 2;
                first = policy == CADRE_SHARD_DATA && order[i] == 3 ? 13 : first;
                assert_int_equal(numbers.values[0], first);
                assert_int_equal(batch.step, order[i]);
                distributed_batch_clear(&batch);
            }
            distributed_input_close(input);
            cadre_dataset_release(data);
        }
    }
}

static cadre_status count_calls(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (*(int *)user)++;
    return copy_element(in, ret_out, NULL);
}

/* DATA on an indexable chain reads its own samples and no others. */
static void only_own_samples_are_read(void **state)
{
    (void)state;
    int calls = 0;
    const cadre_element_spec output = {.count = 1, .tensors = {{.dtype = CADRE_I64}}};
    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    struct distributed_batch batch = {0};
    cadre_dataset *data = cadre_dataset_range(0, 64, 1);
    data = cadre_dataset_map(data, count_calls, &calls, &(cadre_map_options){.output = &output});
    data = cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, 3, NULL);
    data = cadre_dataset_batch(data, 16, false);
    data = cadre_dataset_prefetch(data, 2);
    const struct distributed_layout layout = {
        .workers = 4, .worker_index = 3, .replicas = 2, .policy = CADRE_SHARD_DATA};
    ASSERT_OK(distributed_input_open(data, &layout, &input, &error));
    assert_int_equal(distributed_input_prefetch_depth(input), 2);
    ASSERT_OK(distributed_input_read(input, 0, 1, &batch, &error));
    assert_int_equal(calls, 4);
    assert_int_equal(batch.global_rows, 16);
    struct digest expected = {0};
    ASSERT_OK(distributed_input_expected_digest(input, 0, 1, &expected, &error));
    assert_int_equal(calls, 4);
    assert_false(digest_equal(&expected, &batch.consumed));
    distributed_batch_clear(&batch);
    distributed_input_close(input);
    cadre_dataset_release(data);
}

static void empty_pieces_have_types_and_shapes(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    struct distributed_batch batch = {0};
    const int64_t image_dims[] = {3, 2, 2};
    const int64_t label_dims[] = {3};
    cadre_tensor *tensors[2] = {NULL, NULL};
    assert_int_equal(cadre_tensor_create(CADRE_U8, 3, image_dims, &tensors[0]), CADRE_OK);
    assert_int_equal(cadre_tensor_create(CADRE_STRING, 1, label_dims, &tensors[1]), CADRE_OK);
    cadre_dataset *data = cadre_dataset_tensor_slices(tensors, 2);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    data = cadre_dataset_batch(data, 4, false);
    const struct distributed_layout layout = {
        .workers = 2, .worker_index = 1, .replicas = 2, .policy = CADRE_SHARD_DATA};
    ASSERT_OK(distributed_input_open(data, &layout, &input, &error));
    const cadre_element_spec *spec = distributed_input_spec(input);
    assert_int_equal(spec->count, 2);
    assert_int_equal(spec->tensors[0].rank, 3);
    assert_int_equal(spec->tensors[0].dims[0], CADRE_DIMENSION_ANY);
    assert_int_equal(spec->tensors[0].dims[2], 2);
    ASSERT_OK(distributed_input_read(input, 0, 0, &batch, &error));
    const cadre_element *last = &batch.elements[1];
    assert_int_equal(last->count, 2);
    assert_int_equal(cadre_tensor_dtype(last->tensors[0]), CADRE_U8);
    assert_int_equal(cadre_tensor_rank(last->tensors[0]), 3);
    assert_int_equal(cadre_tensor_dim(last->tensors[0], 0), 0);
    assert_int_equal(cadre_tensor_dim(last->tensors[0], 1), 2);
    assert_int_equal(cadre_tensor_dtype(last->tensors[1]), CADRE_STRING);
    assert_int_equal(cadre_tensor_rows(last->tensors[1]), 0);
    distributed_batch_clear(&batch);
    distributed_input_close(input);
    cadre_dataset_release(data);
}

static void repeated_and_endless_sets(void **state)
{
    (void)state;
    char text[1024];
    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    cadre_dataset *data = cadre_dataset_batch(cadre_dataset_range(0, 3, 1), 2, false);
    assert_string_equal(steps_text(cadre_dataset_repeat(cadre_dataset_retain(data), 2), 2, 1,
                            CADRE_SHARD_DATA, text, sizeof text),
        "[0] | [1] / [2] | [] / [0] | [1] / [2] | []");
    /* Under the sizes rule the batches flow together: 1 1 for each worker, six rows. */
    const struct distributed_layout flowing = {.workers = 2,
        .replicas = 1,
        .policy = CADRE_SHARD_OFF,
        .rebatch = CADRE_REBATCH_TENSORFLOW};
    assert_string_equal(steps_text_of(cadre_dataset_repeat(cadre_dataset_retain(data), 2), &flowing,
                            text, sizeof text),
        "[0] | [0] / [1] | [1] / [2] | [2] / [0] | [0] / [1] | [1] / [2] | [2]");
    data = cadre_dataset_repeat(data, CADRE_REPEAT_FOREVER);
    for (int policy = CADRE_SHARD_OFF; policy <= CADRE_SHARD_DATA; policy += 3) {
        const struct distributed_layout layout = {
            .workers = 2, .replicas = 1, .policy = (cadre_shard_policy)policy};
        struct distributed_batch batch = {0};
        ASSERT_OK(distributed_input_open(data, &layout, &input, &error));
        assert_int_equal(distributed_input_steps(input, 0), CADRE_CARDINALITY_INFINITE);
        ASSERT_OK(distributed_input_read(input, 0, 1001, &batch, &error));
        distributed_batch_clear(&batch);
        distributed_input_close(input);
    }
    cadre_dataset_release(data);
}

static void one_replica_takes_elements_as_they_are(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    struct distributed_batch batch = {0};
    cadre_dataset *data = cadre_dataset_range(5, 8, 1);
    const struct distributed_layout layout = {.workers = 1, .replicas = 1};
    ASSERT_OK(distributed_input_open(data, &layout, &input, &error));
    assert_int_equal(distributed_input_steps(input, 0), 3);
    ASSERT_OK(distributed_input_read(input, 0, 2, &batch, &error));
    assert_int_equal(cadre_tensor_rank(batch.elements[0].tensors[0]), 0);
    assert_int_equal(batch.global_rows, 1);
    distributed_batch_clear(&batch);
    assert_int_equal(distributed_input_read(input, 0, 3, &batch, &error), CADRE_OUT_OF_RANGE);
    assert_string_equal(error.text, "dataset '' has no step 3 in epoch 0");
    distributed_input_close(input);
    cadre_dataset_release(data);
}

static void refuse(cadre_dataset *data, const struct distributed_layout *layout,
    cadre_status status, const char *text)
{
    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    assert_int_equal(distributed_input_open(data, layout, &input, &error), status);
    assert_null(input);
    if (strstr(error.text, text) == NULL) {
        fail_msg("'%s' is not in '%s'", text, error.text);
    }
}

static void refusals(void **state)
{
    (void)state;
    cadre_dataset *scalars = cadre_dataset_range(0, 8, 1);
    cadre_dataset *batches = make_chain(BATCHED, 8, 4);
    struct distributed_layout layout = {.workers = 2, .replicas = 2, .name = "train"};
    refuse(scalars, &layout, CADRE_INVALID_ARGUMENT, "cadre_dataset_batch first");
    refuse(NULL, &layout, CADRE_RESOURCE_EXHAUSTED, "NULL");
    layout.policy = CADRE_SHARD_FILE;
    refuse(batches, &layout, CADRE_NOT_FOUND, "range does not");
    layout.policy = (cadre_shard_policy)17;
    refuse(batches, &layout, CADRE_INVALID_ARGUMENT, "17 is not a sharding policy");
    layout.policy = CADRE_SHARD_OFF;
    layout.rebatch = (cadre_rebatch)9;
    refuse(batches, &layout, CADRE_INVALID_ARGUMENT, "9 is not a rule of rebatching");
    layout.rebatch = CADRE_REBATCH_SPLIT;
    layout.policy = CADRE_SHARD_DATA;
    layout.worker_index = 2;
    refuse(batches, &layout, CADRE_INVALID_ARGUMENT, "worker 2 of 2");
    layout.worker_index = 0;
    layout.workers = 0;
    refuse(batches, &layout, CADRE_INVALID_ARGUMENT, "0 workers of 2");
    layout.workers = 1;
    layout.replicas = UINT32_MAX;
    refuse(batches, &layout, CADRE_INVALID_ARGUMENT, "4294967295 replicas");
    cadre_dataset *failed = cadre_dataset_batch(cadre_dataset_range(0, 1, 0), 4, false);
    layout.replicas = 1;
    refuse(failed, &layout, CADRE_INVALID_ARGUMENT, "range: step is 0");
    cadre_dataset_release(failed);
    cadre_dataset_release(scalars);
    cadre_dataset_release(batches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_policy_indexable),
        cmocka_unit_test(data_policy_map_after_batch),
        cmocka_unit_test(data_policy_both_kinds_of_batches),
        cmocka_unit_test(data_policy_sequential),
        cmocka_unit_test(off_policy_sizes_rule),
        cmocka_unit_test(off_policy_split_rule),
        cmocka_unit_test(order_is_the_same_at_any_number_of_workers),
        cmocka_unit_test(epochs_differ_and_hold_each_sample_once),
        cmocka_unit_test(steps_can_be_read_in_any_order),
        cmocka_unit_test(only_own_samples_are_read),
        cmocka_unit_test(empty_pieces_have_types_and_shapes),
        cmocka_unit_test(repeated_and_endless_sets),
        cmocka_unit_test(one_replica_takes_elements_as_they_are),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
