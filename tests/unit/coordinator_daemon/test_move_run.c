/* SPDX-License-Identifier: Apache-2.0
 * A copy of contents, of which each thing is copied by the test: what is tried again, and how
 * often.
 */
#include <stdio.h>

#include "common/base/clock.h"
#include "coordinator/daemon/moving/move_run.h"
#include "coordinator/daemon/objects/objects.h"
#include "tests/lib/test.h"

#define ITEMS 5

/* The number of the item that fails, and how often it does. */
static uint32_t failing;
static _Atomic unsigned failures_left;
static _Atomic unsigned tries;

bool move_has(const struct move *move, const struct move_item *item)
{
    (void)move;
    (void)item;
    return false;
}

cadre_status move_one(struct move *move, const struct move_item *item, struct cadre_error *error)
{
    (void)move;
    if (item->number != failing) {
        return CADRE_OK;
    }
    atomic_fetch_add(&tries, 1);
    if (atomic_load(&failures_left) == 0) {
        return CADRE_OK;
    }
    atomic_fetch_sub(&failures_left, 1);
    return cadre_error_set(error, CADRE_UNAVAILABLE, "item %u cannot be read", item->number);
}

static cadre_status copy_all(
    unsigned failures, struct move_result *ret_result, struct cadre_error *error)
{
    struct move_item items[ITEMS];
    for (uint32_t i = 0; i < ITEMS; i++) {
        items[i] = (struct move_item){.kind = MOVE_LOG, .number = i};
    }
    const struct objects_options options = {.root = test_temp_dir(), .deadline_us = CADRE_US_PER_S};
    struct move move = {.from = {.items = items, .count = ITEMS}};
    assert_ok(objects_open(&options, &move.objects, error), error);
    failing = 3;
    atomic_store(&failures_left, failures);
    atomic_store(&tries, 0);
    cadre_status status = move_run(&move, ret_result, error);
    objects_close(move.objects);
    return status;
}

static void what_passes_is_tried_again(void **state)
{
    (void)state;
    struct move_result result = {0};
    struct cadre_error error = {0};
    assert_ok(copy_all(4, &result, &error), &error);
    assert_int_equal(result.copied, ITEMS);
    assert_int_equal(atomic_load(&tries), 5);
}

/* The store is there, and one object of it cannot be read, as of a damaged disk. */
static void one_that_never_comes_ends_it(void **state)
{
    (void)state;
    struct move_result result = {0};
    struct cadre_error error = {0};
    assert_error(copy_all(100000, &result, &error), CADRE_UNAVAILABLE, &error, "item 3");
    assert_in_range(atomic_load(&tries), 5, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_passes_is_tried_again),
        cmocka_unit_test(one_that_never_comes_ends_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
