/* SPDX-License-Identifier: Apache-2.0
 * Exhaustive short runs: every single fault of every kind and victim at every event of a tiny job,
 * and every pair of them within a short distance. */
#include "exhaustive.h"

#include <stdio.h>

#define EVENTS_EACH 100000
#define VARIANTS    24
#define WHICH_MAX   4

/* Kinds, and how many victims each has. */
static const struct {
    enum fault_kind kind;
    uint32_t victims;
} choices[] = {
    {FAULT_KILL, 3},
    {FAULT_HOST, 3},
    {FAULT_DAEMON, 1},
    {FAULT_BLINK, 2},
    {FAULT_MESH, 1},
    {FAULT_STOP, 1},
    {FAULT_DRAIN, 2},
    {FAULT_COORDINATOR, 1},
    {FAULT_TAIL, 1},
    {FAULT_OUTAGE, 2},
    {FAULT_MUTE, 1},
    {FAULT_SIGTERM, 1},
    {FAULT_PREEMPT, 1},
    {FAULT_SAVE, 1},
    {FAULT_RESTART, 1},
    {FAULT_CUT, 1},
    {FAULT_DAMAGE, 1},
    {FAULT_FULL, 1},
    {FAULT_DISK, 1},
    {FAULT_ONE_WAY, 2},
    {FAULT_PAUSE, 2},
};
#define CHOICES (sizeof(choices) / sizeof(choices[0]))

static bool run_one(struct sim *sim, uint32_t variant, struct exhaustive_result *result)
{
    scenario_tiny(&sim->scenario, variant);
    sim_run_scenario(sim, variant);
    result->runs++;
    result->events += sim->events;
    return sim->broken == NULL;
}

static void clear(struct sim *sim)
{
    for (size_t i = 0; i < sizeof(sim->placed) / sizeof(sim->placed[0]); i++) {
        sim->placed[i] = (struct injected_fault){0};
    }
}

static bool next_choice(size_t *kind, uint32_t *which)
{
    if (++*which < choices[*kind].victims) {
        return true;
    }
    *which = 0;
    return ++*kind < CHOICES;
}

/* All second faults within `reach` events after the first. */
static bool run_pairs(struct sim *sim, uint32_t variant, uint64_t at, uint64_t reach,
    uint64_t stride, struct exhaustive_result *result)
{
    for (uint64_t behind = 1; behind <= reach; behind += stride) {
        size_t kind = 0;
        uint32_t which = 0;
        do {
            sim->placed[1] = (struct injected_fault){
                .at_event = at + behind, .kind = choices[kind].kind, .which = which};
            if (!run_one(sim, variant, result)) {
                return false;
            }
        } while (next_choice(&kind, &which));
    }
    sim->placed[1] = (struct injected_fault){0};
    return true;
}

/* Every first fault at every event; with `reach`, every second one after it too. */
static bool run_variant(struct sim *sim, uint32_t variant, const struct exhaustive_bounds *bounds,
    struct exhaustive_result *result)
{
    clear(sim);
    if (!run_one(sim, variant, result)) {
        return false;
    }
    uint64_t events = sim->events;
    for (uint64_t at = 1; at <= events; at++) {
        size_t kind = 0;
        uint32_t which = 0;
        do {
            sim->placed[0] =
                (struct injected_fault){.at_event = at, .kind = choices[kind].kind, .which = which};
            if (!run_one(sim, variant, result)) {
                return false;
            }
            bool pairs = bounds->reach > 0 && at % bounds->every == 0;
            if (pairs && !run_pairs(sim, variant, at, bounds->reach, bounds->stride, result)) {
                return false;
            }
        } while (next_choice(&kind, &which));
    }
    clear(sim);
    return true;
}

bool exhaustive_run(
    struct sim *sim, const struct exhaustive_bounds *bounds, struct exhaustive_result *result)
{
    *result = (struct exhaustive_result){0};
    for (uint32_t variant = bounds->first; variant < bounds->end && variant < VARIANTS; variant++) {
        if (!run_variant(sim, variant, bounds, result)) {
            result->variant = variant;
            return false;
        }
    }
    return true;
}
