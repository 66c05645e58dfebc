/* SPDX-License-Identifier: Apache-2.0
 * Pipelines of the workers' own: FILE, OFF, HINT and functions step by step, who has ended,
 * dummies, advertised shapes, and positions that are kept and given back. */
#include "tests/unit/input/cmocka_unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/file_lists.h"
#include "tests/unit/input/inner_datasets.h"
#include "tests/unit/input/reading.h"
#include "tests/unit/input/scratch_folder.h"
#include "worker/library/input/sharding/auto_shard.h"
#include "worker/library/input/distribution/distributed_input.h"
#include "worker/library/input/batching/element_slice.h"
#include "worker/library/input/batching/rebatch_dataset.h"

static cadre_dataset *files(size_t count, const int64_t records[], int64_t batch)
{
    return cadre_dataset_batch(
        cadre_dataset_flat_map(file_names(records, count), open_file, NULL), batch, false);
}

static struct distributed_input *open_input(
    cadre_dataset *data, const struct distributed_layout *layout)
{
    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    ASSERT_OK(distributed_input_open(data, layout, &input, &error));
    return input;
}

/* --- the worked cases --- */

static void files_step_by_step(void **state)
{
    (void)state;
    const struct {
        int64_t records[3];
        size_t files;
        int64_t batch;
        uint32_t workers;
        uint32_t replicas;
        cadre_rebatch rebatch;
        const char *steps;
    } cases[] = {
        {{6, 6}, 2, 4, 2, 1, CADRE_REBATCH_SPLIT,
            "[0 1] | [1000 1001] / [2 3] | [1002 1003] / [4] | [1004] / [5] | [1005]"},
        {{6, 6}, 2, 4, 2, 1, CADRE_REBATCH_TENSORFLOW,
            "[0 1] | [1000 1001] / [2 3] | [1002 1003] / [4 5] | [1004 1005]"},
        {{7, 7}, 2, 7, 2, 2, CADRE_REBATCH_TENSORFLOW,
            "[0 1][2 3] | [1000 1001][1002] / [4 5][6] | [1003 1004][1005 1006]"},
        {{7, 3}, 2, 4, 2, 1, CADRE_REBATCH_TENSORFLOW,
            "[0 1] | [1000 1001] / [2 3] | [1002] / [4 5] | [] / [6] | []"},
        {{7, 3}, 2, 4, 2, 1, CADRE_REBATCH_SPLIT,
            "[0 1] | [1000 1001] / [2 3] | [1002] / [4 5] | [] / [6] | []"},
        /* One worker: the sizes rule where files can be shared out, as TensorFlow has it. */
        {{5}, 1, 5, 1, 4, CADRE_REBATCH_TENSORFLOW, "[0 1][2][3][4]"},
        {{5}, 1, 5, 1, 4, CADRE_REBATCH_SPLIT, "[0 1][2 3][4][]"},
        {{3, 2}, 2, 4, 1, 1, CADRE_REBATCH_SPLIT, "[0 1 2 1000] / [1001]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1024];
        struct distributed_layout layout = {.workers = cases[i].workers,
            .replicas = cases[i].replicas,
            .policy = CADRE_SHARD_FILE,
            .rebatch = cases[i].rebatch};
        assert_string_equal(steps_text_of(files(cases[i].files, cases[i].records, cases[i].batch),
                                &layout, text, sizeof text),
            cases[i].steps);
        layout.policy = CADRE_SHARD_AUTO;
        assert_string_equal(steps_text_of(files(cases[i].files, cases[i].records, cases[i].batch),
                                &layout, text, sizeof text),
            cases[i].steps);
    }
}

static void hints_step_by_step(void **state)
{
    (void)state;
    char text[1024];
    cadre_dataset *data = cadre_dataset_shard(range(0, 14), CADRE_SHARD_BY_HINT, 0);
    assert_string_equal(
        steps_text(cadre_dataset_batch(data, 4, false), 2, 1, CADRE_SHARD_HINT, text, sizeof text),
        "[0 2] | [1 3] / [4 6] | [5 7] / [8 10] | [9 11] / [12] | [13]");
}

static void too_few_files(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct distributed_batch batch = {0};
    const int64_t records[] = {3, 3};
    cadre_dataset *data = files(2, records, 2);
    struct distributed_layout layout = {
        .workers = 500, .replicas = 2, .policy = CADRE_SHARD_AUTO, .name = "few"};
    struct distributed_input *input = open_input(data, &layout);
    assert_int_equal(distributed_input_read(input, 0, 0, &batch, &error), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "2 files cannot be shared out among 500 workers"));
    distributed_input_close(input);
    layout.worker_index = 499;
    input = open_input(data, &layout);
    ASSERT_OK(distributed_input_read(input, 0, 0, &batch, &error));
    assert_int_equal(batch.present, 0);
    assert_int_equal(cadre_tensor_rows(batch.elements[1].tensors[0]), 0);
    distributed_batch_clear(&batch);
    distributed_input_close(input);
    cadre_dataset_release(data);
}

