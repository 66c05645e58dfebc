/* SPDX-License-Identifier: Apache-2.0
 * Pipelines rewritten for one worker of several: the cases of the semantics; what may stand between
 * the files and the end and what may not; too few files. */
#include "tests/unit/input/cmocka_unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/input/elements.h"
#include "tests/unit/input/file_lists.h"
#include "tests/unit/input/inner_datasets.h"
#include "tests/unit/input/reading.h"
#include "tests/unit/input/scratch_folder.h"
#include "tests/unit/input/tfrecord_writing.h"
#include "worker/library/input/sharding/auto_shard.h"
#include "worker/library/input/batching/rebatch_dataset.h"
#include "worker/library/input/sharding/required_shard.h"
#include "worker/library/input/node/iterator_state.h"

/* Both consume `data`. */
static void spec_is(cadre_dataset *data, const char *expected)
{
    expect_spec(data, expected);
    cadre_dataset_release(data);
}

static void consistent(cadre_dataset *data)
{
    expect_consistent(data);
    cadre_dataset_release(data);
}

/* Consumes `data`. */
static cadre_dataset *sharded(cadre_dataset *data, cadre_shard_policy policy, uint32_t workers,
    uint32_t worker, cadre_shard_policy expected)
{
    struct cadre_error error = {0};
    cadre_dataset *own = NULL;
    cadre_shard_policy used = CADRE_SHARD_AUTO;
    const struct auto_shard shard = {
        .policy = policy, .workers = workers, .worker = worker, .replicas = workers};
    ASSERT_OK(dataset_auto_shard(data, &shard, &own, &used, &error));
    assert_int_equal(used, expected);
    return own;
}

/* Consumes `data`. */
static void refuse(
    cadre_dataset *data, cadre_shard_policy policy, cadre_status status, const char *part)
{
    struct cadre_error error = {0};
    cadre_dataset *own = NULL;
    const struct auto_shard shard = {.policy = policy, .workers = 2, .worker = 0, .replicas = 2};
    assert_int_equal(dataset_auto_shard(data, &shard, &own, NULL, &error), status);
    assert_null(own);
    if (strstr(error.text, part) == NULL) {
        fail_msg("'%s' is not in '%s'", part, error.text);
    }
}

static cadre_dataset *flat(cadre_dataset *names)
{
    return cadre_dataset_flat_map(names, open_file, NULL);
}

static cadre_dataset *batched(cadre_dataset *data, int64_t size)
{
    return cadre_dataset_batch(data, size, false);
}

/* --- the shared cases --- */

static void file_flat_map(void **state)
{
    (void)state;
    cadre_dataset *data = batched(flat(alike_file_names(10, 10)), 5);
    expect_elements(sharded(data, CADRE_SHARD_AUTO, 5, 3, CADRE_SHARD_FILE),
        "[3000 3001 3002 3003 3004] [3005 3006 3007 3008 3009] [8000 8001 8002 8003 8004] "
        "[8005 8006 8007 8008 8009]");
}

static void more_workers_than_files(void **state)
{
    (void)state;
    cadre_dataset *data =
        cadre_dataset_interleave(alike_file_names(10, 10), open_file, NULL, turns(10, 1, 0));
    data = cadre_dataset_map(batched(data, 5), copy_element, NULL, NULL);
    expect_elements(
        sharded(cadre_dataset_retain(data), CADRE_SHARD_AUTO, 500, 499, CADRE_SHARD_FILE), "");
    /* Nothing to see its elements by, and yet known. */
    spec_is(sharded(cadre_dataset_retain(data), CADRE_SHARD_AUTO, 500, 499, CADRE_SHARD_FILE),
        "i64 [?]");
    expect_failure(sharded(cadre_dataset_retain(data), CADRE_SHARD_AUTO, 500, 9, CADRE_SHARD_FILE),
        CADRE_INVALID_ARGUMENT, "10 files cannot be shared out among 500 workers");
    expect_failure(sharded(data, CADRE_SHARD_FILE, 11, 0, CADRE_SHARD_FILE), CADRE_INVALID_ARGUMENT,
        "CADRE_SHARD_DATA");
}

