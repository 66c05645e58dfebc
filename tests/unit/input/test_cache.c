/* SPDX-License-Identifier: Apache-2.0
 * cache: in memory and in files, in order and by index; what interrupts it, damages it, or does not
 * fit; two processes; a full disk. */
#include "tests/unit/input/cmocka_unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/scratch_folder.h"

static atomic_int calls;

/* Counts its calls; the number and its half. */
static cadre_status counted(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    atomic_fetch_add(&calls, 1);
    int64_t value = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    ret_out->count = 2;
    CADRE_TRY(cadre_tensor_from_i64(value, &ret_out->tensors[0]));
    return cadre_tensor_from_f32((float)value / 2, &ret_out->tensors[1]);
}

static const cadre_element_spec pair = {
    .count = 2, .tensors = {{.dtype = CADRE_I64}, {.dtype = CADRE_F32}}};

static cadre_dataset *numbers(int64_t count, bool sequential)
{
    cadre_dataset *data = cadre_dataset_range(0, count, 1);
    data = sequential ? in_order_only(data) : data;
    return cadre_dataset_map(data, counted, NULL, &(cadre_map_options){.output = &pair});
}

static const char *all(cadre_dataset *data, uint64_t epoch)
{
    return elements_text(data, &(struct pass){.epoch = epoch}, SIZE_MAX);
}

#define FOUR "(0, 0) (1, 0.5) (2, 1) (3, 1.5)"

static void expect_calls(int expected)
{
    assert_int_equal(atomic_exchange(&calls, 0), expected);
}

static bool is_there(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0;
}

static const char *file_of(const char *name, const char *suffix)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s", name, suffix);
    return scratch_path(full);
}

/* Neither the files, nor what is being written. */
static void remove_cache(const char *name)
{
    (void)unlink(file_of(name, ".data"));
    (void)unlink(file_of(name, ".index"));
    (void)unlink(file_of(name, ".lock"));
    assert_false(is_there(file_of(name, ".data.partial")));
}

/* --- both kinds --- */

/* The first complete iteration is the only one that calls the function. */
static void the_input_is_read_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        const char *path = kind >= 2 ? scratch_path("once") : NULL;
        cadre_dataset *data = cadre_dataset_cache(numbers(4, kind % 2 == 1), path);
        assert_string_equal(all(data, 0), FOUR);
        expect_calls(4);
        assert_string_equal(all(data, 1), FOUR);
        assert_string_equal(all(data, 0), FOUR);
        expect_calls(0);
        expect_consistent(data);
        expect_calls(0);
        cadre_dataset_release(data);
        if (path != NULL) {
            /* A later program finds it again. */
            data = cadre_dataset_cache(numbers(4, kind % 2 == 1), path);
            assert_string_equal(all(data, 7), FOUR);
            expect_calls(0);
            cadre_dataset_release(data);
        }
        remove_cache("once");
    }
}

static void what_is_left_early_is_not_kept(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        const char *path = kind == 1 ? scratch_path("early") : NULL;
        cadre_dataset *data = cadre_dataset_cache(numbers(4, true), path);
        elements_text(data, &(struct pass){0}, 3);
        expect_calls(3);
        assert_false(is_there(file_of("early", ".data.partial")));
        assert_string_equal(elements_text(data, &(struct pass){0}, 4), FOUR); /* not its end */
        expect_calls(4);
        assert_string_equal(all(data, 1), FOUR);
        expect_calls(4);
        assert_string_equal(all(data, 1), FOUR);
        expect_calls(0);
        cadre_dataset_release(data);
        remove_cache("early");
    }
}