/* The dataset's own options hold where those of the input leave it open. */
static void policies(void **state)
{
    (void)state;
    const int64_t records[] = {3, 3};
    const cadre_dataset_options off = {.has_auto_shard = true, .auto_shard = CADRE_SHARD_OFF};
    const cadre_dataset_options by_file = {.has_auto_shard = true, .auto_shard = CADRE_SHARD_FILE};
    const struct {
        cadre_dataset *data;
        cadre_shard_policy policy;
        cadre_shard_policy used;
    } cases[] = {
        {files(2, records, 2), CADRE_SHARD_AUTO, CADRE_SHARD_FILE},
        {files(2, records, 2), CADRE_SHARD_DATA, CADRE_SHARD_DATA},
        {files(2, records, 2), CADRE_SHARD_OFF, CADRE_SHARD_OFF},
        {cadre_dataset_with_options(files(2, records, 2), &off), CADRE_SHARD_AUTO, CADRE_SHARD_OFF},
        {cadre_dataset_with_options(files(2, records, 2), &off), CADRE_SHARD_DATA,
            CADRE_SHARD_DATA},
        {cadre_dataset_batch(range(0, 9), 2, false), CADRE_SHARD_AUTO, CADRE_SHARD_DATA},
        {cadre_dataset_batch(range(0, 9), 2, false), CADRE_SHARD_HINT, CADRE_SHARD_HINT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (uint32_t workers = 1; workers < 3; workers++) {
            const struct distributed_layout layout = {
                .workers = workers, .replicas = 1, .policy = cases[i].policy};
            struct distributed_input *input = open_input(cases[i].data, &layout);
            assert_int_equal(distributed_input_policy(input), cases[i].used);
            assert_int_equal(
                distributed_input_agrees(input), workers > 1 && cases[i].used != CADRE_SHARD_DATA);
            distributed_input_close(input);
        }
        cadre_dataset_release(cases[i].data);
    }
    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    cadre_dataset *data = cadre_dataset_prefetch(cadre_dataset_batch(range(0, 9), 2, false), 7);
    data = cadre_dataset_with_options(data, &off);
    input = open_input(data, &(struct distributed_layout){.workers = 1, .replicas = 1});
    assert_int_equal(distributed_input_prefetch_depth(input), 7);
    distributed_input_close(input);
    data = cadre_dataset_with_options(data, &by_file);
    const struct distributed_layout layout = {.workers = 1, .replicas = 2};
    assert_int_equal(distributed_input_open(data, &layout, &input, &error), CADRE_NOT_FOUND);
    cadre_dataset_release(data);
}

/* --- pipelines of functions --- */

static void functions_of_two_workers(void **state)
{
    (void)state;
    const int64_t stops[] = {8, 9};
    for (uint32_t w = 0; w < 2; w++) {
        struct cadre_error error = {0};
        struct distributed_input *input = NULL;
        cadre_dataset *data = cadre_dataset_batch(range(0, stops[w]), 2, false);
        const struct distributed_layout layout = {.workers = 2, .worker_index = w, .replicas = 1};
        ASSERT_OK(distributed_input_open_pipelines(&data, 1, &layout, &input, &error));
        cadre_dataset_release(data);
        assert_true(distributed_input_agrees(input));
        assert_int_equal(distributed_input_policy(input), CADRE_SHARD_OFF);
        assert_int_equal(distributed_input_steps(input, 0), CADRE_CARDINALITY_UNKNOWN);
        for (uint64_t step = 0; step < 7; step++) {
            struct distributed_batch batch = {0};
            ASSERT_OK(distributed_input_read(input, 0, step, &batch, &error));
            bool there = step < (w == 0 ? 4 : 5);
            assert_int_equal(batch.present, there);
            assert_int_equal(batch.own_rows, !there ? 0 : step == 4 ? 1 : 2);
            assert_int_equal(cadre_tensor_rows(batch.elements[0].tensors[0]), batch.own_rows);
            distributed_batch_clear(&batch);
        }
        distributed_input_close(input);
    }
}

static void function_of_one_worker(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    struct distributed_batch batch = {0};
    cadre_dataset *data = cadre_dataset_batch(range(0, 9), 2, false);
    const struct distributed_layout layout = {.workers = 1, .replicas = 2};
    ASSERT_OK(distributed_input_open_pipelines(&data, 1, &layout, &input, &error));
    cadre_dataset_release(data);
    assert_int_equal(distributed_input_steps(input, 0), 3);
    ASSERT_OK(distributed_input_read(input, 0, 2, &batch, &error));
    assert_int_equal(batch.present, 1);
    assert_int_equal(batch.global_rows, 1);
    distributed_batch_clear(&batch);
    assert_int_equal(distributed_input_read(input, 0, 3, &batch, &error), CADRE_OUT_OF_RANGE);
    assert_true(distributed_input_gives_partial(input));
    distributed_input_close(input);
}

static void one_pipeline_per_replica(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct distributed_input *input = NULL;
    cadre_dataset *data[] = {range(0, 3), range(10, 12)};
    const struct distributed_layout layout = {.workers = 1, .replicas = 2};
    ASSERT_OK(distributed_input_open_pipelines(data, 2, &layout, &input, &error));
    assert_int_equal(distributed_input_steps(input, 0), 3);
    for (uint64_t step = 0; step < 3; step++) {
        struct distributed_batch batch = {0};
        ASSERT_OK(distributed_input_read(input, 0, step, &batch, &error));
        assert_int_equal(batch.present, step < 2 ? 2 : 1);
        const int64_t *second = cadre_tensor_const_data(batch.elements[1].tensors[0]);
        assert_int_equal(*second, step < 2 ? 10 + step : 0); /* the dummy of a scalar is 0 */
        distributed_batch_clear(&batch);
    }
    assert_false(distributed_input_gives_partial(input)); /* all shapes are known */
    assert_int_equal(distributed_input_whole_steps(input, 0), 2);
    assert_int_equal(distributed_input_left(input, 0, 2), 1);
    assert_int_equal(distributed_input_left(input, 0, 1), 3);
    distributed_input_close(input);
    /* A kind for each, or a number that does not fit. */
    assert_int_equal(distributed_input_open_pipelines(data, 2,
                         &(struct distributed_layout){.workers = 1, .replicas = 3}, &input, &error),
        CADRE_INVALID_ARGUMENT);
    cadre_dataset_release(data[1]);
    data[1] = cadre_dataset_batch(range(0, 3), 2, false);
    assert_int_equal(
        distributed_input_open_pipelines(data, 2, &layout, &input, &error), CADRE_INVALID_ARGUMENT);
    cadre_dataset_release(data[0]);
    cadre_dataset_release(data[1]);
}

/* --- shapes --- */

/* Unknown dimensions of a dummy are 0; where all are known, the first. */
static void dummies(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    cadre_element element = {0};
    const cadre_element_spec spec = {.count = 4,
        .tensors = {{.dtype = CADRE_F32, .rank = 2, .dims = {CADRE_DIMENSION_ANY, 3}},
            {.dtype = CADRE_F32, .rank = 2, .dims = {2, 3}},
            {.dtype = CADRE_U8, .rank = 3, .dims = {2, CADRE_DIMENSION_ANY, 4}},
            {.dtype = CADRE_STRING, .rank = 0}}};
    ASSERT_OK(element_make_dummy(&spec, &element, &error));
    const int64_t first[] = {0, 3};
    const int64_t third[] = {2, 0, 4};
    assert_memory_equal(cadre_tensor_dims(element.tensors[0]), first, sizeof first);
    assert_memory_equal(cadre_tensor_dims(element.tensors[1]), first, sizeof first);
    assert_memory_equal(cadre_tensor_dims(element.tensors[2]), third, sizeof third);
    const cadre_string *text = cadre_tensor_const_data(element.tensors[3]);
    assert_int_equal(text->size, 0);
    cadre_element_release(&element);
    ASSERT_OK(element_make_empty(&spec, &element, &error));
    assert_int_equal(cadre_tensor_rows(element.tensors[2]), 0);
    cadre_element_release(&element);
}

static void advertised_shapes(void **state)
{
    (void)state;
    const struct {
        bool drop_remainder;
        bool endless;
        uint32_t workers;
        uint32_t replicas;
        cadre_shard_policy policy;
        int64_t rows;
        bool gives_partial;
    } cases[] = {
        {false, false, 1, 2, CADRE_SHARD_DATA, CADRE_DIMENSION_ANY, true},
        {true, false, 1, 2, CADRE_SHARD_DATA, 2, false},
        {true, false, 2, 1, CADRE_SHARD_DATA, CADRE_DIMENSION_ANY, true},
        {true, true, 2, 1, CADRE_SHARD_DATA, 2, false},
        {true, true, 2, 2, CADRE_SHARD_OFF, 1, false},
        {false, true, 1, 2, CADRE_SHARD_OFF, CADRE_DIMENSION_ANY, false},
        {true, false, 1, 3, CADRE_SHARD_OFF, CADRE_DIMENSION_ANY, true},
        {true, false, 1, 1, CADRE_SHARD_AUTO, 4, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_dataset *data = cadre_dataset_batch(range(0, 12), 4, cases[i].drop_remainder);
        data = cases[i].endless ? cadre_dataset_repeat(data, CADRE_REPEAT_FOREVER) : data;
        const struct distributed_layout layout = {
            .workers = cases[i].workers, .replicas = cases[i].replicas, .policy = cases[i].policy};
        struct distributed_input *input = open_input(data, &layout);
        assert_int_equal(distributed_input_spec(input)->tensors[0].dims[0], cases[i].rows);
        assert_int_equal(distributed_input_gives_partial(input), cases[i].gives_partial);
        bool own = cases[i].policy == CADRE_SHARD_OFF;
        assert_int_equal(
            distributed_input_agrees(input), own && cases[i].workers > 1 && !cases[i].endless);
        distributed_input_close(input);
        cadre_dataset_release(data);
    }
}

/* --- many workers: the pieces of all are the batches --- */

static void five_hundred_workers(void **state)
{
    (void)state;
    static bool seen[2400];
    memset(seen, 0, sizeof seen);
    cadre_dataset *data = cadre_dataset_shuffle(range(0, 2400), CADRE_SHUFFLE_ALL, 3, NULL);
    data = cadre_dataset_batch(data, 1200, false);
    uint64_t rows = 0;
    for (uint32_t w = 0; w < 500; w++) {
        const struct distributed_layout layout = {
            .workers = 500, .worker_index = w, .replicas = 2, .policy = CADRE_SHARD_DATA};
        struct distributed_input *input = open_input(data, &layout);
        for (uint64_t step = 0; step < 2; step++) {
            struct cadre_error error = {0};
            struct distributed_batch batch = {0};
            ASSERT_OK(distributed_input_read(input, 1, step, &batch, &error));
            assert_int_equal(batch.global_rows, 1200);
            for (uint32_t r = 0; r < 2; r++) {
                struct numbers numbers = {.count = 0};
                numbers_add(&numbers, batch.elements[r].tensors[0]);
                for (size_t i = 0; i < numbers.count; i++) {
                    assert_false(seen[numbers.values[i]]);
                    seen[numbers.values[i]] = true;
                    rows++;
                }
            }
            distributed_batch_clear(&batch);
        }
        distributed_input_close(input);
    }
    assert_int_equal(rows, 2400);
    cadre_dataset_release(data);
}

/* What is cut by index is what the rewritten pipelines give, whatever the sizes. */
static void data_is_as_the_rewritten_pipeline(void **state)
{
    (void)state;
    struct prng prng = {.state = 7};
    for (int round = 0; round < 200; round++) {
        struct cadre_error error = {0};
        const uint32_t workers = 1 + (uint32_t)prng_uniform(&prng, 5);
        const uint32_t replicas = 1 + (uint32_t)prng_uniform(&prng, 3);
        const uint64_t pieces = (uint64_t)workers * replicas;
        cadre_dataset *data = range(0, (int64_t)prng_uniform(&prng, 60));
        data = prng_chance(&prng, 1, 2) ? cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, 3, NULL)
                                        : data;
        data = cadre_dataset_batch(data, 1 + (int64_t)prng_uniform(&prng, 12), false);
        data = prng_chance(&prng, 1, 3) ? in_order_only(data) : data;
        for (uint32_t w = 0; w < workers && pieces > 1; w++) {
            const struct distributed_layout layout = {.workers = workers,
                .worker_index = w,
                .replicas = replicas,
                .policy = CADRE_SHARD_DATA};
            const struct auto_shard shard = {
                .policy = CADRE_SHARD_DATA, .workers = workers, .worker = w, .replicas = pieces};
            struct distributed_input *input = open_input(data, &layout);
            cadre_dataset *own = dataset_rebatch_split(cadre_dataset_retain(data), pieces);
            cadre_iterator *iterator = NULL;
            ASSERT_OK(dataset_auto_shard(own, &shard, &own, NULL, &error));
            assert_int_equal(cadre_dataset_iterate(own, 4, &iterator), CADRE_OK);
            for (uint64_t step = 0;; step++) {
                struct distributed_batch batch = {0};
                cadre_element element = {0};
                if (distributed_input_read(input, 4, step, &batch, &error) != CADRE_OK) {
                    assert_int_equal(error.code, CADRE_OUT_OF_RANGE);
                    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OUT_OF_RANGE);
                    break;
                }
                for (uint32_t r = 0; r < replicas; r++) {
                    const cadre_tensor *piece = batch.elements[r].tensors[0];
                    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
                    assert_int_equal(
                        cadre_tensor_rows(piece), cadre_tensor_rows(element.tensors[0]));
                    assert_memory_equal(cadre_tensor_const_data(piece),
                        cadre_tensor_const_data(element.tensors[0]), cadre_tensor_bytes(piece));
                    cadre_element_release(&element);
                }
                distributed_batch_clear(&batch);
            }
            cadre_iterator_release(iterator);
            cadre_dataset_release(own);
            distributed_input_close(input);
        }
        cadre_dataset_release(data);
    }
}