static void fewer_elements_than_workers(void **state)
{
    (void)state;
    expect_failure(sharded(range(0, 5), CADRE_SHARD_AUTO, 10, 0, CADRE_SHARD_DATA),
        CADRE_INVALID_ARGUMENT, "5 elements cannot be shared out among 10 workers");
    expect_failure(sharded(in_order_only(range(0, 5)), CADRE_SHARD_AUTO, 10, 4, CADRE_SHARD_DATA),
        CADRE_INVALID_ARGUMENT, "5 elements");
    expect_elements(
        sharded(in_order_only(range(0, 5)), CADRE_SHARD_AUTO, 10, 5, CADRE_SHARD_DATA), "");
    expect_elements(sharded(range(0, 5), CADRE_SHARD_AUTO, 5, 4, CADRE_SHARD_DATA), "4");
    expect_elements(
        sharded(in_order_only(range(0, 5)), CADRE_SHARD_AUTO, 5, 4, CADRE_SHARD_DATA), "4");
    expect_elements(
        sharded(in_order_only(range(0, 0)), CADRE_SHARD_AUTO, 5, 0, CADRE_SHARD_DATA), "");
}

static void file_without_reader(void **state)
{
    (void)state;
    refuse(range(0, 1024), CADRE_SHARD_FILE, CADRE_NOT_FOUND, "range does not");
}

/* --- lists of files that a source holds --- */

static cadre_dataset *list_of(size_t files)
{
    const int64_t records[] = {3, 2, 3, 1, 2};
    assert_true(files <= sizeof records / sizeof records[0]);
    return file_list(records, files);
}

static void listed_files_are_shared_out(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const cadre_shard_policy policy = i == 0 ? CADRE_SHARD_FILE : CADRE_SHARD_AUTO;
        expect_elements(sharded(batched(list_of(5), 2), policy, 2, 0, CADRE_SHARD_FILE),
            "[0 1] [2 2000] [2001 2002] [4000 4001]");
        expect_elements(
            sharded(batched(list_of(5), 2), policy, 2, 1, CADRE_SHARD_FILE), "[1000 1001] [3000]");
        expect_elements(
            sharded(cadre_dataset_prefetch(list_of(5), 1), policy, 5, 3, CADRE_SHARD_FILE), "3000");
    }
    consistent(sharded(list_of(5), CADRE_SHARD_FILE, 2, 1, CADRE_SHARD_FILE));
    spec_is(sharded(batched(list_of(2), 4), CADRE_SHARD_FILE, 9, 8, CADRE_SHARD_FILE), "i64 [?]");
    expect_failure(sharded(list_of(2), CADRE_SHARD_FILE, 9, 0, CADRE_SHARD_FILE),
        CADRE_INVALID_ARGUMENT, "2 files cannot be shared out among 9 workers");
}

static void lines_and_records_of_lists_are_shared_out(void **state)
{
    (void)state;
    struct frames frames = {0};
    frames_add(&frames, "a", 1);
    frames_add(&frames, "b", 1);
    char lines[2][512];
    char records[2][512];
    for (size_t f = 0; f < 2; f++) {
        const char text[] = {'c', (char)('0' + f), '\n', 'd', '\0'};
        snprintf(lines[f], sizeof lines[f], "%s",
            scratch_write(f == 0 ? "lines-0" : "lines-1", text, 4));
        snprintf(records[f], sizeof records[f], "%s",
            frames_write(&frames, f == 0 ? "records-0" : "records-1"));
    }
    frames_clear(&frames);
    const char *const line_paths[] = {lines[0], lines[1]};
    const char *const record_paths[] = {records[0], records[1]};
    expect_elements(sharded(cadre_dataset_text_lines(line_paths, 2, NULL), CADRE_SHARD_AUTO, 2, 1,
                        CADRE_SHARD_FILE),
        "c1 d");
    expect_elements(sharded(cadre_dataset_tfrecord(record_paths, 2, NULL), CADRE_SHARD_AUTO, 2, 0,
                        CADRE_SHARD_FILE),
        "a b");
    /* Branch by branch, as it is with names; AUTO divides them by samples. */
    cadre_dataset *const both[] = {cadre_dataset_text_lines(line_paths, 2, NULL),
        cadre_dataset_tfrecord(record_paths, 2, NULL)};
    cadre_dataset *zipped = cadre_dataset_zip(both, 2);
    expect_elements(sharded(cadre_dataset_retain(zipped), CADRE_SHARD_FILE, 2, 1, CADRE_SHARD_FILE),
        "(c1, a) (d, b)");
    cadre_dataset_release(sharded(zipped, CADRE_SHARD_AUTO, 2, 1, CADRE_SHARD_DATA));
}

