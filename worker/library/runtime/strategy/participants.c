/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/strategy/participants.h"

#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/strategy/strategy.h"

#define MOMENT(member)                                                                             \
    ((offsetof(struct participant, member) - offsetof(struct participant, open)) /                 \
        sizeof(void (*)(void)))

void participants_list(
    const struct participant *const parts[], uint32_t count, struct participant_list *ret_list)
{
    static void (*const none)(void) = NULL;
    CADRE_ASSERT(count <= 32);
    *ret_list = (struct participant_list){.parts = parts};
    for (size_t moment = 0; moment < PARTICIPANT_MOMENTS; moment++) {
        size_t at = offsetof(struct participant, open) + moment * sizeof none;
        for (uint32_t i = 0; i < count; i++) {
            bool has = memcmp((const char *)parts[i] + at, &none, sizeof none) != 0;
            ret_list->having[moment] |= has ? UINT32_C(1) << i : 0;
        }
    }
}

static uint32_t having(const cadre_strategy *strategy, size_t moment)
{
    return strategy->participants.having[moment];
}

/* The next one of those that are left, which are not none: from top to bottom, or upwards. */
static const struct participant *next_down(const cadre_strategy *strategy, uint32_t *left)
{
    int at = __builtin_ctz(*left);
    *left &= *left - 1;
    return strategy->participants.parts[at];
}

static const struct participant *next_up(const cadre_strategy *strategy, uint32_t *left)
{
    int at = 31 - __builtin_clz(*left);
    *left &= ~(UINT32_C(1) << at);
    return strategy->participants.parts[at];
}

cadre_status participants_open(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(open));
    while (left != 0) {
        const struct participant *part = next_up(strategy, &left);
        CADRE_TRY(part->open(strategy, error));
    }
    return CADRE_OK;
}

void participants_close(cadre_strategy *strategy)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(close));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        part->close(strategy);
    }
}

void participants_free(cadre_strategy *strategy)
{
    uint32_t left = having(strategy, MOMENT(free));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        part->free(strategy);
    }
}

cadre_status participants_check(const struct step_order *order, struct cadre_error *error)
{
    const cadre_strategy *strategy = order->strategy;
    uint32_t left = having(strategy, MOMENT(check));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->check(order, error));
    }
    return CADRE_OK;
}

void participants_place(cadre_strategy *strategy, enum loop_place place, bool reached)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(place));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        part->place(strategy, place, reached);
    }
}

cadre_status participants_halt(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(halt));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->halt(strategy, error));
    }
    return CADRE_OK;
}

cadre_status participants_still(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(still));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->still(strategy, error));
    }
    return CADRE_OK;
}

cadre_status participants_begin(struct step_order *order, struct cadre_error *error)
{
    const cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(begin));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->begin(order, error));
    }
    return CADRE_OK;
}

cadre_status participants_bind(
    const cadre_strategy *strategy, const cadre_replica *replica, struct cadre_error *error)
{
    CADRE_ASSERT(atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(bind));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->bind(replica, error));
    }
    return CADRE_OK;
}

void participants_returned(
    const cadre_strategy *strategy, cadre_replica *replica, const struct cadre_error *failure)
{
    CADRE_ASSERT(atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(returned));
    while (left != 0) {
        const struct participant *part = next_up(strategy, &left);
        part->returned(replica, failure);
    }
}

cadre_status participants_differ(
    const cadre_strategy *strategy, cadre_replica *replica, struct cadre_error *error)
{
    uint32_t left = having(strategy, MOMENT(differ));
    CADRE_ASSERT(left != 0);
    cadre_status status = next_down(strategy, &left)->differ(replica, error);
    CADRE_ASSERT(status != CADRE_OK);
    return status;
}

cadre_status participants_complete(
    const cadre_strategy *strategy, cadre_replica *replica, struct cadre_error *error)
{
    CADRE_ASSERT(atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(complete));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->complete(replica, error));
    }
    return CADRE_OK;
}

