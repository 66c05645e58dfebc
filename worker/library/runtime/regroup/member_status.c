/* SPDX-License-Identifier: Apache-2.0
 * What follows from the members' statuses: who lacks the state, a step or a collective, and who
 * has it. Pure; sync.c calls it. */
#include "worker/library/runtime/regroup/member_status.h"
#include "common/pure/assert.h"

#include <inttypes.h>

void member_status_set_cursor(struct member_status *member_status, const struct cursor *cursor,
    const struct consumption *consumption)
{
    member_status->stream = cursor->stream;
    member_status->epoch = cursor->epoch;
    member_status->first = cursor->first;
    member_status->begin = cursor->begin;
    member_status->steps = cursor->steps;
    member_status->consumption_steps = consumption->steps;
    member_status->consumption_samples = consumption->samples;
    for (int lane = 0; lane < 2; lane++) {
        member_status->consumed[lane] = consumption->consumed[lane];
        member_status->expected[lane] = consumption->expected[lane];
    }
    member_status->provable = (uint64_t)consumption->files << 1 | (consumption->provable ? 1 : 0);
}

void member_status_get_cursor(const struct member_status *member_status, struct cursor *ret_cursor,
    struct consumption *ret_consumption)
{
    *ret_cursor = (struct cursor){.stream = (uint32_t)member_status->stream,
        .epoch = member_status->epoch,
        .first = member_status->first,
        .begin = member_status->begin,
        .steps = member_status->steps};
    *ret_consumption = (struct consumption){.steps = member_status->consumption_steps,
        .samples = member_status->consumption_samples,
        .consumed = {member_status->consumed[0], member_status->consumed[1]},
        .expected = {member_status->expected[0], member_status->expected[1]},
        .provable = (member_status->provable & 1) != 0,
        .files = (enum consumed_files)(member_status->provable >> 1 & 3)};
}

struct device_summary member_status_devices(const struct member_status *statuses, uint32_t count)
{
    CADRE_ASSERT(count > 0);
    struct device_summary devices = {.cannot = UINT32_MAX, .differs = UINT32_MAX};
    for (uint32_t rank = count; rank-- > 0;) {
        devices.any = devices.any || (statuses[rank].flags & MEMBER_STATUS_DEVICES) != 0;
        if (statuses[rank].devices == 0) {
            devices.cannot = rank;
        } else if (statuses[rank].devices != statuses[0].devices) {
            devices.differs = rank;
        }
    }
    devices.alike = devices.cannot == UINT32_MAX && devices.differs == UINT32_MAX;
    return devices;
}

static bool has_state(const struct member_status *member_status, uint64_t resume)
{
    return (member_status->flags & (MEMBER_STATUS_WARM | MEMBER_STATUS_RESTORES)) == 0 &&
           member_status->position == resume;
}

/* A member whose collectives outside of steps count: where no member has the state yet, all that go
 * on from the checkpoint make them together. */
static bool counts_between_steps(const struct member_status *member_status, uint64_t resume,
    const struct sync_decision *decision)
{
    bool restores = (member_status->flags & MEMBER_STATUS_RESTORES) != 0;
    return has_state(member_status, resume) || (restores && decision->source == UINT32_MAX);
}

bool member_status_adopts(const struct member_status *member_status, uint64_t resume)
{
    return (member_status->flags & (MEMBER_STATUS_WARM | MEMBER_STATUS_RESTORES)) == 0 &&
           resume > 0 && member_status->position == resume - 1;
}

bool member_status_lacks_state(
    const struct member_status *member_status, uint64_t resume, bool source_exists)
{
    return source_exists && !has_state(member_status, resume);
}

static uint32_t choose_source(
    const struct member_status *statuses, uint32_t count, uint64_t resume, uint32_t wanted)
{
    if (wanted < count && has_state(&statuses[wanted], resume)) {
        return wanted;
    }
    for (uint32_t rank = 0; rank < count; rank++) {
        if (has_state(&statuses[rank], resume)) {
            return rank;
        }
    }
    return UINT32_MAX;
}

uint32_t sync_layout_mismatch(
    const struct member_status *statuses, uint32_t count, uint64_t resume, uint32_t source)
{
    uint32_t from = choose_source(statuses, count, resume, source);
    for (uint32_t rank = 0; from != UINT32_MAX && rank < count; rank++) {
        if (!has_state(&statuses[rank], resume) && statuses[rank].layout != statuses[from].layout) {
            return from;
        }
    }
    return UINT32_MAX;
}

