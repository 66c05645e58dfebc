/* SPDX-License-Identifier: Apache-2.0
 * How the slots of a worker share out its GPUs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "worker/host/probe/slot_gpus.h"

static void fill(struct host_gpus *gpus, uint32_t count)
{
    *gpus = (struct host_gpus){.count = count, .usable = count};
    for (uint32_t i = 0; i < count; i++) {
        snprintf(gpus->devices[i].name, sizeof gpus->devices[i].name, "GPU");
        snprintf(gpus->devices[i].visible, sizeof gpus->devices[i].visible, "g%u", i);
    }
}

static void assert_shares(uint32_t count, uint32_t slots, const char *const wanted[])
{
    static struct host_gpus gpus;
    fill(&gpus, count);
    char **shares = slot_gpus_divide(&gpus, slots);
    assert_non_null(shares);
    for (uint32_t slot = 0; slot < slots; slot++) {
        assert_string_equal(shares[slot], wanted[slot]);
    }
    free(shares);
}

static void each_slot_has_its_own(void **state)
{
    (void)state;
    assert_shares(4, 1, (const char *const[]){"g0,g1,g2,g3"});
    assert_shares(4, 2, (const char *const[]){"g0,g1", "g2,g3"});
    assert_shares(4, 4, (const char *const[]){"g0", "g1", "g2", "g3"});
    assert_shares(8, 3, (const char *const[]){"g0,g1", "g2,g3,g4", "g5,g6,g7"});
}

static void with_more_slots_than_gpus_they_take_turns(void **state)
{
    (void)state;
    assert_shares(2, 5, (const char *const[]){"g0", "g1", "g0", "g1", "g0"});
    assert_shares(1, 2, (const char *const[]){"g0", "g0"});
}

static void without_gpus_there_is_nothing_to_share(void **state)
{
    (void)state;
    assert_shares(0, 2, (const char *const[]){"", ""});
}

/* Every GPU belongs to a slot, none to two, and each slot has what it is counted for. */
static void any_numbers_divide(void **state)
{
    (void)state;
    for (uint32_t gpus = 0; gpus <= LIMIT_GPUS_PER_WORKER; gpus++) {
        for (uint32_t slots = 1; slots <= 70; slots++) {
            uint32_t next = 0;
            for (uint32_t slot = 0; slot < slots; slot++) {
                struct gpus_range range = gpus_of_slot(gpus, slots, slot);
                assert_true(range.end >= range.first && range.end <= gpus);
                assert_true(range.end - range.first >= gpus_per_slot(gpus, slots));
                assert_true(gpus < slots || range.first == next);
                next = range.end;
            }
            assert_true(gpus < slots || next == gpus);
        }
    }
}

static void the_longest_names_fit(void **state)
{
    (void)state;
    static struct host_gpus gpus;
    fill(&gpus, LIMIT_GPUS_PER_WORKER);
    for (uint32_t i = 0; i < LIMIT_GPUS_PER_WORKER; i++) {
        memset(gpus.devices[i].visible, 'v', LIMIT_NAME_BYTES - 1);
    }
    char **shares = slot_gpus_divide(&gpus, 1);
    assert_non_null(shares);
    assert_int_equal(strlen(shares[0]), LIMIT_GPUS_PER_WORKER * LIMIT_NAME_BYTES - 1);
    free(shares);
    shares = slot_gpus_divide(&gpus, LIMIT_SLOTS_PER_WORKER);
    assert_non_null(shares);
    assert_int_equal(strlen(shares[LIMIT_SLOTS_PER_WORKER - 1]), LIMIT_NAME_BYTES - 1);
    free(shares);
}

static void a_summary_names_them(void **state)
{
    (void)state;
    static struct host_gpus gpus;
    char text[LIMIT_TEXT_BYTES];
    fill(&gpus, 0);
    slot_gpus_summary(&gpus, text);
    assert_string_equal(text, "none");
    fill(&gpus, 8);
    slot_gpus_summary(&gpus, text);
    assert_string_equal(text, "8 x GPU");
    gpus.devices[7].name[0] = 'T';
    slot_gpus_summary(&gpus, text);
    assert_string_equal(text, "7 x GPU and 1 other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_slot_has_its_own),
        cmocka_unit_test(with_more_slots_than_gpus_they_take_turns),
        cmocka_unit_test(without_gpus_there_is_nothing_to_share),
        cmocka_unit_test(any_numbers_divide), cmocka_unit_test(the_longest_names_fit),
        cmocka_unit_test(a_summary_names_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