/* Both would give each record once: by files only where that takes nothing. */
static void lists_that_auto_divides_by_samples(void **state)
{
    (void)state;
    expect_elements(
        sharded(list_of(2), CADRE_SHARD_AUTO, 3, 1, CADRE_SHARD_DATA), "1 1001"); /* too few */
    expect_elements(sharded(list_of(2), CADRE_SHARD_AUTO, 1, 0, CADRE_SHARD_DATA),
        "0 1 2 1000 1001");                                    /* no other worker */
    cadre_dataset *data = cadre_dataset_repeat(list_of(2), 2); /* cannot be cut again */
    expect_elements(sharded(cadre_dataset_retain(data), CADRE_SHARD_AUTO, 2, 1, CADRE_SHARD_DATA),
        "1 1000 0 2 1001");
    expect_elements(sharded(data, CADRE_SHARD_FILE, 2, 1, CADRE_SHARD_FILE), "1000 1001 1000 1001");
    data = cadre_dataset_shuffle(list_of(2), CADRE_SHUFFLE_ALL, 3, NULL); /* reads by index */
    cadre_dataset_release(
        sharded(cadre_dataset_retain(data), CADRE_SHARD_AUTO, 2, 1, CADRE_SHARD_DATA));
    refuse(data, CADRE_SHARD_FILE, CADRE_NOT_FOUND, "reads its input by index");
    expect_elements(sharded(list_of(2), CADRE_SHARD_DATA, 2, 0, CADRE_SHARD_DATA), "0 2 1001");
}

