/* SPDX-License-Identifier: Apache-2.0
 * Random pipelines of all nodes: each way of reading gives the same, positions can be gone back to,
 * whatever was saved does no harm, and no allocation that fails does either. The program is linked
 * with --wrap, so that the library's allocations can fail. CADRE_SEEDS and CADRE_FIRST_SEED say how
 * many pipelines are read, and which. */
#include "tests/lib/rounds.h"
#include "tests/unit/input/cmocka_unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/random_pipelines.h"
#include "tests/unit/input/scratch_folder.h"

#define SEEDS        TEST_ROUNDS(30)
#define SEEDS_FAULTS TEST_ROUNDS(12)

/* --- allocations that fail --- */

static _Atomic uint64_t calls;
static _Atomic uint64_t failing_call; /* from 1; 0: none */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

static bool fails(void)
{
    const uint64_t failing = atomic_load(&failing_call);
    return failing > 0 && atomic_fetch_add(&calls, 1) + 1 == failing;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, bytes);
}

/* --- seeds --- */

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

/* What is shown of a pipeline when a test fails in it: the plan comes before the failure. */
static void draw_and_show(struct plan *plan, uint64_t seed)
{
    plan_draw(plan, seed);
    print_message("%llu: %s\n", (unsigned long long)seed, plan_text(plan));
}

static void for_each_plan(uint64_t count, void (*check)(const struct plan *plan))
{
    const uint64_t first = number_of("CADRE_FIRST_SEED", 1);
    const uint64_t end = first + number_of("CADRE_SEEDS", count);
    for (uint64_t seed = first; seed < end; seed++) {
        struct plan plan;
        draw_and_show(&plan, seed);
        check(&plan);
    }
}

/* --- the checks --- */

static void check_consistent(const struct plan *plan)
{
    cadre_dataset *data = plan_build(plan, false);
    expect_consistent(data);
    cadre_dataset_release(data);
    if (!plan->by_index) {
        data = plan_build(plan, true);
        expect_consistent(data);
        cadre_dataset_release(data);
    }
}

static void each_way_of_reading_gives_the_same(void **state)
{
    (void)state;
    for_each_plan(SEEDS, check_consistent);
}

static void expect_same_text(cadre_dataset *data, cadre_dataset *other)
{
    char *text = dataset_describe(data);
    char *other_text = dataset_describe(other);
    assert_string_equal(text, other_text);
    free(text);
    free(other_text);
}

static void check_built_again(const struct plan *plan)
{
    struct cadre_error error = {0};
    cadre_dataset *data = plan_build(plan, false);
    cadre_dataset *again = plan_build(plan, false);
    cadre_dataset *rebuilt = rebuild_all(data);
    cadre_dataset *in_order = plan_build(plan, !plan->by_index);
    /* Concatenated samples have ids by how many there are before, as far as that is known. */
    ASSERT_OK(dataset_prepare(in_order, &error));
    expect_same_text(data, again);
    expect_same_text(data, rebuilt);
    for (uint64_t epoch = 0; epoch < 2; epoch++) {
        const struct pass pass = {.epoch = epoch, .ordered = true};
        expect_same(data, again, &pass);
        expect_same(data, rebuilt, &pass);
        expect_same(data, in_order, &pass);
    }
    ASSERT_OK(dataset_prepare(data, &error));
    assert_true(dataset_cardinality(in_order) < 0 ||
                dataset_cardinality(in_order) == dataset_cardinality(data));
    cadre_dataset_release(data);
    cadre_dataset_release(again);
    cadre_dataset_release(rebuilt);
    cadre_dataset_release(in_order);
}

static void built_again_it_is_the_same(void **state)
{
    (void)state;
    for_each_plan(SEEDS, check_built_again);
}

/* Reads `most` elements; what comes of it does not matter. */
static void read_some(cadre_iterator *iterator, size_t most)
{
    cadre_element element = {0};
    for (size_t i = 0; i < most && iterator_next(iterator, &element, NULL, NULL) == CADRE_OK; i++) {
        cadre_element_release(&element);
    }
}