/* Positions in each state: filling, complete, and with the store gone meanwhile. */
static void positions(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        const char *path = kind == 1 ? scratch_path("where") : NULL;
        cadre_dataset *data = cadre_dataset_cache(numbers(5, true), path);
        for (uint64_t at = 0; at <= 5; at++) {
            struct cadre_error error = {0};
            struct iterator_state_writer saved = {0};
            cadre_iterator *iterator = NULL;
            uint64_t skipped = 0;
            cadre_dataset *fresh = cadre_dataset_cache(numbers(5, true), NULL);
            all(fresh, 0);
            ASSERT_OK(dataset_iterate(fresh, &(struct pass){0}, &iterator, &error));
            ASSERT_OK(iterator_skip(iterator, at, &skipped, &error));
            ASSERT_OK(iterator_save(iterator, &saved, &error));
            cadre_iterator_release(iterator);
            cadre_dataset_release(fresh);
            /* A store that is not there is filled up to the position, and on. */
            fresh = cadre_dataset_cache(numbers(5, true), NULL);
            struct iterator_state_reader reader = {.bytes = saved.bytes, .count = saved.count};
            ASSERT_OK(dataset_iterate(fresh, &(struct pass){0}, &iterator, &error));
            ASSERT_OK(iterator_restore(iterator, &reader, &error));
            ASSERT_OK(iterator_skip(iterator, 9, &skipped, &error));
            assert_int_equal(skipped, 5 - at);
            cadre_iterator_release(iterator);
            atomic_store(&calls, 0);
            all(fresh, 0);
            expect_calls(0);
            cadre_dataset_release(fresh);
            iterator_state_writer_clear(&saved);
        }
        expect_positions(data, &(struct pass){0});
        cadre_dataset_release(data);
        remove_cache("where");
    }
    atomic_store(&calls, 0);
}

/* What a shuffle before the cache does in epoch 0 is what all epochs see. */
static void the_order_of_epoch_0_stays(void **state)
{
    (void)state;
    cadre_dataset *shuffled =
        cadre_dataset_shuffle(cadre_dataset_range(0, 20, 1), CADRE_SHUFFLE_ALL, 9, NULL);
    char first[512];
    snprintf(first, sizeof first, "%s", all(shuffled, 0));
    assert_string_not_equal(all(shuffled, 3), first);
    cadre_dataset *data = cadre_dataset_cache(shuffled, NULL);
    assert_string_equal(all(data, 3), first);
    assert_string_equal(all(data, 0), first);
    expect_consistent(data);
    cadre_dataset_release(data);
}

/* Some places, in batches that cross epochs and hold an element twice; each is made once. */
static void by_index_each_is_made_once(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        const char *path = kind == 1 ? scratch_path("places") : NULL;
        cadre_dataset *data = cadre_dataset_cache(numbers(10, false), path);
        struct cadre_error error = {0};
        struct element_position positions[4] = {{3, 0}, {7, 5}, {3, 2}, {9, 0}};
        cadre_element rows = {0};
        struct id_list ids = {0};
        ASSERT_OK(dataset_gather(data, positions, 4, &rows, &ids, &error));
        const int64_t *values = cadre_tensor_const_data(rows.tensors[0]);
        assert_true(values[0] == 3 && values[1] == 7 && values[2] == 3 && values[3] == 9);
        assert_true(ids.count == 4 && ids.ids[0] == 3 && ids.ids[1] == 7 && ids.ids[2] == 3);
        cadre_element_release(&rows);
        atomic_store(&calls, 0);
        ids.count = 0;
        ASSERT_OK(dataset_at(data, (struct element_position){7, 1}, &rows, &ids, &error));
        assert_true(ids.count == 1 && ids.ids[0] == 7);
        cadre_element_release(&rows);
        id_list_clear(&ids);
        expect_calls(0);
        all(data, 0);
        expect_calls(7);
        all(data, 1);
        expect_calls(0);
        cadre_dataset_release(data);
        if (path != NULL) {
            assert_true(is_there(file_of("places", ".index")));
        }
        remove_cache("places");
    }
    /* Given up in the middle, the files go. */
    cadre_dataset *data = cadre_dataset_cache(numbers(10, false), scratch_path("places"));
    elements_text(data, &(struct pass){0}, 5);
    assert_true(is_there(file_of("places", ".data.partial")));
    cadre_dataset_release(data);
    remove_cache("places");
    atomic_store(&calls, 0);
}

static void *read_all(void *argument)
{
    for (int round = 0; round < 20; round++) {
        cadre_iterator *iterator = NULL;
        cadre_element element = {0};
        int64_t sum = 0;
        if (cadre_dataset_iterate(argument, 0, &iterator) != CADRE_OK) {
            return "iterate";
        }
        cadre_status status = CADRE_OK;
        while ((status = cadre_iterator_next(iterator, &element)) == CADRE_OK) {
            sum += *(const int64_t *)cadre_tensor_const_data(element.tensors[0]);
            cadre_element_release(&element);
        }
        cadre_iterator_release(iterator);
        if (status != CADRE_OUT_OF_RANGE || sum != 4950) {
            return "next";
        }
    }
    return NULL;
}