static void what_auto_comes_to_is_explained(void **state)
{
    (void)state;
    const struct {
        cadre_dataset *data;
        uint32_t workers;
        struct policy_choice choice;
    } cases[] = {
        {list_of(2), 2, {.policy = CADRE_SHARD_FILE, .either = true}},
        {list_of(2), 1, {.policy = CADRE_SHARD_DATA, .either = true}},
        {list_of(1), 2,
            {.policy = CADRE_SHARD_DATA,
                .either = true,
                .few = true,
                .why = {CADRE_INVALID_ARGUMENT, "1 file cannot be shared out among 2 workers"}}},
        {cadre_dataset_take(list_of(2), 3), 2,
            {.policy = CADRE_SHARD_DATA,
                .why = {CADRE_FAILED_PRECONDITION, "what take gives depends"}}},
        {range(0, 3), 2, {.policy = CADRE_SHARD_DATA, .why = {CADRE_NOT_FOUND, "range does not"}}},
        {flat(alike_file_names(1, 2)), 2, {.policy = CADRE_SHARD_FILE}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        struct policy_choice choice;
        ASSERT_OK(dataset_choose_policy(cases[i].data, cases[i].workers, &choice, &error));
        assert_int_equal(choice.policy, cases[i].choice.policy);
        assert_int_equal(choice.either, cases[i].choice.either);
        assert_int_equal(choice.few, cases[i].choice.few);
        assert_int_equal(choice.why.code, cases[i].choice.why.code);
        assert_non_null(strstr(choice.why.text, cases[i].choice.why.text));
        cadre_dataset_release(cases[i].data);
    }
}

static void hints(void **state)
{
    (void)state;
    cadre_dataset *marked = cadre_dataset_shard(range(0, 100), CADRE_SHARD_BY_HINT, 0);
    expect_failure(cadre_dataset_retain(marked), CADRE_FAILED_PRECONDITION, "HINT");
    expect_elements(
        sharded(cadre_dataset_retain(marked), CADRE_SHARD_HINT, 10, 0, CADRE_SHARD_HINT),
        "0 10 20 30 40 50 60 70 80 90");
    /* Other shards are untouched; nodes on it are built again. */
    cadre_dataset *data = cadre_dataset_shard(marked, 2, 1);
    data = batched(data, 2);
    expect_elements(sharded(cadre_dataset_retain(data), CADRE_SHARD_HINT, 10, 3, CADRE_SHARD_HINT),
        "[13 33] [53 73] [93]");
    expect_failure(
        sharded(data, CADRE_SHARD_OFF, 10, 3, CADRE_SHARD_OFF), CADRE_FAILED_PRECONDITION, "HINT");
    /* No mark: as it is. A branch with a mark beside one without. */
    expect_elements(sharded(range(0, 3), CADRE_SHARD_HINT, 2, 1, CADRE_SHARD_HINT), "0 1 2");
    cadre_dataset *const both[] = {
        cadre_dataset_shard(range(0, 4), CADRE_SHARD_BY_HINT, 0), range(5, 7)};
    expect_elements(sharded(cadre_dataset_zip(both, 2), CADRE_SHARD_HINT, 2, 1, CADRE_SHARD_HINT),
        "(1, 5) (3, 6)");
    expect_failure(sharded(cadre_dataset_shard(range(0, 3), CADRE_SHARD_BY_HINT, 0),
                       CADRE_SHARD_HINT, 4, 0, CADRE_SHARD_HINT),
        CADRE_INVALID_ARGUMENT, "3 elements");
}

static void data_rewrites_sizes_to_split(void **state)
{
    (void)state;
    const int64_t sizes[] = {2, 1, 1};
    cadre_dataset *data = dataset_rebatch_sizes(batched(range(0, 8), 4), sizes, 3, false);
    expect_elements(sharded(cadre_dataset_retain(data), CADRE_SHARD_DATA, 3, 0, CADRE_SHARD_DATA),
        "[0 1] [4 5]");
    expect_elements(
        sharded(cadre_dataset_retain(data), CADRE_SHARD_DATA, 3, 2, CADRE_SHARD_DATA), "[] []");
    /* Before what only says how it is read. */
    data = cadre_dataset_prefetch(data, 2);
    expect_elements(sharded(cadre_dataset_retain(data), CADRE_SHARD_AUTO, 3, 1, CADRE_SHARD_DATA),
        "[2 3] [6 7]");
    expect_elements(sharded(cadre_dataset_retain(data), CADRE_SHARD_OFF, 3, 1, CADRE_SHARD_OFF),
        "[0 1] [2] [3] [4 5] [6] [7]");
    expect_elements(
        sharded(data, CADRE_SHARD_HINT, 3, 1, CADRE_SHARD_HINT), "[0 1] [2] [3] [4 5] [6] [7]");
    /* One worker: it is rewritten all the same. */
    const int64_t four[] = {2, 1, 1, 1};
    struct cadre_error error = {0};
    cadre_dataset *own = NULL;
    const struct auto_shard alone = {.policy = CADRE_SHARD_AUTO, .workers = 1, .replicas = 4};
    data = dataset_rebatch_sizes(batched(range(0, 5), 5), four, 4, false);
    ASSERT_OK(dataset_auto_shard(data, &alone, &own, NULL, &error));
    expect_elements(own, "[0 1] [2 3] [4] []");
}

static void manual_shard_under_off(void **state)
{
    (void)state;
    expect_elements(
        sharded(cadre_dataset_shard(range(0, 5), 2, 1), CADRE_SHARD_OFF, 2, 1, CADRE_SHARD_OFF),
        "1 3");
}

/* --- between the files and the end --- */

static cadre_status is_even(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)user;
    *ret_keep = value_of(in) % 2 == 0;
    return CADRE_OK;
}

