/* SPDX-License-Identifier: Apache-2.0
 * See ahead_window.h. */
#include "worker/library/input/objects/ahead_window.h"

#include "common/pure/assert.h"

#define RUNS_AHEAD 4 /* the window is asked for in so many runs, or more: as many connections */

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

bool ahead_window_move(struct ahead_window *window, uint64_t first)
{
    /* A step over what was not asked for is still reading on when it is no longer than the window.
     */
    bool on = window->blocks > 0 && first >= window->begin && first <= window->end + window->blocks;
    if (!on) {
        *window = (struct ahead_window){
            .begin = first, .end = first, .blocks = AHEAD_BLOCKS_FIRST, .grown = first};
        return false;
    }
    window->begin = first;
    window->end = larger(window->end, first);
    if (first - window->grown >= window->blocks / 2) {
        window->blocks = smaller(2 * window->blocks, AHEAD_BLOCKS_MAX);
        window->grown = first;
    }
    return true;
}

struct block_run ahead_window_next(
    const struct ahead_window *window, uint64_t wanted, uint64_t total, uint64_t limit)
{
    CADRE_ASSERT(wanted >= 1 && limit >= 1);
    uint64_t ahead = smaller(larger(window->blocks, wanted), limit);
    uint64_t run = smaller(larger(ahead / RUNS_AHEAD, 1), AHEAD_RUN_MAX);
    uint64_t goal = smaller(window->begin + ahead, total);
    uint64_t end = smaller(window->end + run, total);
    if (window->end >= total || end > goal) {
        return (struct block_run){0};
    }
    return (struct block_run){.first = window->end, .count = end - window->end};
}

void ahead_window_asked(struct ahead_window *window, struct block_run run)
{
    CADRE_ASSERT(run.first == window->end);
    window->end += run.count;
}