static void several_threads_may_read(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        const char *path = kind >= 2 ? scratch_path("threads") : NULL;
        cadre_dataset *data = cadre_dataset_cache(numbers(100, kind % 2 == 1), path);
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, read_all, data), 0);
        }
        for (int i = 0; i < 4; i++) {
            void *result = NULL;
            pthread_join(threads[i], &result);
            assert_null(result);
        }
        atomic_store(&calls, 0);
        all(data, 0);
        expect_calls(0);
        cadre_dataset_release(data);
        remove_cache("threads");
    }
}

static cadre_status fail_at_two(const cadre_element *in, cadre_element *ret_out, void *user)
{
    return *(const int64_t *)cadre_tensor_const_data(in->tensors[0]) == 2
               ? CADRE_ABORTED
               : counted(in, ret_out, user);
}

static void an_input_that_fails(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        const char *path = kind >= 2 ? scratch_path("failing") : NULL;
        cadre_dataset *data = cadre_dataset_range(0, 4, 1);
        data = kind % 2 == 1 ? in_order_only(data) : data;
        data = cadre_dataset_cache(
            cadre_dataset_map(data, fail_at_two, NULL, &(cadre_map_options){.output = &pair}),
            path);
        expect_failure(cadre_dataset_retain(data), CADRE_ABORTED, "(0, 0) (1, 0.5)!");
        expect_failure(data, CADRE_ABORTED, "map: the function failed");
        remove_cache("failing");
    }
    atomic_store(&calls, 0);
}

static void nothing_and_no_end(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        const char *path = kind == 1 ? scratch_path("nothing") : NULL;
        cadre_dataset *data = cadre_dataset_cache(numbers(0, true), path);
        assert_string_equal(all(data, 0), "");
        expect_consistent(data);
        cadre_dataset_release(data);
        remove_cache("nothing");
        for (int sequential = 0; sequential < 2; sequential++) {
            data = cadre_dataset_cache(
                cadre_dataset_repeat(numbers(3, sequential == 1), CADRE_REPEAT_FOREVER), path);
            data = cadre_dataset_take(data, 4);
            assert_string_equal(all(data, 0), "(0, 0) (1, 0.5) (2, 1) (0, 0)");
            expect_consistent(data);
            cadre_dataset_release(data);
            assert_false(is_there(file_of("nothing", ".data.partial")));
        }
        remove_cache("nothing");
    }
    atomic_store(&calls, 0);
    expect_failure(
        cadre_dataset_cache(numbers(3, true), ""), CADRE_INVALID_ARGUMENT, "the path is empty");
}

static void memory_that_runs_out(void **state)
{
    (void)state;
    for (int sequential = 0; sequential < 2; sequential++) {
        for (const char *const *point = (const char *const[]){"memory.left", "cache.memory", NULL};
             *point != NULL; point++) {
            bool met = true;
            for (uint64_t nth = 1; met; nth++) {
                cadre_dataset *data = cadre_dataset_cache(numbers(100, sequential == 1), NULL);
                fault_arm(*point, nth);
                const char *text = all(data, 0);
                met = fault_disarm();
                if (met) {
                    assert_non_null(strstr(text, "!RESOURCE_EXHAUSTED cache: "));
                    assert_non_null(strstr(text, "give a path, so that files hold them"));
                }
                /* It can be read all the same, once there is memory. */
                assert_null(strstr(all(data, 0), "!"));
                cadre_dataset_release(data);
            }
        }
    }
    atomic_store(&calls, 0);
}