static void what_files_pass_through(void **state)
{
    (void)state;
    cadre_dataset *data = flat(alike_file_names(4, 3));
    data = cadre_dataset_filter(data, is_even, NULL);
    data = cadre_dataset_repeat(data, 2);
    data = cadre_dataset_take(cadre_dataset_skip(data, 1), 5);
    data = cadre_dataset_unbatch(batched(data, 2));
    data = cadre_dataset_assert_cardinality(data, 17); /* dropped */
    data = cadre_dataset_prefetch(data, 1);
    expect_elements(
        sharded(data, CADRE_SHARD_FILE, 2, 1, CADRE_SHARD_FILE), "1002 3000 3002 1000 1002");
}

static void what_they_do_not(void **state)
{
    (void)state;
    refuse(cadre_dataset_unique(flat(alike_file_names(4, 3))), CADRE_SHARD_FILE, CADRE_NOT_FOUND,
        "before unique");
    refuse(cadre_dataset_enumerate(flat(alike_file_names(4, 3)), 0), CADRE_SHARD_FILE,
        CADRE_NOT_FOUND, "before enumerate");
    expect_elements(sharded(cadre_dataset_enumerate(flat(alike_file_names(2, 2)), 0),
                        CADRE_SHARD_AUTO, 2, 1, CADRE_SHARD_DATA),
        "(1, 1) (3, 1001)");
    struct inner inner = {.lengths = {2, 3}};
    refuse(cadre_dataset_flat_map(range(0, 2), make_inner, &inner), CADRE_SHARD_FILE,
        CADRE_NOT_FOUND, "flat_map");
    refuse(dataset_failed(NULL, &(struct cadre_error){.code = CADRE_DATA_LOSS, .text = "gone"}),
        CADRE_SHARD_FILE, CADRE_DATA_LOSS, "gone");
    refuse(range(0, 2), (cadre_shard_policy)9, CADRE_INVALID_ARGUMENT, "9 is not");
    struct cadre_error error = {0};
    cadre_dataset *own = NULL;
    const struct auto_shard outside = {.policy = CADRE_SHARD_OFF, .workers = 2, .worker = 2};
    assert_int_equal(
        dataset_auto_shard(range(0, 2), &outside, &own, NULL, &error), CADRE_INVALID_ARGUMENT);
}

static void branches(void **state)
{
    (void)state;
    const int64_t lengths[] = {2, 1, 2, 3};
    cadre_dataset *const two[] = {flat(file_names(lengths, 4)), flat(file_names(lengths, 4))};
    expect_elements(sharded(cadre_dataset_zip(two, 2), CADRE_SHARD_AUTO, 2, 1, CADRE_SHARD_FILE),
        "(1000, 1000) (3000, 3000) (3001, 3001) (3002, 3002)");
    expect_elements(sharded(cadre_dataset_concatenate(
                                flat(file_names(lengths, 4)), flat(file_names(lengths, 2))),
                        CADRE_SHARD_AUTO, 2, 0, CADRE_SHARD_FILE),
        "0 1 2000 2001 0 1");
    cadre_dataset *const mixed[] = {flat(file_names(lengths, 4)), range(0, 9)};
    cadre_dataset *zipped = cadre_dataset_zip(mixed, 2);
    refuse(cadre_dataset_retain(zipped), CADRE_SHARD_FILE, CADRE_NOT_FOUND, "range does not");
    expect_elements(sharded(zipped, CADRE_SHARD_AUTO, 4, 0, CADRE_SHARD_DATA), "(0, 0) (2001, 4)");
}

/* All workers draw from one order of the list, or files would be read twice or not at all. */
static void shuffles_of_names_move_behind_the_shard(void **state)
{
    (void)state;
    const int64_t buffers[] = {3, CADRE_SHUFFLE_ALL};
    for (size_t b = 0; b < 2; b++) {
        bool shuffled = false;
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            bool seen[8] = {false};
            for (uint32_t worker = 0; worker < 3; worker++) {
                struct numbers numbers;
                cadre_dataset *names =
                    cadre_dataset_shuffle(alike_file_names(8, 1), buffers[b], 5, NULL);
                cadre_dataset *own = sharded(flat(cadre_dataset_prefetch(names, 1)),
                    CADRE_SHARD_FILE, 3, worker, CADRE_SHARD_FILE);
                read_epoch(own, epoch, &numbers);
                for (size_t i = 0; i < numbers.count; i++) {
                    shuffled = shuffled || (i > 0 && numbers.values[i] < numbers.values[i - 1]);
                    assert_int_equal(numbers.values[i] / 1000 % 3, worker);
                    assert_false(seen[numbers.values[i] / 1000]);
                    seen[numbers.values[i] / 1000] = true;
                }
                cadre_dataset_release(own);
            }
            for (size_t f = 0; f < 8; f++) {
                assert_true(seen[f]);
            }
        }
        assert_true(shuffled);
    }
}

