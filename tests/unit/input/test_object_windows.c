/* SPDX-License-Identifier: Apache-2.0
 * The two pure parts of reading objects: how far ahead blocks are asked for, and which blocks make
 * room. */
#include "tests/unit/input/cmocka_unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "worker/library/input/objects/ahead_window.h"
#include "worker/library/input/objects/block_clock.h"

#define TOTAL 5000

/* Asks for all that the window says, and checks each run. Returns the runs. */
static size_t ask(
    struct ahead_window *window, uint64_t wanted, uint64_t limit, unsigned char *asked)
{
    size_t runs = 0;
    for (;;) {
        struct block_run run = ahead_window_next(window, wanted, TOTAL, limit);
        if (run.count == 0) {
            return runs;
        }
        assert_true(run.count <= AHEAD_RUN_MAX);
        assert_true(run.first + run.count <= TOTAL);
        assert_int_equal(run.first, window->end);
        uint64_t most = window->blocks > wanted ? window->blocks : wanted;
        assert_true(run.first + run.count <= window->begin + (most < limit ? most : limit));
        for (uint64_t i = 0; i < run.count; i++) {
            asked[run.first + i]++;
        }
        ahead_window_asked(window, run);
        runs++;
    }
}

/* Each block is asked for once, before it is read, and the window grows to its largest. */
static void in_order(void **state)
{
    (void)state;
    static unsigned char asked[TOTAL];
    struct ahead_window window = {0};
    memset(asked, 0, sizeof asked);
    for (uint64_t i = 0; i < TOTAL; i++) {
        bool on = ahead_window_move(&window, i);
        assert_int_equal(on, i > 0);
        ask(&window, 1, 1000, asked);
        assert_int_equal(asked[i], 1);
        if (i == 0) {
            assert_int_equal(window.end, AHEAD_BLOCKS_FIRST);
        }
    }
    assert_int_equal(window.blocks, AHEAD_BLOCKS_MAX);
    assert_int_equal(window.end, TOTAL);
    for (size_t i = 0; i < TOTAL; i++) {
        assert_int_equal(asked[i], 1);
    }
}

/* So many blocks at a time are shared by several requests from the start on. */
static void several_requests(void **state)
{
    (void)state;
    static unsigned char asked[TOTAL];
    struct ahead_window window = {0};
    ahead_window_move(&window, 0);
    assert_int_equal(ask(&window, 1, 1000, asked), 4);
    struct ahead_window long_one = {0};
    ahead_window_move(&long_one, 0);
    assert_true(ask(&long_one, 64, 1000, asked) >= 4);
    assert_true(long_one.end >= 60); /* what does not fill a request comes with the next read */
}

static void limited(void **state)
{
    (void)state;
    static unsigned char asked[TOTAL];
    for (uint64_t limit = 1; limit < 40; limit++) {
        struct ahead_window window = {0};
        memset(asked, 0, sizeof asked);
        for (uint64_t i = 0; i < TOTAL; i++) {
            ahead_window_move(&window, i);
            ask(&window, 1, limit, asked);
            assert_true(window.end <= i + limit);
            assert_int_equal(asked[i], 1);
        }
    }
}

static void jumps(void **state)
{
    (void)state;
    static unsigned char asked[TOTAL];
    struct ahead_window window = {0};
    for (uint64_t i = 0; i < 300; i++) {
        ahead_window_move(&window, i);
        ask(&window, 1, 1000, asked);
    }
    uint64_t blocks = window.blocks;
    assert_true(blocks >= 64);
    /* Over a record: it is reading on. */
    assert_true(ahead_window_move(&window, 320));
    assert_true(window.blocks >= blocks);
    /* Far away, and back: from the start again. */
    assert_false(ahead_window_move(&window, 4000));
    assert_int_equal(window.blocks, AHEAD_BLOCKS_FIRST);
    assert_false(ahead_window_move(&window, 20));
    ask(&window, 1, 1000, asked);
    assert_int_equal(window.end, 20 + AHEAD_BLOCKS_FIRST);
}

/* --- the clock --- */

#define NUMBERS 200

/* Owners are rows of this table; what the clock believes is compared with it. */
static struct owner {
    bool held[NUMBERS];
    bool used[NUMBERS];
    bool busy[NUMBERS];
    uint32_t slot[NUMBERS];
} owners[3];

static enum block_answer evict(void *owner, uint64_t number)
{
    struct owner *row = owner;
    assert_true(row->held[number]);
    if (row->busy[number]) {
        return BLOCK_BUSY;
    }
    if (row->used[number]) {
        row->used[number] = false;
        return BLOCK_SPARED;
    }
    row->held[number] = false;
    return BLOCK_EVICTED;
}

static uint32_t held_blocks(bool busy_alone)
{
    uint32_t count = 0;
    for (size_t o = 0; o < 3; o++) {
        for (size_t i = 0; i < NUMBERS; i++) {
            count += owners[o].held[i] && (owners[o].busy[i] || !busy_alone);
        }
    }
    return count;
}

static void clock_against_a_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct block_slot slots[24];
        struct block_clock clock;
        struct prng random = {.state = seed};
        uint32_t count = (uint32_t)(seed % 24 + 1);
        memset(owners, 0, sizeof owners);
        block_clock_init(&clock, slots, count);
        for (size_t turn = 0; turn < 5000; turn++) {
            struct owner *owner = &owners[prng_uniform(&random, 3)];
            size_t number = (size_t)prng_uniform(&random, NUMBERS);
            if (!owner->held[number]) {
                uint32_t busy = held_blocks(true);
                uint32_t slot = block_clock_take(&clock, owner, number, evict);
                assert_int_equal(slot == BLOCK_CLOCK_NONE, busy == count);
                if (slot != BLOCK_CLOCK_NONE) {
                    owner->held[number] = true;
                    owner->busy[number] = prng_uniform(&random, 4) == 0;
                    owner->used[number] = prng_uniform(&random, 2) == 0;
                    owner->slot[number] = slot;
                }
            } else if (prng_uniform(&random, 3) == 0) {
                block_clock_give(&clock, owner->slot[number]);
                owner->held[number] = false;
            } else {
                owner->busy[number] = false;
            }
            assert_int_equal(clock.used, held_blocks(false));
            assert_true(clock.used <= count);
        }
    }
}

/* What was used since stays longer than what was not. */
static void used_blocks_stay(void **state)
{
    (void)state;
    struct block_slot slots[10];
    struct block_clock clock;
    memset(owners, 0, sizeof owners);
    block_clock_init(&clock, slots, 10);
    for (size_t i = 0; i < 100; i++) {
        assert_int_not_equal(block_clock_take(&clock, &owners[0], i, evict), BLOCK_CLOCK_NONE);
        owners[0].held[i] = true;
        for (size_t j = 0; j < 5 && j <= i; j++) {
            owners[0].used[j] = true; /* the first five again and again */
        }
    }
    for (size_t j = 0; j < 5; j++) {
        assert_true(owners[0].held[j]);
    }
    assert_int_equal(held_blocks(false), 10);
}

static void no_slots(void **state)
{
    (void)state;
    struct block_slot slots[1];
    struct block_clock clock;
    block_clock_init(&clock, slots, 0);
    assert_int_equal(block_clock_take(&clock, &owners[0], 0, evict), BLOCK_CLOCK_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),
        cmocka_unit_test(several_requests),
        cmocka_unit_test(limited),
        cmocka_unit_test(jumps),
        cmocka_unit_test(clock_against_a_model),
        cmocka_unit_test(used_blocks_stay),
        cmocka_unit_test(no_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
