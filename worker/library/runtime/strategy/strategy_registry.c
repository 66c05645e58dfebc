/* SPDX-License-Identifier: Apache-2.0
 * The table of open strategies and the call that each is in, read by any thread without a lock.
 * strategy_lifecycle/ adds and removes; enter.c takes and leaves. */
#include "worker/library/runtime/strategy/strategy_registry.h"

#include <stdatomic.h>

#include "common/pure/assert.h"

#define SLOT_OF_DEFAULT STRATEGY_REGISTRY_MAX
#define WORKERS_FIRST   (STRATEGY_REGISTRY_MAX + 1)
#define SLOTS          (WORKERS_FIRST + STRATEGY_REGISTRY_WORKERS_MAX)

static _Atomic(cadre_strategy *) registry[SLOTS];
/* The call that each is in; NULL: none. It is here and not in the strategy, because a call may end
 * a strategy while another thread begins one. Taking a slot acquires the writes of the call before,
 * and only the call that has it adds or removes the strategy of a slot. */
static _Atomic(const char *) under_way[SLOTS];
static _Atomic uint32_t registry_slot_used; /* slots that were ever taken */
static _Atomic uint32_t workers_used;       /* those from WORKERS_FIRST on, likewise */
static _Atomic uint64_t numbers;
/* Of the strategy before, so that its end does not make every task the first. */
static _Atomic uint32_t last_rank;

/* *ret_under_way: the call it is in; NULL: none, and the slot is taken. */
static bool take_slot(uint32_t registry_slot, const char *function, struct strategy_call *call,
    const char **ret_under_way)
{
    CADRE_ASSERT(call->registry_slot == 0); /* a call enters once */
    *ret_under_way = NULL;
    if (!atomic_compare_exchange_strong_explicit(&under_way[registry_slot], ret_under_way, function,
            memory_order_acquire, memory_order_relaxed)) {
        return false;
    }
    call->registry_slot = registry_slot + 1;
    return true;
}

void strategy_leave(struct strategy_call *call)
{
    if (call->registry_slot > 0) {
        CADRE_ASSERT(call->registry_slot <= SLOTS);
        atomic_store_explicit(&under_way[call->registry_slot - 1], NULL, memory_order_release);
        call->registry_slot = 0;
    }
}

cadre_strategy *strategy_registry_default(void)
{
    return atomic_load_explicit(&registry[SLOT_OF_DEFAULT], memory_order_acquire);
}

bool strategy_is_default(const cadre_strategy *strategy)
{
    return strategy != NULL && strategy_registry_default() == strategy;
}

static uint32_t slot_among(
    const cadre_strategy *strategy, uint32_t first, const _Atomic uint32_t *used)
{
    uint32_t end = first + atomic_load_explicit(used, memory_order_acquire);
    for (uint32_t i = first; i < end; i++) {
        if (atomic_load_explicit(&registry[i], memory_order_acquire) == strategy) {
            return i;
        }
    }
    return SLOTS;
}

/* SLOTS: it is in none. */
static uint32_t registry_slot_of(const cadre_strategy *strategy)
{
    if (strategy == NULL) {
        return SLOTS;
    }
    uint32_t registry_slot = slot_among(strategy, 0, &registry_slot_used);
    if (registry_slot == SLOTS && strategy_registry_default() == strategy) {
        registry_slot = SLOT_OF_DEFAULT;
    }
    return registry_slot == SLOTS ? slot_among(strategy, WORKERS_FIRST, &workers_used)
                                   : registry_slot;
}

bool strategy_registry_acquire(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, const char **ret_under_way)
{
    uint32_t registry_slot = registry_slot_of(strategy);
    *ret_under_way = NULL;
    if (registry_slot == SLOTS || !take_slot(registry_slot, function, call, ret_under_way)) {
        return false;
    }
    if (atomic_load_explicit(&registry[registry_slot], memory_order_acquire) != strategy) {
        strategy_leave(call); /* it was removed in between */
        return false;
    }
    return true;
}