static void restore_damaged(
    cadre_dataset *data, const struct iterator_state_writer *saved, struct prng *prng)
{
    const struct pass pass = {.ordered = true};
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    uint8_t *bytes = malloc(saved->count + 1);
    assert_non_null(bytes);
    memcpy(bytes, saved->bytes, saved->count);
    for (uint64_t changes = 1 + prng_uniform(prng, 2); changes > 0 && saved->count > 0; changes--) {
        bytes[prng_uniform(prng, saved->count)] =
            (uint8_t)(prng_chance(prng, 1, 2) ? prng_uniform(prng, 4) : prng_uniform(prng, 256));
    }
    struct iterator_state_reader reader = {.bytes = bytes, .count = saved->count};
    ASSERT_OK(dataset_iterate(data, &pass, &iterator, &error));
    cadre_status status = iterator_restore(iterator, &reader, &error);
    if (status == CADRE_OK) {
        read_some(iterator, 100);
    } else if (status == CADRE_INTERNAL || status == CADRE_OUT_OF_RANGE) {
        fail_msg("%s: %s", cadre_status_name(status), error.text);
    }
    cadre_iterator_release(iterator);
    free(bytes);
}

static void check_damaged(const struct plan *plan)
{
    struct prng prng = {plan->steps[0].with};
    struct cadre_error error = {0};
    cadre_dataset *data = plan_build(plan, false);
    for (size_t at = 0; at < 6; at++) {
        struct iterator_state_writer saved = {0};
        cadre_iterator *iterator = NULL;
        ASSERT_OK(dataset_iterate(data, &(struct pass){.ordered = true}, &iterator, &error));
        read_some(iterator, at);
        ASSERT_OK(iterator_save(iterator, &saved, &error));
        cadre_iterator_release(iterator);
        for (size_t i = 0; i < 20; i++) {
            restore_damaged(data, &saved, &prng);
        }
        iterator_state_writer_clear(&saved);
    }
    cadre_dataset_release(data);
}

static void damaged_positions_do_no_harm(void **state)
{
    (void)state;
    for_each_plan(SEEDS, check_damaged);
}

/* --- faults --- */

static void hash_in(uint64_t *hash, const cadre_element *element)
{
    for (uint32_t i = 0; i < element->count; i++) {
        const cadre_tensor *tensor = element->tensors[i];
        const uint8_t *bytes = cadre_tensor_const_data(tensor);
        const bool strings = cadre_tensor_dtype(tensor) == CADRE_STRING;
        for (size_t k = 0; !strings && k < cadre_tensor_bytes(tensor); k++) {
            *hash = prng_mix(*hash ^ bytes[k]);
        }
        for (int64_t k = 0; strings && k < cadre_tensor_count(tensor); k++) {
            *hash = prng_mix(*hash ^ ((const cadre_string *)(const void *)bytes)[k].size);
        }
    }
}

static cadre_status hash_elements(
    cadre_iterator *iterator, size_t most, uint64_t *hash, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    for (size_t i = 0; i < most && status == CADRE_OK; i++) {
        cadre_element element = {0};
        status = iterator_next(iterator, &element, NULL, error);
        hash_in(hash, &element);
        cadre_element_release(&element);
    }
    return status;
}

/* Builds, reads a little, saves, restores, and reads the rest: OUT_OF_RANGE where all that worked.
 * *ret_hash tells the elements. */
static cadre_status read_all(
    const struct plan *plan, bool in_order, uint64_t *ret_hash, struct cadre_error *error)
{
    const struct pass pass = {.ordered = true};
    struct iterator_state_writer saved = {0};
    cadre_iterator *first = NULL;
    cadre_iterator *second = NULL;
    cadre_dataset *data = plan_build(plan, in_order);
    *ret_hash = 0;
    cadre_status status = dataset_status(data, error);
    status = status == CADRE_OK ? dataset_iterate(data, &pass, &first, error) : status;
    status = status == CADRE_OK ? hash_elements(first, 3, ret_hash, error) : status;
    if (status == CADRE_OK) {
        status = iterator_save(first, &saved, error);
        status = status == CADRE_OK ? dataset_iterate(data, &pass, &second, error) : status;
        struct iterator_state_reader reader = {.bytes = saved.bytes, .count = saved.count};
        status = status == CADRE_OK ? iterator_restore(second, &reader, error) : status;
        status = status == CADRE_OK ? hash_elements(second, 60, ret_hash, error) : status;
    }
    char *text = data != NULL ? dataset_describe(data) : NULL;
    free(text);
    cadre_iterator_release(first);
    cadre_iterator_release(second);
    iterator_state_writer_clear(&saved);
    cadre_dataset_release(data);
    return status;
}