/* --- positions --- */

static int64_t initial_value(struct distributed_input *input, uint64_t epoch, uint64_t step)
{
    struct cadre_error error = {0};
    struct distributed_batch batch = {0};
    ASSERT_OK(distributed_input_read(input, epoch, step, &batch, &error));
    const int64_t *values = cadre_tensor_const_data(batch.elements[0].tensors[0]);
    int64_t value = *values;
    distributed_batch_clear(&batch);
    return value;
}

static int calls;

static cadre_status count_calls(const cadre_element *in, cadre_element *ret_out, void *user)
{
    calls++;
    return copy_element(in, ret_out, user);
}

static cadre_dataset *sequential(void)
{
    static const cadre_element_spec scalar = {.count = 1, .tensors = {{.dtype = CADRE_I64}}};
    cadre_dataset *data = in_order_only(range(0, 4000));
    data = cadre_dataset_map(data, count_calls, NULL, &(cadre_map_options){.output = &scalar});
    return cadre_dataset_batch(cadre_dataset_shuffle(data, 5, 1, NULL), 4, false);
}

static void positions_are_kept_and_given_back(void **state)
{
    (void)state;
    const cadre_shard_policy chosen[] = {CADRE_SHARD_DATA, CADRE_SHARD_OFF};
    for (size_t p = 0; p < 2; p++) {
        struct cadre_error error = {0};
        struct distributed_state kept = {0};
        cadre_dataset *data = sequential();
        struct distributed_layout layout = {.workers = 1,
            .replicas = 2,
            .policy = chosen[p],
            .state_bytes_max = 1 << 16,
            .state_us = 1};
        struct distributed_input *input = open_input(data, &layout);
        assert_int_equal(distributed_input_save(input, 2, 500, &kept, &error), CADRE_NOT_FOUND);
        int64_t values[300];
        for (uint64_t step = 0; step < 300; step++) {
            values[step] = initial_value(input, 2, step);
        }
        ASSERT_OK(distributed_input_save(input, 2, 260, &kept, &error));
        /* Usually the last multiple of 16; further back where keeping one took its time. */
        assert_in_range(kept.step, 1, 260);
        distributed_state_clear(&kept);
        assert_int_equal(distributed_input_save(input, 1, 260, &kept, &error), CADRE_NOT_FOUND);
        ASSERT_OK(distributed_input_save(input, 2, 260, &kept, &error));
        distributed_input_close(input);

        /* Under DATA it serves any layout. */
        layout.workers = chosen[p] == CADRE_SHARD_DATA ? 3 : 1;
        input = open_input(data, &layout);
        calls = 0;
        const int few = 4 * (280 - (int)kept.step + 36); /* the way from there, and read ahead */
        ASSERT_OK(distributed_input_restore(input, &kept, &error));
        assert_int_equal(initial_value(input, 2, 280), values[280]);
        assert_true(calls < few);
        assert_int_equal(initial_value(input, 2, kept.step), values[kept.step]);
        assert_true(calls < few * 2);
        /* Before it, and in another epoch, reading is as ever. */
        assert_int_equal(initial_value(input, 2, 3), values[3]);
        initial_value(input, 1, 0);
        distributed_input_close(input);

        if (chosen[p] == CADRE_SHARD_OFF) {
            layout.workers = 2;
            input = open_input(data, &layout);
            assert_int_equal(
                distributed_input_restore(input, &kept, &error), CADRE_INVALID_ARGUMENT);
            distributed_input_close(input);
        }
        distributed_state_clear(&kept);
        cadre_dataset_release(data);
    }
}

