/* SPDX-License-Identifier: Apache-2.0
 * The status of each member of a new generation, and what follows from it. Each sends its status to
 * all, and all come to the same decision without further messages.
 *
 * A point is (position, between_steps): so many steps applied, then so many collectives outside of
 * steps completed. Each needs all members, so those of one generation differ by at most one. */
#ifndef CADRE_RUNTIME_MEMBER_STATUS_H
#define CADRE_RUNTIME_MEMBER_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/task_message.h"

enum {
    MEMBER_STATUS_WARM = 1,     /* a joiner: it has no state yet */
    MEMBER_STATUS_RESTORES = 2, /* the checkpoint that all go on from is not loaded yet */
    MEMBER_STATUS_STEP =
        4, /* it applied the step before its position itself, and has its outputs */
    MEMBER_STATUS_BETWEEN_STEPS = 8, /* it has the results of its last outside collective */
    MEMBER_STATUS_DEVICES = 16       /* some of its replicas are on devices */
};

/* As it is sent: 64-bit fields only, no padding. */
struct member_status {
    uint64_t position;
    uint64_t between_steps;
    uint64_t flags;
    uint64_t layout;              /* of its state (state.h) */
    uint64_t collectives;         /* that it has begun in the step at its position */
    uint64_t applied_collectives; /* MEMBER_STATUS_STEP: that it made in the step before */
    uint64_t stream;              /* what the coordinator received: the run ... */
    uint64_t epoch;
    uint64_t first;
    uint64_t begin;
    uint64_t steps;
    uint64_t consumption_steps; /* ... and the consumption of its epoch */
    uint64_t consumption_samples;
    uint64_t consumed[2];
    uint64_t expected[2];
    uint64_t provable; /* 1 or 0; above that bit those of its files */
    uint64_t devices;  /* mesh_device_offer of its replicas; 0: they cannot be connected */
    /* Text: where it is asked for bytes of objects; "": nowhere. */
    uint64_t neighbour[LIMIT_ADDRESS_BYTES / sizeof(uint64_t)];
};

/* Fills in the run and the consumption. */
void member_status_set_cursor(struct member_status *member_status, const struct cursor *cursor,
    const struct consumption *consumption);
/* Reads them back. */
void member_status_get_cursor(const struct member_status *member_status, struct cursor *ret_cursor,
    struct consumption *ret_consumption);

/* What is to be passed on. Ranks; UINT32_MAX: none. */
struct sync_decision {
    uint32_t source;        /* has the state of the plan's first position */
    bool state;             /* a member lacks it */
    bool joins;             /* a member is a joiner */
    bool step;              /* a member was frozen in the step before it, and gets its outputs */
    uint64_t between_steps; /* the most, of those that have the state */
    uint32_t between_steps_source; /* has the results of the last one, which a member lacks */
};

/* The devices of all tasks of a generation. */
struct device_summary {
    bool any;         /* some replicas are on devices */
    bool alike;       /* all can be connected, with each other */
    uint32_t cannot;  /* the first task that cannot, if any is on devices; UINT32_MAX: none */
    uint32_t differs; /* the first that can, but not with rank 0; UINT32_MAX: none */
};
/* The summary of `count` statuses. */
struct device_summary member_status_devices(const struct member_status *statuses, uint32_t count);

/* Whether the member lacks the state at `resume`; `source_exists`: another member has it. */
bool member_status_lacks_state(
    const struct member_status *member_status, uint64_t resume, bool source_exists);
/* Whether the member was frozen in the step before `resume`, and adopts it (protocol, rule 28). */
bool member_status_adopts(const struct member_status *member_status, uint64_t resume);

/* The source, if a member that lacks its state has another layout; else UINT32_MAX. Decided before
 * all else, so that the layouts can be compared, and the difference named when they do not fit. */
uint32_t sync_layout_mismatch(
    const struct member_status *statuses, uint32_t count, uint64_t resume, uint32_t source);

/* `source`: the plan's; layouts fit. INVALID_ARGUMENT: the programs are not the same. INTERNAL: the
 * plan does not fit. */
cadre_status sync_decide(const struct member_status *statuses, uint32_t count, uint64_t resume,
    uint32_t source, struct sync_decision *ret_decision, struct cadre_error *error);

#endif