static void one_worker_keeps_its_pipeline(void **state)
{
    (void)state;
    expect_elements(sharded(flat(alike_file_names(2, 2)), CADRE_SHARD_AUTO, 1, 0, CADRE_SHARD_FILE),
        "0 1 1000 1001");
    expect_elements(sharded(range(0, 3), CADRE_SHARD_AUTO, 1, 0, CADRE_SHARD_DATA), "0 1 2");
}

static void positions(void **state)
{
    (void)state;
    consistent(sharded(batched(range(0, 23), 2), CADRE_SHARD_DATA, 3, 1, CADRE_SHARD_DATA));
    consistent(
        sharded(in_order_only(batched(range(0, 23), 2)), CADRE_SHARD_DATA, 3, 2, CADRE_SHARD_DATA));
    consistent(sharded(flat(alike_file_names(7, 3)), CADRE_SHARD_FILE, 3, 1, CADRE_SHARD_FILE));
}

/* A position that no pipeline can have, as damaged bytes may say. */
static void positions_behind_all_data_are_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const struct pass pass = {.ordered = true};
    cadre_dataset *data = make_sequential(cadre_dataset_range(0, 6, 1));
    data = dataset_required_shard(data, 2, 0, CADRE_SHARD_DATA);
    const uint64_t numbers[] = {UINT64_MAX, UINT64_MAX - 1, (uint64_t)INT64_MAX + 1};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        cadre_iterator *iterator = NULL;
        struct iterator_state_writer saved = {0};
        ASSERT_OK(dataset_iterate(data, &pass, &iterator, &error));
        ASSERT_OK(iterator_state_write_bytes(&saved, "shard", 5, &error));
        ASSERT_OK(iterator_state_write_number(&saved, 0, &error));
        ASSERT_OK(iterator_state_write_number(&saved, numbers[i], &error));
        ASSERT_OK(iterator_save(iterator->input, &saved, &error));
        struct iterator_state_reader reader = {.bytes = saved.bytes, .count = saved.count};
        cadre_status status = iterator_restore(iterator, &reader, &error);
        if (status == CADRE_OK) {
            cadre_element element = {0};
            status = iterator_next(iterator, &element, NULL, &error);
            cadre_element_release(&element);
        }
        assert_int_equal(status, CADRE_INVALID_ARGUMENT);
        iterator_state_writer_clear(&saved);
        cadre_iterator_release(iterator);
    }
    cadre_dataset_release(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_flat_map),
        cmocka_unit_test(positions_behind_all_data_are_refused),
        cmocka_unit_test(more_workers_than_files),
        cmocka_unit_test(fewer_elements_than_workers),
        cmocka_unit_test(file_without_reader),
        cmocka_unit_test(listed_files_are_shared_out),
        cmocka_unit_test(lines_and_records_of_lists_are_shared_out),
        cmocka_unit_test(lists_that_auto_divides_by_samples),
        cmocka_unit_test(what_auto_comes_to_is_explained),
        cmocka_unit_test(hints),
        cmocka_unit_test(data_rewrites_sizes_to_split),
        cmocka_unit_test(manual_shard_under_off),
        cmocka_unit_test(what_files_pass_through),
        cmocka_unit_test(what_they_do_not),
        cmocka_unit_test(branches),
        cmocka_unit_test(shuffles_of_names_move_behind_the_shard),
        cmocka_unit_test(one_worker_keeps_its_pipeline),
        cmocka_unit_test(positions),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