/* Bytes of any origin: an error, and the input reads as before. */
static void damaged_positions(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct distributed_state kept = {0};
    cadre_dataset *data = sequential();
    const struct distributed_layout layout = {.workers = 1,
        .replicas = 2,
        .policy = CADRE_SHARD_OFF,
        .state_bytes_max = 1 << 16,
        .state_us = 1};
    struct distributed_input *input = open_input(data, &layout);
    for (uint64_t step = 0; step < 40; step++) {
        initial_value(input, 0, step);
    }
    const int64_t expected = initial_value(input, 0, 41);
    ASSERT_OK(distributed_input_save(input, 0, 40, &kept, &error));
    const size_t count = kept.count;
    for (kept.count = 0; kept.count < count; kept.count++) {
        assert_int_equal(distributed_input_restore(input, &kept, &error), CADRE_INVALID_ARGUMENT);
    }
    for (size_t i = 0; i < count; i++) {
        kept.bytes[i] ^= 0x41;
        cadre_status status = distributed_input_restore(input, &kept, &error);
        assert_true(status == CADRE_OK || status == CADRE_INVALID_ARGUMENT);
        kept.bytes[i] ^= 0x41;
    }
    ASSERT_OK(distributed_input_restore(input, &kept, &error));
    assert_int_equal(initial_value(input, 0, 41), expected);
    distributed_state_clear(&kept);
    distributed_input_close(input);
    cadre_dataset_release(data);
}