const char *strategy_set_activity(const cadre_strategy *strategy, const char *what)
{
    uint32_t registry_slot = registry_slot_of(strategy);
    CADRE_ASSERT(registry_slot < SLOTS);
    const char *before =
        atomic_exchange_explicit(&under_way[registry_slot], what, memory_order_relaxed);
    CADRE_ASSERT(before != NULL);
    return before;
}

/* Into a free one of `count` slots. */
static bool add_among(cadre_strategy *strategy, uint32_t first, uint32_t count,
    _Atomic uint32_t *used, const char *function, struct strategy_call *call)
{
    const char *ignored;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t registry_slot = first + i;
        if (atomic_load(&registry[registry_slot]) != NULL ||
            !take_slot(registry_slot, function, call, &ignored)) {
            continue;
        }
        if (atomic_load(&registry[registry_slot]) == NULL) {
            atomic_store(&registry[registry_slot], strategy);
            uint32_t before = atomic_load(used);
            while (before < i + 1 && !atomic_compare_exchange_weak(used, &before, i + 1)) {
            }
            return true;
        }
        strategy_leave(call);
    }
    return false;
}

cadre_status strategy_registry_add(cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->number == 0);
    const char *ignored;
    if (strategy->origin == STRATEGY_DEFAULT) {
        bool taken = take_slot(SLOT_OF_DEFAULT, function, call, &ignored);
        CADRE_ASSERT(taken); /* one thread makes it, and there was none */
        atomic_store(&registry[SLOT_OF_DEFAULT], strategy);
        return CADRE_OK;
    }
    bool of_worker = strategy->origin == STRATEGY_OF_WORKER;
    strategy->number = atomic_fetch_add(&numbers, 1) + 1;
    bool added = of_worker ? add_among(strategy, WORKERS_FIRST, STRATEGY_REGISTRY_WORKERS_MAX,
                                 &workers_used, function, call)
                           : add_among(strategy, 0, STRATEGY_REGISTRY_MAX, &registry_slot_used,
                                 function, call);
    return added ? CADRE_OK
                 : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                       "%d strategies are open in this process; end one with cadre_finish or "
                       "cadre_strategy_release first",
                       STRATEGY_REGISTRY_MAX);
}

uint64_t strategy_registry_created(void)
{
    return atomic_load(&numbers);
}

void strategy_registry_remove(cadre_strategy *strategy)
{
    CADRE_ASSERT(strategy_is_registered(strategy));
    if (strategy->origin == STRATEGY_CONSTRUCTED) {
        atomic_store(&last_rank, strategy_rank_of(strategy));
    }
    for (uint32_t i = 0; i < SLOTS; i++) {
        cadre_strategy *itself = strategy;
        atomic_compare_exchange_strong(&registry[i], &itself, NULL);
    }
}

cadre_strategy *strategy_registry_next(uint32_t *at)
{
    CADRE_ASSERT(*at <= STRATEGY_REGISTRY_MAX);
    uint32_t used = atomic_load_explicit(&registry_slot_used, memory_order_acquire);
    while (*at < used) {
        cadre_strategy *strategy = atomic_load_explicit(&registry[*at], memory_order_acquire);
        ++*at;
        if (strategy != NULL) {
            return strategy;
        }
    }
    return NULL;
}

cadre_strategy *strategy_registry_single(void)
{
    uint32_t at = 0;
    cadre_strategy *first = strategy_registry_next(&at);
    return strategy_registry_next(&at) == NULL ? first : NULL;
}

bool strategy_is_registered(const cadre_strategy *strategy)
{
    return registry_slot_of(strategy) < SLOTS;
}

/* All open strategies of one process have the same rank. */
uint32_t strategy_rank(void)
{
    uint32_t at = 0;
    const cadre_strategy *strategy = strategy_registry_next(&at);
    return strategy == NULL ? atomic_load(&last_rank) : strategy_rank_of(strategy);
}
