/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/strategy/participants.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/strategy/strategy.h"

cadre_status participants_open(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = strategy->participant_count; i-- > 0;) {
        const struct participant *part = strategy->participants[i];
        if (part->open != NULL) {
            CADRE_TRY(part->open(strategy, error));
        }
    }
    return CADRE_OK;
}

void participants_close(cadre_strategy *strategy)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->close != NULL) {
            part->close(strategy);
        }
    }
}

void participants_free(cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->free != NULL) {
            part->free(strategy);
        }
    }
}

cadre_status participants_allow(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->allow != NULL) {
            CADRE_TRY(part->allow(strategy, function, error));
        }
    }
    return CADRE_OK;
}

cadre_status participants_check(const struct step_order *order, struct cadre_error *error)
{
    const cadre_strategy *strategy = order->strategy;
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->check != NULL) {
            CADRE_TRY(part->check(order, error));
        }
    }
    return CADRE_OK;
}

void participants_place(cadre_strategy *strategy, enum loop_place place)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->place != NULL) {
            part->place(strategy, place);
        }
    }
}

cadre_status participants_halt(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->halt != NULL) {
            CADRE_TRY(part->halt(strategy, error));
        }
    }
    return CADRE_OK;
}

cadre_status participants_begin(struct step_order *order, struct cadre_error *error)
{
    const cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->begin != NULL) {
            CADRE_TRY(part->begin(order, error));
        }
    }
    return CADRE_OK;
}

cadre_status participants_bind(
    const cadre_strategy *strategy, const cadre_replica *replica, struct cadre_error *error)
{
    CADRE_ASSERT(atomic_load(&strategy->step.running));
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->bind != NULL) {
            CADRE_TRY(part->bind(replica, error));
        }
    }
    return CADRE_OK;
}

void participants_returned(
    const cadre_strategy *strategy, cadre_replica *replica, const struct cadre_error *failure)
{
    CADRE_ASSERT(atomic_load(&strategy->step.running));
    for (uint32_t i = strategy->participant_count; i-- > 0;) {
        const struct participant *part = strategy->participants[i];
        if (part->returned != NULL) {
            part->returned(replica, failure);
        }
    }
}

cadre_status participants_complete(
    const cadre_strategy *strategy, cadre_replica *replica, struct cadre_error *error)
{
    CADRE_ASSERT(atomic_load(&strategy->step.running));
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->complete != NULL) {
            CADRE_TRY(part->complete(replica, error));
        }
    }
    return CADRE_OK;
}

bool participants_is_cause(const cadre_strategy *strategy, const cadre_replica *replica)
{
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->is_cause != NULL && part->is_cause(replica)) {
            return true;
        }
    }
    return false;
}

void participants_commit(struct step_order *order)
{
    const cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = strategy->participant_count; i-- > 0;) {
        const struct participant *part = strategy->participants[i];
        if (part->commit != NULL) {
            part->commit(order);
        }
    }
}

bool participants_undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    bool well = true;
    for (uint32_t i = strategy->participant_count; i-- > 0;) {
        const struct participant *part = strategy->participants[i];
        if (part->undo != NULL && !part->undo(strategy, aborted, cause)) {
            well = false;
        }
    }
    return well;
}

cadre_status participants_adopt(struct step_order *order, struct cadre_error *error)
{
    const cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = strategy->participant_count; i-- > 0;) {
        const struct participant *part = strategy->participants[i];
        if (part->adopt != NULL) {
            CADRE_TRY(part->adopt(order, error));
        }
    }
    return CADRE_OK;
}

void participants_report(const struct step_order *order)
{
    const cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->report != NULL) {
            part->report(order);
        }
    }
}

void participants_tell(const cadre_strategy *strategy, struct point *point)
{
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->tell != NULL) {
            part->tell(strategy, point);
        }
    }
}

cadre_status participants_explain(cadre_strategy *strategy, uint32_t local, uint32_t rank,
    bool differs, struct cadre_error *error)
{
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->explain != NULL) {
            CADRE_TRY(part->explain(strategy, local, rank, differs, error));
        }
    }
    return CADRE_OK;
}

cadre_status participants_load(cadre_strategy *strategy, struct cadre_error *error)
{
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->load != NULL) {
            CADRE_TRY(part->load(strategy, error));
        }
    }
    return CADRE_OK;
}

cadre_status participants_prepare(
    cadre_strategy *strategy, const struct passing *passing, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->prepare != NULL) {
            CADRE_TRY(part->prepare(strategy, passing, error));
        }
    }
    return CADRE_OK;
}

cadre_status participants_pass(cadre_strategy *strategy, uint32_t local,
    const struct passing *passing, struct cadre_error *error)
{
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->pass != NULL) {
            CADRE_TRY(part->pass(strategy, local, passing, error));
        }
    }
    return CADRE_OK;
}

cadre_status participants_greet(cadre_strategy *strategy, uint32_t rank, struct cadre_error *error)
{
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->greet != NULL) {
            CADRE_TRY(part->greet(strategy, rank, error));
        }
    }
    return CADRE_OK;
}

cadre_status participants_read(
    cadre_strategy *strategy, const struct passing *passing, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = strategy->participant_count; i-- > 0;) {
        const struct participant *part = strategy->participants[i];
        if (part->read != NULL) {
            CADRE_TRY(part->read(strategy, passing, error));
        }
    }
    return CADRE_OK;
}

cadre_status participants_enter(
    cadre_strategy *strategy, enum entrance entrance, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = strategy->participant_count; i-- > 0;) {
        const struct participant *part = strategy->participants[i];
        if (part->enter != NULL) {
            CADRE_TRY(part->enter(strategy, entrance, error));
        }
    }
    return CADRE_OK;
}

void participants_settle(cadre_strategy *strategy)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = strategy->participant_count; i-- > 0;) {
        const struct participant *part = strategy->participants[i];
        if (part->settle != NULL) {
            part->settle(strategy);
        }
    }
}

cadre_status participants_reopen(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = 0; i < strategy->participant_count; i++) {
        const struct participant *part = strategy->participants[i];
        if (part->reopen != NULL) {
            CADRE_TRY(part->reopen(strategy, error));
        }
    }
    return CADRE_OK;
}
