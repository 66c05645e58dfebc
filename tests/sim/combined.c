/* SPDX-License-Identifier: Apache-2.0
 * A job of three tasks and four steps, a worker that joins, two tasks that are killed, and a
 * coordinator that crashes, with or without its unsynced tail: in every order, each at every point
 * of a grid of events. All but the last fault are also a run of their own. */
#include "exhaustive.h"

#define KILLS_MAX 2
#define VICTIMS   3

/* The faults so far. */
struct injection {
    const struct combined_bounds *bounds;
    struct exhaustive_result *result;
    uint32_t depth;
    uint32_t kills;
    bool joined;
    bool crashed;
};

static bool inject(struct sim *sim, struct injection so_far, uint64_t from);

static bool run_one(struct sim *sim, struct exhaustive_result *result)
{
    scenario_combined(&sim->scenario, result->variant);
    sim_run_scenario(sim, result->variant);
    result->runs++;
    result->events += sim->events;
    return sim->broken == NULL;
}

/* This fault, and all that follow it. */
static bool inject_one(
    struct sim *sim, struct injection so_far, uint64_t at, enum fault_kind kind, uint32_t which)
{
    struct injected_fault *placed = &sim->placed[so_far.depth++];
    *placed = (struct injected_fault){.at_event = at, .kind = kind, .which = which};
    so_far.kills += kind == FAULT_KILL ? 1 : 0;
    so_far.joined |= kind == FAULT_JOIN;
    so_far.crashed |= kind == FAULT_COORDINATOR || kind == FAULT_TAIL;
    if (!inject(sim, so_far, at + 1)) {
        return false;
    }
    *placed = (struct injected_fault){0};
    return true;
}

static bool inject_at(struct sim *sim, const struct injection *so_far, uint64_t at)
{
    if (!so_far->joined && !inject_one(sim, *so_far, at, FAULT_JOIN, COMBINED_JOINER)) {
        return false;
    }
    for (uint32_t victim = 0; so_far->kills < KILLS_MAX && victim < VICTIMS; victim++) {
        if (!inject_one(sim, *so_far, at, FAULT_KILL, victim)) {
            return false;
        }
    }
    return so_far->crashed || (inject_one(sim, *so_far, at, FAULT_COORDINATOR, 0) &&
                                  inject_one(sim, *so_far, at, FAULT_TAIL, 0));
}

/* Runs the faults so far, then with one more at each event of that run from `from` on. */
static bool inject(struct sim *sim, struct injection so_far, uint64_t from)
{
    if (!run_one(sim, so_far.result)) {
        return false;
    }
    uint64_t stride = so_far.bounds->stride;
    uint64_t events = sim->events;
    uint64_t at = from + stride - 1 - (from + so_far.depth) % stride; /* not all on one lattice */
    for (; so_far.depth < INJECTED_MAX && at <= events; at += stride) {
        if (!inject_at(sim, &so_far, at)) {
            return false;
        }
    }
    return true;
}

bool combined_run(
    struct sim *sim, const struct combined_bounds *bounds, struct exhaustive_result *result)
{
    *result = (struct exhaustive_result){0};
    for (; result->variant < bounds->variants; result->variant++) {
        for (size_t i = 0; i < INJECTED_MAX; i++) {
            sim->placed[i] = (struct injected_fault){0};
        }
        if (!inject(sim, (struct injection){.bounds = bounds, .result = result}, 1)) {
            return false;
        }
    }
    return true;
}
