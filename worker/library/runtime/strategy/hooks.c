/* SPDX-License-Identifier: Apache-2.0
 * Calls the hooks of all parts of a strategy for one moment, up or down the list. step/,
 * regroup/ and strategy_lifecycle/ call it. */
#include "worker/library/runtime/strategy/hooks.h"

#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/strategy/strategy.h"

#define MOMENT(member)                                                                             \
    ((offsetof(struct strategy_hooks, member) - offsetof(struct strategy_hooks, open)) /           \
        sizeof(void (*)(void)))

void hooks_list(const struct strategy_hooks *const tables[], uint32_t count,
    struct strategy_hook_list *ret_list)
{
    static void (*const none)(void) = NULL;
    CADRE_ASSERT(count <= 32);
    *ret_list = (struct strategy_hook_list){.tables = tables};
    for (size_t moment = 0; moment < STRATEGY_HOOK_COUNT; moment++) {
        size_t at = offsetof(struct strategy_hooks, open) + moment * sizeof none;
        for (uint32_t i = 0; i < count; i++) {
            bool has = memcmp((const char *)tables[i] + at, &none, sizeof none) != 0;
            ret_list->having[moment] |= has ? UINT32_C(1) << i : 0;
        }
    }
}

static uint32_t hooks_having(const cadre_strategy *strategy, size_t moment)
{
    return strategy->hooks.having[moment];
}

/* The next of the hooks that are left, of which there is one: from top to bottom, or upwards. */
static const struct strategy_hooks *next_down(const cadre_strategy *strategy, uint32_t *left)
{
    int at = __builtin_ctz(*left);
    *left &= *left - 1;
    return strategy->hooks.tables[at];
}

static const struct strategy_hooks *next_up(const cadre_strategy *strategy, uint32_t *left)
{
    int at = 31 - __builtin_clz(*left);
    *left &= ~(UINT32_C(1) << at);
    return strategy->hooks.tables[at];
}

cadre_status hooks_open(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(open));
    while (left != 0) {
        const struct strategy_hooks *part = next_up(strategy, &left);
        CADRE_TRY(part->open(strategy, error));
    }
    return CADRE_OK;
}

void hooks_close(cadre_strategy *strategy)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(close));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        part->close(strategy);
    }
}

void hooks_free(cadre_strategy *strategy)
{
    uint32_t left = hooks_having(strategy, MOMENT(free));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        part->free(strategy);
    }
}

void hooks_exit(cadre_strategy *strategy)
{
    uint32_t left = hooks_having(strategy, MOMENT(exit));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        part->exit(strategy);
    }
}

cadre_status hooks_check(const struct step_order *order, struct cadre_error *error)
{
    const cadre_strategy *strategy = order->strategy;
    uint32_t left = hooks_having(strategy, MOMENT(check));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->check(order, error));
    }
    return CADRE_OK;
}

void hooks_loop_point(cadre_strategy *strategy, enum loop_point loop_point, bool reached)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(loop_point));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        part->loop_point(strategy, loop_point, reached);
    }
}

cadre_status hooks_halt(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(halt));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->halt(strategy, error));
    }
    return CADRE_OK;
}

cadre_status hooks_before_pause(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(before_pause));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->before_pause(strategy, error));
    }
    return CADRE_OK;
}

cadre_status hooks_begin(struct step_order *order, struct cadre_error *error)
{
    const cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(begin));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->begin(order, error));
    }
    return CADRE_OK;
}

cadre_status hooks_bind(
    const cadre_strategy *strategy, const cadre_replica *replica, struct cadre_error *error)
{
    CADRE_ASSERT(atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(bind));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->bind(replica, error));
    }
    return CADRE_OK;
}

void hooks_returned(
    const cadre_strategy *strategy, cadre_replica *replica, const struct cadre_error *failure)
{
    CADRE_ASSERT(atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(returned));
    while (left != 0) {
        const struct strategy_hooks *part = next_up(strategy, &left);
        part->returned(replica, failure);
    }
}

cadre_status hooks_diverged(
    const cadre_strategy *strategy, cadre_replica *replica, struct cadre_error *error)
{
    uint32_t left = hooks_having(strategy, MOMENT(diverged));
    CADRE_ASSERT(left != 0);
    cadre_status status = next_down(strategy, &left)->diverged(replica, error);
    CADRE_ASSERT(status != CADRE_OK);
    return status;
}