/* Text counts as well: memory is looked at again after so many bytes of it. */
static void the_text_of_strings_is_counted(void **state)
{
    (void)state;
    const size_t size = (size_t)8 << 20;
    char *text = calloc(size, 1);
    assert_non_null(text);
    const cadre_string string = {.bytes = text, .size = size};
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_from_data(CADRE_STRING, 0, NULL, &string, &tensor), CADRE_OK);
    free(text);
    for (int sequential = 0; sequential < 2; sequential++) {
        cadre_dataset *data = cadre_dataset_repeat(cadre_dataset_tensors(&tensor, 1), 20);
        data = cadre_dataset_cache(sequential != 0 ? in_order_only(data) : data, NULL);
        cadre_element element = {0};
        cadre_iterator *iterator = NULL;
        cadre_status status = cadre_dataset_iterate(data, 0, &iterator);
        fault_arm("memory.left", 2);
        for (int i = 0; i < 20 && status == CADRE_OK; i++) {
            status = cadre_iterator_next(iterator, &element);
            cadre_element_release(&element);
        }
        assert_true(fault_disarm());
        assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
        cadre_iterator_release(iterator);
        cadre_dataset_release(data);
    }
    cadre_tensor_release(tensor);
}

/* --- files --- */

static void fill_files(const char *name)
{
    cadre_dataset *data = cadre_dataset_cache(numbers(4, true), scratch_path(name));
    assert_string_equal(all(data, 0), FOUR);
    cadre_dataset_release(data);
    atomic_store(&calls, 0);
}

static void what_does_not_fit_is_replaced(void **state)
{
    (void)state;
    fill_files("fit");
    /* Another pipeline, another number of elements, other elements. */
    cadre_dataset *data =
        cadre_dataset_cache(cadre_dataset_skip(numbers(5, true), 1), scratch_path("fit"));
    assert_string_equal(all(data, 0), "(1, 0.5) (2, 1) (3, 1.5) (4, 2)");
    expect_calls(4);
    cadre_dataset_release(data);
    data = cadre_dataset_cache(cadre_dataset_range(0, 3, 1), scratch_path("fit"));
    assert_string_equal(all(data, 0), "0 1 2");
    cadre_dataset_release(data);
    data = cadre_dataset_cache(cadre_dataset_range(0, 3, 1), scratch_path("fit"));
    expect_consistent(data);
    cadre_dataset_release(data);
    remove_cache("fit");
}

/* Every cut and many a changed byte of each file is an error that says what to do. */
static void damaged_files_are_reported(void **state)
{
    (void)state;
    static const char *const suffixes[] = {".index", ".data"};
    for (int f = 0; f < 2; f++) {
        struct cadre_error error = {0};
        char *bytes = NULL;
        size_t size = 0;
        fill_files("hurt");
        const char *path = file_of("hurt", suffixes[f]);
        ASSERT_OK(file_read(path, SIZE_MAX / 4, &bytes, &size, &error));
        for (size_t i = 0; i < 2 * size; i++) {
            bool cut = i >= size;
            size_t at = i % size;
            char before = bytes[at];
            bytes[at] = (char)(cut ? before : before ^ 0x10);
            scratch_write(strrchr(path, '/') + 1, bytes, cut ? at : size);
            bytes[at] = before;
            cadre_dataset *data = cadre_dataset_cache(numbers(4, true), scratch_path("hurt"));
            expect_failure(cadre_dataset_retain(data), CADRE_DATA_LOSS, "cache: ");
            const char *text = all(data, 0);
            assert_non_null(strstr(text, "hurt.index and "));
            assert_non_null(strstr(text, "hurt.data, and they are made again"));
            cadre_dataset_release(data);
        }
        free(bytes);
        (void)unlink(file_of("hurt", suffixes[f]));
        cadre_dataset *data = cadre_dataset_cache(numbers(4, true), scratch_path("hurt"));
        if (f == 1) {
            expect_failure(data, CADRE_DATA_LOSS, "hurt.data is missing");
        } else {
            expect_elements(data, FOUR); /* data alone counts for nothing */
        }
        remove_cache("hurt");
    }
    atomic_store(&calls, 0);
}

