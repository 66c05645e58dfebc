/* SPDX-License-Identifier: Apache-2.0
 * Depth-first search through the states of the small world, by 64-bit
 * fingerprints: a state that is taken for another is improbable, not
 * impossible. */
#include "explore.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore_world.h"

#define DEPTH_MAX 20000
#define TRACE_MAX 80

struct visited {
    uint64_t *prints;
    uint64_t mask, count;
};

static bool visit(struct visited *visited, uint64_t print)
{
    if (visited->count * 2 > visited->mask) {
        struct visited larger = {.mask = visited->mask * 2 + 1};
        larger.prints = calloc(larger.mask + 1, sizeof(uint64_t));
        CADRE_ASSERT(larger.prints != NULL);
        for (uint64_t i = 0; i <= visited->mask; i++) {
            if (visited->prints[i] != 0) {
                visit(&larger, visited->prints[i]);
            }
        }
        free(visited->prints);
        *visited = larger;
    }
    uint64_t at = print & visited->mask;
    while (visited->prints[at] != 0) {
        if (visited->prints[at] == print) {
            return false;
        }
        at = (at + 1) & visited->mask;
    }
    visited->prints[at] = print;
    visited->count++;
    return true;
}

struct frame {
    struct small_world world;
    uint32_t choice; /* the next one to take */
};

struct search {
    struct visited visited;
    struct frame *stack;
    uint64_t depth, depth_max, transitions, pruned;
    bool cut; /* a branch was deeper than DEPTH_MAX */
};

static void print_trace(const struct search *search, const struct small_world *last)
{
    uint64_t first = search->depth > TRACE_MAX ? search->depth - TRACE_MAX : 1;
    for (uint64_t i = first; i < search->depth; i++) {
        printf(" %s;", search->stack[i].world.label);
    }
    printf(" %s\n", last->label);
}

/* The next state behind the top of the stack; false: the top has no more. */
static bool advance(struct search *search, struct small_world *ret_world)
{
    struct frame *top = &search->stack[search->depth - 1];
    uint32_t choices = small_choices(top->world.space);
    while (top->choice < choices) {
        uint32_t choice = top->choice++;
        if (small_may(&top->world, choice)) {
            *ret_world = top->world;
            small_take(ret_world, choice);
            search->transitions++;
            return true;
        }
    }
    return false;
}

static void push(struct search *search, const struct small_world *world)
{
    if (search->depth == DEPTH_MAX) {
        search->cut = true;
        return;
    }
    search->stack[search->depth++] = (struct frame){.world = *world};
    if (search->depth > search->depth_max) {
        search->depth_max = search->depth;
    }
}

/* The broken invariant, or NULL. */
static const char *search_space(struct search *search, const struct small_space *space)
{
    static struct small_world world;
    small_begin(&world, space);
    visit(&search->visited, small_fingerprint(&world));
    push(search, &world);
    while (search->depth > 0) {
        if (!advance(search, &world)) {
            search->depth--;
            continue;
        }
        if (world.broken != NULL) {
            if (space->mutant == SMALL_NONE) {
                print_trace(search, &world);
            }
            return world.broken;
        }
        if (world.pruned) {
            search->pruned++;
        } else if (visit(&search->visited, small_fingerprint(&world))) {
            push(search, &world);
        }
    }
    return NULL;
}

static bool run_space(const struct small_space *space)
{
    struct search search = {.visited = {.mask = (1 << 16) - 1}};
    search.visited.prints = calloc(search.visited.mask + 1, sizeof(uint64_t));
    search.stack = calloc(DEPTH_MAX, sizeof(struct frame));
    CADRE_ASSERT(search.visited.prints != NULL && search.stack != NULL);
    const char *broken = search_space(&search, space);
    bool good = space->mutant == SMALL_NONE
                    ? broken == NULL && !search.cut
                    : broken != NULL && strstr(space->caught_by, broken) != NULL;
    printf("%-34s %u coordinators, %u terms, %u submissions, %u crashes: %" PRIu64
           " states, %" PRIu64 " transitions, depth %" PRIu64 "%s; %s%s\n",
        space->name, space->nodes, space->terms, space->submissions, space->crashes,
        search.visited.count, search.transitions, search.depth_max,
        search.cut ? ", NOT COMPLETE" : "", broken == NULL ? "nothing broke" : "broke ",
        broken == NULL ? "" : broken);
    fflush(stdout);
    free(search.visited.prints);
    free(search.stack);
    return good;
}

/* Each level has what the levels before it have. */
static const struct {
    uint64_t level;
    struct small_space space;
} spaces[] = {
    {0, {.name = "no clock", .nodes = 2, .terms = 2, .submissions = 2, .crashes = 1}},
    {0, {.name = "clocks", .timed = true, .nodes = 2, .terms = 2}},
    {1, {.name = "no clock", .nodes = 2, .terms = 3, .submissions = 1}},
    {1, {.name = "clocks", .timed = true, .nodes = 2, .terms = 2, .submissions = 1}},
    {2, {.name = "no clock", .nodes = 2, .terms = 3, .submissions = 2, .crashes = 1}},
    {2, {.name = "no clock", .nodes = 3, .terms = 2}},
    {0, {.name = "planted: no guard",
            .nodes = 2,
            .terms = 2,
            .submissions = 2,
            .mutant = SMALL_NO_GUARD,
            .caught_by = "ONE_LINE, TERM_UP"}},
    {0, {.name = "planted: unknown outcome as new",
            .nodes = 2,
            .terms = 2,
            .submissions = 2,
            .mutant = SMALL_SENT_AS_NEW,
            .caught_by = "TWICE, ONE_LINE"}},
    {0, {.name = "planted: no request id",
            .nodes = 2,
            .terms = 2,
            .submissions = 2,
            .mutant = SMALL_NO_REQUEST_ID,
            .caught_by = "TWICE"}},
    {0, {.name = "planted: answered before the log",
            .nodes = 2,
            .terms = 2,
            .submissions = 2,
            .mutant = SMALL_ANSWERED_BEFORE_LOG,
            .caught_by = "SAID"}},
    {0, {.name = "planted: leads from its own copy",
            .nodes = 2,
            .terms = 2,
            .submissions = 2,
            .crashes = 1,
            .mutant = SMALL_LEADS_FROM_OWN_COPY,
            .caught_by = "TWICE"}},
    {0, {.name = "planted: a clock beyond the bound",
            .timed = true,
            .nodes = 2,
            .terms = 2,
            .mutant = SMALL_SLOW_CLOCK,
            .caught_by = "BOTH"}},
    {0, {.name = "planted: time from the answer",
            .timed = true,
            .nodes = 2,
            .terms = 2,
            .mutant = SMALL_TIME_FROM_ANSWER,
            .caught_by = "BOTH"}},
};

int explore_run(uint64_t level)
{
    bool good = true;
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        if (spaces[i].level <= level) {
            good = run_space(&spaces[i].space) && good;
        }
    }
    return good ? 0 : 1;
}