/* What is read by index needs none, and too large ones are not kept. */
static void positions_that_are_not_kept(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct distributed_state kept = {0};
    cadre_dataset *data[] = {cadre_dataset_batch(range(0, 400), 4, false), sequential()};
    for (size_t i = 0; i < 2; i++) {
        const struct distributed_layout layout = {.workers = 1,
            .replicas = 2,
            .policy = CADRE_SHARD_OFF,
            .state_bytes_max = i == 0 ? 1 << 16 : 40,
            .state_us = 1};
        struct distributed_input *input = open_input(data[i], &layout);
        for (uint64_t step = 0; step < 40; step++) {
            initial_value(input, 0, step);
        }
        assert_int_equal(distributed_input_save(input, 0, 40, &kept, &error), CADRE_NOT_FOUND);
        distributed_input_close(input);
        cadre_dataset_release(data[i]);
    }
}

static void a_long_way_can_be_given_up(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct distributed_batch batch = {0};
    uint64_t done = 0;
    uint64_t wanted = 0;
    cadre_dataset *data = cadre_dataset_batch(in_order_only(range(0, 100000)), 1, false);
    const struct distributed_layout layout = {
        .workers = 1, .replicas = 1, .policy = CADRE_SHARD_OFF};
    struct distributed_input *input = open_input(data, &layout);
    assert_false(distributed_input_replayed(input, &done, &wanted));
    distributed_input_cancel(input, true);
    assert_int_equal(distributed_input_read(input, 0, 90000, &batch, &error), CADRE_CANCELLED);
    assert_null(batch.elements);
    assert_false(distributed_input_replayed(input, &done, &wanted));
    distributed_input_cancel(input, false);
    assert_int_equal(initial_value(input, 0, 90000), 90000);
    assert_int_equal(initial_value(input, 0, 7), 7);
    distributed_input_close(input);
    cadre_dataset_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_step_by_step),
        cmocka_unit_test(hints_step_by_step),
        cmocka_unit_test(too_few_files),
        cmocka_unit_test(policies),
        cmocka_unit_test(functions_of_two_workers),
        cmocka_unit_test(function_of_one_worker),
        cmocka_unit_test(one_pipeline_per_replica),
        cmocka_unit_test(dummies),
        cmocka_unit_test(advertised_shapes),
        cmocka_unit_test(five_hundred_workers),
        cmocka_unit_test(data_is_as_the_rewritten_pipeline),
        cmocka_unit_test(positions_are_kept_and_given_back),
        cmocka_unit_test(damaged_positions),
        cmocka_unit_test(positions_that_are_not_kept),
        cmocka_unit_test(a_long_way_can_be_given_up),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