static void check_allocations(const struct plan *plan)
{
    for (int in_order = 0; in_order < (plan->by_index ? 1 : 2); in_order++) {
        struct cadre_error error = {0};
        uint64_t expected = 0;
        assert_int_equal(read_all(plan, in_order != 0, &expected, &error), CADRE_OUT_OF_RANGE);
        for (uint64_t nth = 1;; nth++) {
            uint64_t hash = 0;
            error = (struct cadre_error){0};
            atomic_store(&calls, 0);
            atomic_store(&failing_call, nth);
            cadre_status status = read_all(plan, in_order != 0, &hash, &error);
            atomic_store(&failing_call, 0);
            if (status == CADRE_OUT_OF_RANGE ? hash != expected
                                             : status != CADRE_RESOURCE_EXHAUSTED) {
                fail_msg("allocation %llu: %s: %s", (unsigned long long)nth,
                    cadre_status_name(status), error.text);
            }
            if (atomic_load(&calls) < nth) {
                break;
            }
        }
    }
}

static void allocations_fail_one_by_one(void **state)
{
    (void)state;
    for_each_plan(SEEDS_FAULTS, check_allocations);
}

static void check_faults(const struct plan *plan)
{
    struct cadre_error error = {0};
    uint64_t expected = 0;
    bool met = true;
    assert_int_equal(read_all(plan, false, &expected, &error), CADRE_OUT_OF_RANGE);
    for (uint64_t nth = 1; met; nth++) {
        uint64_t hash = 0;
        error = (struct cadre_error){0};
        fault_arm("", nth);
        cadre_status status = read_all(plan, false, &hash, &error);
        met = fault_disarm();
        if (status == CADRE_OUT_OF_RANGE ? hash != expected
                                         : status == CADRE_OK || status == CADRE_INTERNAL) {
            fail_msg("fault %llu: %s: %s", (unsigned long long)nth, cadre_status_name(status),
                error.text);
        }
    }
}

static void calls_fail_one_by_one(void **state)
{
    (void)state;
    for_each_plan(SEEDS, check_faults);
}

/* --- threads --- */

struct reader {
    pthread_t thread;
    cadre_dataset *data;
    uint64_t hash;
    cadre_status status;
};

/* Asks for everything that is found when it is first needed. */
static void *read_shared(void *argument)
{
    struct reader *reader = argument;
    const struct pass pass = {.ordered = true};
    struct cadre_error error = {0};
    cadre_element_spec spec;
    cadre_iterator *iterator = NULL;
    reader->status = dataset_spec(reader->data, &spec, &error);
    (void)dataset_cardinality(reader->data);
    if (reader->status == CADRE_OK) {
        reader->status = dataset_iterate(reader->data, &pass, &iterator, &error);
    }
    if (reader->status == CADRE_OK) {
        reader->status = hash_elements(iterator, SIZE_MAX, &reader->hash, &error);
    }
    cadre_iterator_release(iterator);
    return NULL;
}

static void check_shared(const struct plan *plan)
{
    struct reader readers[4];
    cadre_dataset *data = plan_build(plan, false);
    for (size_t i = 0; i < 4; i++) {
        readers[i] = (struct reader){.data = data};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_shared, &readers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(readers[i].thread, NULL), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(readers[i].status, CADRE_OUT_OF_RANGE);
        assert_int_equal(readers[i].hash, readers[0].hash);
    }
    cadre_dataset_release(data);
}

static void many_threads_share_one(void **state)
{
    (void)state;
    for_each_plan(SEEDS, check_shared);
}

static int setup(void **state)
{
    int result = scratch_setup(state);
    plan_files_make();
    return result;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_of_reading_gives_the_same),
        cmocka_unit_test(built_again_it_is_the_same),
        cmocka_unit_test(damaged_positions_do_no_harm),
        cmocka_unit_test(allocations_fail_one_by_one),
        cmocka_unit_test(calls_fail_one_by_one),
        cmocka_unit_test(many_threads_share_one),
    };
    return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