bool participants_is_cause(const cadre_strategy *strategy, const cadre_replica *replica)
{
    uint32_t left = having(strategy, MOMENT(is_cause));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        if (part->is_cause(replica)) {
            return true;
        }
    }
    return false;
}

void participants_commit(struct step_order *order)
{
    const cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(commit));
    while (left != 0) {
        const struct participant *part = next_up(strategy, &left);
        part->commit(order);
    }
}

bool participants_undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    bool well = true;
    uint32_t left = having(strategy, MOMENT(undo));
    while (left != 0) {
        const struct participant *part = next_up(strategy, &left);
        if (!part->undo(strategy, aborted, cause)) {
            well = false;
        }
    }
    return well;
}

cadre_status participants_adopt(struct step_order *order, struct cadre_error *error)
{
    const cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(adopt));
    while (left != 0) {
        const struct participant *part = next_up(strategy, &left);
        CADRE_TRY(part->adopt(order, error));
    }
    return CADRE_OK;
}

void participants_report(const struct step_order *order)
{
    const cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(report));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        part->report(order);
    }
}

cadre_status participants_digest(
    cadre_strategy *strategy, uint32_t local, uint64_t *ret_digest, struct cadre_error *error)
{
    uint32_t left = having(strategy, MOMENT(digest));
    *ret_digest = 0;
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->digest(strategy, local, ret_digest, error));
    }
    return CADRE_OK;
}

void participants_over(cadre_strategy *strategy)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(over));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        part->over(strategy);
    }
}

void participants_tell(const cadre_strategy *strategy, struct point *point)
{
    uint32_t left = having(strategy, MOMENT(tell));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        part->tell(strategy, point);
    }
}

cadre_status participants_explain(cadre_strategy *strategy, uint32_t local, uint32_t rank,
    bool differs, struct cadre_error *error)
{
    uint32_t left = having(strategy, MOMENT(explain));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->explain(strategy, local, rank, differs, error));
    }
    return CADRE_OK;
}

cadre_status participants_load(cadre_strategy *strategy, struct cadre_error *error)
{
    uint32_t left = having(strategy, MOMENT(load));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->load(strategy, error));
    }
    return CADRE_OK;
}

cadre_status participants_prepare(
    cadre_strategy *strategy, const struct passing *passing, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(prepare));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->prepare(strategy, passing, error));
    }
    return CADRE_OK;
}

cadre_status participants_pass(cadre_strategy *strategy, uint32_t local,
    const struct passing *passing, struct cadre_error *error)
{
    uint32_t left = having(strategy, MOMENT(pass));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->pass(strategy, local, passing, error));
    }
    return CADRE_OK;
}

cadre_status participants_greet(cadre_strategy *strategy, uint32_t rank, struct cadre_error *error)
{
    uint32_t left = having(strategy, MOMENT(greet));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->greet(strategy, rank, error));
    }
    return CADRE_OK;
}

cadre_status participants_read(
    cadre_strategy *strategy, const struct passing *passing, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(read));
    while (left != 0) {
        const struct participant *part = next_up(strategy, &left);
        CADRE_TRY(part->read(strategy, passing, error));
    }
    return CADRE_OK;
}

cadre_status participants_enter(
    cadre_strategy *strategy, enum entrance entrance, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(enter));
    while (left != 0) {
        const struct participant *part = next_up(strategy, &left);
        CADRE_TRY(part->enter(strategy, entrance, error));
    }
    return CADRE_OK;
}

void participants_settle(cadre_strategy *strategy)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(settle));
    while (left != 0) {
        const struct participant *part = next_up(strategy, &left);
        part->settle(strategy);
    }
}

cadre_status participants_reopen(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = having(strategy, MOMENT(reopen));
    while (left != 0) {
        const struct participant *part = next_down(strategy, &left);
        CADRE_TRY(part->reopen(strategy, error));
    }
    return CADRE_OK;
}
