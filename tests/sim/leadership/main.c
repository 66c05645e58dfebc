/* SPDX-License-Identifier: Apache-2.0
 * leadership_sim: runs seeds or planted faults; see README.md. Exits with 1 at
 * the first broken invariant. */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/pure/assert.h"
#include "explore.h"

#define MUTANT_SEEDS_MAX 100000
#define REPORT_ROWS      60

static struct world the_world;
static char trace_rows[TRACE_ROWS][TRACE_BYTES];

/* A failed assert of the core is a finding like any other. */
_Noreturn void cadre_panic(const char *condition, const char *file, int line)
{
    if (the_world.panic == NULL) {
        fprintf(stderr, "leadership_sim: bug: %s at %s:%d\n", condition, file, line);
        abort();
    }
    world_break(&the_world, "ASSERT", "%s at %s:%d", condition, file, line);
    longjmp(*the_world.panic, 1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void run_traced(struct world *world, uint64_t seed, uint64_t rows)
{
    world->tracing = true;
    world->trace = trace_rows;
    world->trace_count = 0;
    world_run(world, seed);
    world->tracing = false;
    uint64_t first = world->trace_count > rows ? world->trace_count - rows : 0;
    for (uint64_t i = first; i < world->trace_count; i++) {
        printf("%s\n", trace_rows[i % TRACE_ROWS]);
    }
}

static int run_seeds(uint64_t first, uint64_t end)
{
    struct world *world = &the_world;
    uint64_t digest = 0, events = 0, full = 0, restored = 0;
    double start_s = seconds();
    for (uint64_t seed = first; seed < end; seed++) {
        world_run(world, seed);
        if (world->broken != NULL) {
            printf("seed %" PRIu64 " broke %s: %s\n", seed, world->broken, world->why);
            run_traced(world, seed, REPORT_ROWS);
            printf("again: leadership_sim --seeds %" PRIu64 ":%" PRIu64 "\n", seed, seed + 1);
            return 1;
        }
        digest = prng_mix(digest ^ world->digest);
        events += world->events;
        full += world->store.full ? 1 : 0;
        restored += world->restored ? 1 : 0;
    }
    double took_s = seconds() - start_s;
    printf("%" PRIu64 " seeds: %.0f seeds/s, %" PRIu64 " events in %.2f s; %" PRIu64
           " with a restored etcd, %" PRIu64 " ended at the limit of entries\n",
        end - first, (double)(end - first) / took_s, events, took_s, restored, full);
    printf("%" PRIu64 " leaderships, %" PRIu64 " suspensions, %" PRIu64 " entries, %" PRIu64
           " trims, %" PRIu64 " snapshots installed, %" PRIu64 " refused\n",
        world->leaderships, world->suspensions, world->appended, world->trims, world->installs,
        world->refusals);
    printf("digest %016" PRIx64 "\n", digest);
    return 0;
}

static int run_mutants(void)
{
    struct world *world = &the_world;
    int escaped = 0;
    for (int mutant = MUTANT_NONE + 1; mutant < MUTANT_COUNT; mutant++) {
        const struct mutant_case *expected = &mutant_cases[mutant];
        uint64_t seed = 0;
        world->mutant = (enum mutant)mutant;
        bool caught = false;
        for (; seed < MUTANT_SEEDS_MAX && !caught; seed++) {
            world_run(world, seed);
            caught = world->broken != NULL && strstr(expected->caught_by, world->broken) != NULL;
        }
        printf("%-24s %s %s after %" PRIu64 " seeds: %s\n", expected->name,
            caught ? "caught by" : "NOT CAUGHT BY", expected->caught_by, seed,
            world->broken == NULL ? "nothing broke" : world->why);
        escaped += caught ? 0 : 1;
    }
    world->mutant = MUTANT_NONE;
    printf("%d planted faults\n", MUTANT_COUNT - 1);
    return escaped == 0 ? 0 : 1;
}

static int usage(void)
{
    fprintf(stderr, "usage: leadership_sim --seeds FIRST:END | --verbose SEED | --mutants | "
                    "--explore LEVEL\n");
    return 2;
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[1], "--seeds") == 0) {
        char *rest;
        uint64_t first = strtoull(arguments[2], &rest, 10);
        return *rest == ':' ? run_seeds(first, strtoull(rest + 1, NULL, 10)) : usage();
    }
    if (count == 3 && strcmp(arguments[1], "--verbose") == 0) {
        run_traced(&the_world, strtoull(arguments[2], NULL, 10), TRACE_ROWS);
        return the_world.broken == NULL ? 0 : 1;
    }
    if (count == 3 && strcmp(arguments[1], "--explore") == 0) {
        return explore_run(strtoull(arguments[2], NULL, 10));
    }
    return count == 2 && strcmp(arguments[1], "--mutants") == 0 ? run_mutants() : usage();
}