cadre_status hooks_complete(
    const cadre_strategy *strategy, cadre_replica *replica, struct cadre_error *error)
{
    CADRE_ASSERT(atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(complete));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->complete(replica, error));
    }
    return CADRE_OK;
}

bool hooks_is_cause(const cadre_strategy *strategy, const cadre_replica *replica)
{
    uint32_t left = hooks_having(strategy, MOMENT(is_cause));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        if (part->is_cause(replica)) {
            return true;
        }
    }
    return false;
}

void hooks_commit(struct step_order *order)
{
    const cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(commit));
    while (left != 0) {
        const struct strategy_hooks *part = next_up(strategy, &left);
        part->commit(order);
    }
}

bool hooks_undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    bool well = true;
    uint32_t left = hooks_having(strategy, MOMENT(undo));
    while (left != 0) {
        const struct strategy_hooks *part = next_up(strategy, &left);
        if (!part->undo(strategy, aborted, cause)) {
            well = false;
        }
    }
    return well;
}

cadre_status hooks_adopt(struct step_order *order, struct cadre_error *error)
{
    const cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(adopt));
    while (left != 0) {
        const struct strategy_hooks *part = next_up(strategy, &left);
        CADRE_TRY(part->adopt(order, error));
    }
    return CADRE_OK;
}

void hooks_report(const struct step_order *order)
{
    const cadre_strategy *strategy = order->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(report));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        part->report(order);
    }
}

cadre_status hooks_digest(
    cadre_strategy *strategy, uint32_t local, uint64_t *ret_digest, struct cadre_error *error)
{
    uint32_t left = hooks_having(strategy, MOMENT(digest));
    *ret_digest = 0;
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->digest(strategy, local, ret_digest, error));
    }
    return CADRE_OK;
}

void hooks_generation_end(cadre_strategy *strategy)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(generation_end));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        part->generation_end(strategy);
    }
}

void hooks_fill_status(const cadre_strategy *strategy, struct member_status *member_status)
{
    uint32_t left = hooks_having(strategy, MOMENT(fill_status));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        part->fill_status(strategy, member_status);
    }
}

void hooks_members(cadre_strategy *strategy, const struct member_status *statuses, uint32_t count)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(members));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        part->members(strategy, statuses, count);
    }
}

cadre_status hooks_compare_layout(cadre_strategy *strategy, uint32_t local, uint32_t rank,
    bool differs, struct cadre_error *error)
{
    uint32_t left = hooks_having(strategy, MOMENT(compare_layout));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->compare_layout(strategy, local, rank, differs, error));
    }
    return CADRE_OK;
}

cadre_status hooks_load(cadre_strategy *strategy, struct cadre_error *error)
{
    uint32_t left = hooks_having(strategy, MOMENT(load));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->load(strategy, error));
    }
    return CADRE_OK;
}

cadre_status hooks_prepare(
    cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(prepare));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->prepare(strategy, sync_plan, error));
    }
    return CADRE_OK;
}

cadre_status hooks_transfer(cadre_strategy *strategy, uint32_t local,
    const struct sync_plan *sync_plan, struct cadre_error *error)
{
    uint32_t left = hooks_having(strategy, MOMENT(pass));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->pass(strategy, local, sync_plan, error));
    }
    return CADRE_OK;
}

cadre_status hooks_joined(cadre_strategy *strategy, uint32_t rank, struct cadre_error *error)
{
    uint32_t left = hooks_having(strategy, MOMENT(joined));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->joined(strategy, rank, error));
    }
    return CADRE_OK;
}

cadre_status hooks_validate(
    cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(read));
    while (left != 0) {
        const struct strategy_hooks *part = next_up(strategy, &left);
        CADRE_TRY(part->read(strategy, sync_plan, error));
    }
    return CADRE_OK;
}

cadre_status hooks_install(
    cadre_strategy *strategy, enum install_mode install_mode, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(install));
    while (left != 0) {
        const struct strategy_hooks *part = next_up(strategy, &left);
        CADRE_TRY(part->install(strategy, install_mode, error));
    }
    return CADRE_OK;
}

void hooks_cleanup(cadre_strategy *strategy)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(cleanup));
    while (left != 0) {
        const struct strategy_hooks *part = next_up(strategy, &left);
        part->cleanup(strategy);
    }
}

cadre_status hooks_reopen(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    uint32_t left = hooks_having(strategy, MOMENT(reopen));
    while (left != 0) {
        const struct strategy_hooks *part = next_down(strategy, &left);
        CADRE_TRY(part->reopen(strategy, error));
    }
    return CADRE_OK;
}