/* Each call that the disk can refuse, once: an error, nothing left behind, and it works again. */
static void a_disk_that_refuses(void **state)
{
    (void)state;
    static const char *const points[] = {
        "file.lock", "file.write", "file.fsync", "cache.open", "cache.fsync", "cache.rename"};
    for (size_t p = 0; p < sizeof points / sizeof points[0]; p++) {
        for (int sequential = 0; sequential < 2; sequential++) {
            bool met = true;
            for (uint64_t nth = 1; met; nth++) {
                assert_true(nth < 100);
                cadre_dataset *data =
                    cadre_dataset_cache(numbers(4, sequential == 1), scratch_path("full"));
                errno = ENOSPC;
                fault_arm(points[p], nth);
                const char *text = all(data, 0);
                met = fault_disarm();
                if (met) {
                    assert_non_null(strstr(text, " cache: "));
                    assert_false(is_there(file_of("full", ".data.partial")));
                } else {
                    assert_string_equal(text, FOUR);
                }
                cadre_dataset_release(data);
                data = cadre_dataset_cache(numbers(4, sequential == 1), scratch_path("full"));
                assert_string_equal(all(data, 0), FOUR);
                cadre_dataset_release(data);
                remove_cache("full");
            }
        }
    }
    expect_failure(cadre_dataset_cache(numbers(4, true), scratch_path("absent/cache")),
        CADRE_NOT_FOUND, "cache: cannot open lock file");
    atomic_store(&calls, 0);
}

static cadre_iterator *half_way(cadre_dataset *data)
{
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    uint64_t skipped = 0;
    ASSERT_OK(dataset_iterate(data, &(struct pass){0}, &iterator, &error));
    ASSERT_OK(iterator_skip(iterator, 2, &skipped, &error));
    return iterator;
}

/* Another node, as another process: while one writes, the other reads through and stores nothing;
 * then it finds what was written. */
static void two_of_one_path(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uint64_t skipped = 0;
    cadre_dataset *one = cadre_dataset_cache(numbers(4, true), scratch_path("two"));
    cadre_dataset *other = cadre_dataset_cache(numbers(4, true), scratch_path("two"));
    cadre_dataset *by_index = cadre_dataset_cache(numbers(4, false), scratch_path("two"));
    cadre_iterator *writer = half_way(one);
    cadre_iterator *same = half_way(one);
    assert_true(is_there(file_of("two", ".data.partial")));
    atomic_store(&calls, 0);
    assert_string_equal(all(other, 0), FOUR);
    expect_calls(4);
    assert_string_equal(all(by_index, 0), FOUR);
    expect_calls(4);
    assert_string_equal(all(other, 0), FOUR);
    expect_calls(4);
    ASSERT_OK(iterator_skip(writer, 9, &skipped, &error));
    assert_int_equal(skipped, 2);
    assert_true(is_there(file_of("two", ".index")));
    atomic_store(&calls, 0);
    assert_string_equal(all(other, 0), FOUR);
    expect_calls(0);
    ASSERT_OK(iterator_skip(same, 9, &skipped, &error));
    assert_int_equal(skipped, 2);
    cadre_iterator_release(writer);
    cadre_iterator_release(same);
    cadre_dataset_release(one);
    cadre_dataset_release(other);
    cadre_dataset_release(by_index);
    remove_cache("two");
    atomic_store(&calls, 0);
}

/* A process that dies while it writes leaves nothing that counts, and blocks no other. */
static void a_writer_that_dies(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        half_way(cadre_dataset_cache(numbers(4, true), scratch_path("dead")));
        _exit(is_there(file_of("dead", ".data.partial")) ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(is_there(file_of("dead", ".data.partial")));
    cadre_dataset *data = cadre_dataset_cache(numbers(4, true), scratch_path("dead"));
    atomic_store(&calls, 0);
    assert_string_equal(all(data, 0), FOUR);
    assert_string_equal(all(data, 0), FOUR);
    expect_calls(4);
    cadre_dataset_release(data);
    remove_cache("dead");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_input_is_read_once),
        cmocka_unit_test(what_is_left_early_is_not_kept),
        cmocka_unit_test(positions),
        cmocka_unit_test(the_order_of_epoch_0_stays),
        cmocka_unit_test(by_index_each_is_made_once),
        cmocka_unit_test(several_threads_may_read),
        cmocka_unit_test(an_input_that_fails),
        cmocka_unit_test(nothing_and_no_end),
        cmocka_unit_test(memory_that_runs_out),
        cmocka_unit_test(the_text_of_strings_is_counted),
        cmocka_unit_test(what_does_not_fit_is_replaced),
        cmocka_unit_test(damaged_files_are_reported),
        cmocka_unit_test(a_disk_that_refuses),
        cmocka_unit_test(two_of_one_path),
        cmocka_unit_test(a_writer_that_dies),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
