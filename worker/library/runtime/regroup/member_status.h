/* SPDX-License-Identifier: Apache-2.0
 * Where the members of a new generation stand, and what follows from it. Each tells its point to
 * all, and all come to the same decision without another word.
 *
 * A point is (position, outside): so many steps applied, then so many collectives outside of steps
 * completed. Each needs everybody, so members of one generation differ by at most one. */
#ifndef CADRE_RUNTIME_MEMBER_STATUS_H
#define CADRE_RUNTIME_MEMBER_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/task_message.h"

enum {
    MEMBER_STATUS_WARM = 1,     /* it comes from outside: has no state yet */
    MEMBER_STATUS_RESTORES = 2, /* the checkpoint that all go on from is not loaded yet */
    MEMBER_STATUS_STEP =
        4, /* it applied the step before its position itself, and knows its outputs */
    MEMBER_STATUS_BETWEEN_STEPS = 8, /* it knows what its last outside collective gave */
    MEMBER_STATUS_DEVICES = 16       /* some of its replicas are on devices */
};

/* As it travels: words only, no padding. */
struct member_status {
    uint64_t position;
    uint64_t between_steps;
    uint64_t flags;
    uint64_t layout;              /* of its state (state.h) */
    uint64_t collectives;         /* that it has begun in the step at its position */
    uint64_t applied_collectives; /* MEMBER_STATUS_STEP: that it made in the step before */
    uint64_t stream;              /* what the coordinator was told of: the run ... */
    uint64_t epoch;
    uint64_t first;
    uint64_t begin;
    uint64_t steps;
    uint64_t consumption_steps; /* ... and the feed of its epoch */
    uint64_t consumption_samples;
    uint64_t consumed[2];
    uint64_t expected[2];
    uint64_t provable; /* 1 or 0; above that bit what its files say */
    uint64_t devices;  /* mesh_device_offer of its replicas; 0: they cannot be connected */
};

void member_status_set_cursor(struct member_status *member_status, const struct cursor *cursor,
    const struct consumption *consumption);
void member_status_get_cursor(const struct member_status *member_status, struct cursor *ret_cursor,
    struct consumption *ret_consumption);

/* What is to be passed on. Ranks; UINT32_MAX: nobody. */
struct sync_decision {
    uint32_t source;        /* has the state of the plan's first position */
    bool state;             /* somebody lacks it */
    bool joins;             /* somebody comes from outside */
    bool step;              /* somebody was frozen in the step before it, and gets its outputs */
    uint64_t between_steps; /* the most, of those that have the state */
    uint32_t between_steps_source; /* knows what the last one gave, which somebody lacks */
};

/* What all tasks of a generation have told each other of their devices. */
struct device_summary {
    bool any;         /* some replicas are on devices */
    bool alike;       /* all can be connected, with each other */
    uint32_t cannot;  /* the first task that cannot, if any is on devices; UINT32_MAX: none */
    uint32_t differs; /* the first that can, but not with rank 0; UINT32_MAX: none */
};
struct device_summary member_status_devices(const struct member_status *statuses, uint32_t count);

/* Whether the member lacks the state, was frozen in the step before, or in the last outside
 * collective. */
bool member_status_lacks_state(
    const struct member_status *member_status, uint64_t resume, bool source_exists);
bool member_status_adopts(const struct member_status *member_status, uint64_t resume);

/* Whether somebody lacks a state that does not have the layout of its own: then the source, whose
 * it is; else UINT32_MAX. Decided before all else, so that the difference can be looked at, and
 * named when it is no good. */
uint32_t sync_layout_mismatch(
    const struct member_status *statuses, uint32_t count, uint64_t resume, uint32_t source);

/* `source`: the plan's; layouts fit. INVALID_ARGUMENT: the programs are not the same. INTERNAL: the
 * plan does not fit. */
cadre_status sync_decide(const struct member_status *statuses, uint32_t count, uint64_t resume,
    uint32_t source, struct sync_decision *ret_decision, struct cadre_error *error);

#endif