static cadre_status check_adoption(const struct member_status *statuses, uint32_t rank,
    uint32_t source, uint64_t resume, struct cadre_error *error)
{
    const struct member_status *from = &statuses[source];
    if ((from->flags & MEMBER_STATUS_STEP) == 0) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "the task of rank %" PRIu32 " is before step %" PRIu64
            ", and no task that is left has the outputs of that step",
            rank, resume - 1);
    }
    if (statuses[rank].collectives > from->applied_collectives) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the replicas disagree: those of rank %" PRIu32 " make at least %" PRIu64
            " collective calls in step %" PRIu64 ", those of rank %" PRIu32 " make %" PRIu64
            "; all must make the same ones",
            rank, statuses[rank].collectives, resume - 1, source, from->applied_collectives);
    }
    return CADRE_OK;
}

/* Enters what one member lacks. */
static cadre_status take_account(const struct member_status *statuses, uint32_t rank,
    uint64_t resume, struct sync_decision *decision, struct cadre_error *error)
{
    const struct member_status *member_status = &statuses[rank];
    bool warm = (member_status->flags & (MEMBER_STATUS_WARM | MEMBER_STATUS_RESTORES)) != 0;
    if (!member_status_lacks_state(member_status, resume, decision->source != UINT32_MAX)) {
        return CADRE_OK;
    }
    decision->state = true;
    decision->joins = decision->joins || (member_status->flags & MEMBER_STATUS_WARM) != 0;
    if (member_status_adopts(member_status, resume)) {
        decision->step = true;
        return check_adoption(statuses, rank, decision->source, resume, error);
    }
    return warm ? CADRE_OK
                : cadre_error_set(error, CADRE_INTERNAL,
                      "the task of rank %" PRIu32 " is at step %" PRIu64
                      " and the plan at step %" PRIu64,
                      rank, member_status->position, resume);
}

static void find_between_steps(const struct member_status *statuses, uint32_t count,
    uint64_t resume, struct sync_decision *decision)
{
    bool lacking = false;
    uint32_t knows = UINT32_MAX;
    for (uint32_t rank = 0; rank < count; rank++) {
        bool has = counts_between_steps(&statuses[rank], resume, decision);
        if (has && statuses[rank].between_steps > decision->between_steps) {
            decision->between_steps = statuses[rank].between_steps;
        }
    }
    for (uint32_t rank = count; rank-- > 0;) {
        bool has = counts_between_steps(&statuses[rank], resume, decision);
        lacking = lacking || (has && statuses[rank].between_steps < decision->between_steps);
        if (has && statuses[rank].between_steps == decision->between_steps &&
            (statuses[rank].flags & MEMBER_STATUS_BETWEEN_STEPS) != 0) {
            knows = rank;
        }
    }
    decision->between_steps_source = lacking ? knows : UINT32_MAX;
}

cadre_status sync_decide(const struct member_status *statuses, uint32_t count, uint64_t resume,
    uint32_t source, struct sync_decision *ret_decision, struct cadre_error *error)
{
    CADRE_ASSERT(count > 0);
    struct sync_decision *decision = ret_decision;
    *decision = (struct sync_decision){.source = choose_source(statuses, count, resume, source),
        .between_steps_source = UINT32_MAX};
    for (uint32_t rank = 0; rank < count; rank++) {
        CADRE_TRY(take_account(statuses, rank, resume, decision, error));
    }
    find_between_steps(statuses, count, resume, decision);
    for (uint32_t rank = 0; rank < count; rank++) {
        bool lacks = counts_between_steps(&statuses[rank], resume, decision) &&
                     statuses[rank].between_steps < decision->between_steps;
        if (lacks && (statuses[rank].between_steps + 1 != decision->between_steps ||
                         decision->between_steps_source == UINT32_MAX)) {
            return cadre_error_set(error, CADRE_INTERNAL,
                "the task of rank %" PRIu32 " has made %" PRIu64 " collectives since step %" PRIu64
                ", another %" PRIu64 ", and no task that is left has the results of the last one",
                rank, statuses[rank].between_steps, resume, decision->between_steps);
        }
    }
    return CADRE_OK;
}
