/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/strategy/living.h"

#include <stdatomic.h>

#include "common/pure/assert.h"

#define PLACE_OF_DEFAULT LIVING_MAX
#define WORKERS_FIRST    (LIVING_MAX + 1)
#define PLACES           (WORKERS_FIRST + LIVING_WORKERS_MAX)

static _Atomic(cadre_strategy *) living[PLACES];
/* The call that each is in; NULL: none. It lies here and not in the strategy, because a call may
 * end a strategy while another thread begins one. Who takes a place acquires what the call before
 * left behind, and nobody else makes the strategy of a place live or end. */
static _Atomic(const char *) under_way[PLACES];
static _Atomic uint32_t living_used;  /* places that were ever taken */
static _Atomic uint32_t workers_used; /* those from WORKERS_FIRST on, likewise */
static _Atomic uint64_t numbers;
/* Of the one before, so that its end does not make every task the first. */
static _Atomic uint32_t last_rank;

/* *ret_under_way: what it is in; NULL: nothing, and the place is taken. */
static bool take_place(
    uint32_t place, const char *function, struct strategy_call *call, const char **ret_under_way)
{
    CADRE_ASSERT(call->place == 0); /* a call enters once */
    *ret_under_way = NULL;
    if (!atomic_compare_exchange_strong_explicit(&under_way[place], ret_under_way, function,
            memory_order_acquire, memory_order_relaxed)) {
        return false;
    }
    call->place = place + 1;
    return true;
}

void strategy_leave(struct strategy_call *call)
{
    if (call->place > 0) {
        CADRE_ASSERT(call->place <= PLACES);
        atomic_store_explicit(&under_way[call->place - 1], NULL, memory_order_release);
        call->place = 0;
    }
}

cadre_strategy *living_default(void)
{
    return atomic_load_explicit(&living[PLACE_OF_DEFAULT], memory_order_acquire);
}

bool strategy_is_default(const cadre_strategy *strategy)
{
    return strategy != NULL && living_default() == strategy;
}

static uint32_t place_among(
    const cadre_strategy *strategy, uint32_t first, const _Atomic uint32_t *used)
{
    uint32_t end = first + atomic_load_explicit(used, memory_order_acquire);
    for (uint32_t i = first; i < end; i++) {
        if (atomic_load_explicit(&living[i], memory_order_acquire) == strategy) {
            return i;
        }
    }
    return PLACES;
}

/* PLACES: at none. */
static uint32_t place_of(const cadre_strategy *strategy)
{
    if (strategy == NULL) {
        return PLACES;
    }
    uint32_t place = place_among(strategy, 0, &living_used);
    if (place == PLACES && living_default() == strategy) {
        place = PLACE_OF_DEFAULT;
    }
    return place == PLACES ? place_among(strategy, WORKERS_FIRST, &workers_used) : place;
}

bool living_take(const cadre_strategy *strategy, const char *function, struct strategy_call *call,
    const char **ret_under_way)
{
    uint32_t place = place_of(strategy);
    *ret_under_way = NULL;
    if (place == PLACES || !take_place(place, function, call, ret_under_way)) {
        return false;
    }
    if (atomic_load_explicit(&living[place], memory_order_acquire) != strategy) {
        strategy_leave(call); /* it ended in between */
        return false;
    }
    return true;
}

const char *strategy_does(const cadre_strategy *strategy, const char *what)
{
    uint32_t place = place_of(strategy);
    CADRE_ASSERT(place < PLACES);
    const char *before = atomic_exchange_explicit(&under_way[place], what, memory_order_relaxed);
    CADRE_ASSERT(before != NULL);
    return before;
}

/* At one of `count` places that is free. */
static bool add_among(cadre_strategy *strategy, uint32_t first, uint32_t count,
    _Atomic uint32_t *used, const char *function, struct strategy_call *call)
{
    const char *ignored;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = first + i;
        if (atomic_load(&living[place]) != NULL || !take_place(place, function, call, &ignored)) {
            continue;
        }
        if (atomic_load(&living[place]) == NULL) {
            atomic_store(&living[place], strategy);
            uint32_t before = atomic_load(used);
            while (before < i + 1 && !atomic_compare_exchange_weak(used, &before, i + 1)) {
            }
            return true;
        }
        strategy_leave(call);
    }
    return false;
}

cadre_status living_add(cadre_strategy *strategy, const char *function, struct strategy_call *call,
    struct cadre_error *error)
{
    CADRE_ASSERT(strategy->number == 0);
    const char *ignored;
    if (strategy->origin == STRATEGY_BY_DEFAULT) {
        bool taken = take_place(PLACE_OF_DEFAULT, function, call, &ignored);
        CADRE_ASSERT(taken); /* one thread makes it, and there was none */
        atomic_store(&living[PLACE_OF_DEFAULT], strategy);
        return CADRE_OK;
    }
    bool of_worker = strategy->origin == STRATEGY_OF_WORKER;
    strategy->number = atomic_fetch_add(&numbers, 1) + 1;
    bool added = of_worker ? add_among(strategy, WORKERS_FIRST, LIVING_WORKERS_MAX, &workers_used,
                                 function, call)
                           : add_among(strategy, 0, LIVING_MAX, &living_used, function, call);
    return added ? CADRE_OK
                 : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                       "%d strategies live in this process already; end one with cadre_finish or "
                       "cadre_strategy_release first",
                       LIVING_MAX);
}

uint64_t living_numbered(void)
{
    return atomic_load(&numbers);
}

void living_remove(cadre_strategy *strategy)
{
    CADRE_ASSERT(strategy_lives(strategy));
    if (strategy->origin == STRATEGY_MADE) {
        atomic_store(&last_rank, strategy_rank_of(strategy));
    }
    for (uint32_t i = 0; i < PLACES; i++) {
        cadre_strategy *itself = strategy;
        atomic_compare_exchange_strong(&living[i], &itself, NULL);
    }
}

cadre_strategy *living_next(uint32_t *at)
{
    CADRE_ASSERT(*at <= LIVING_MAX);
    uint32_t used = atomic_load_explicit(&living_used, memory_order_acquire);
    while (*at < used) {
        cadre_strategy *strategy = atomic_load_explicit(&living[*at], memory_order_acquire);
        ++*at;
        if (strategy != NULL) {
            return strategy;
        }
    }
    return NULL;
}

cadre_strategy *living_only(void)
{
    uint32_t at = 0;
    cadre_strategy *first = living_next(&at);
    return living_next(&at) == NULL ? first : NULL;
}

bool strategy_lives(const cadre_strategy *strategy)
{
    return place_of(strategy) < PLACES;
}

/* All that live in one process have the same rank. */
uint32_t strategy_rank(void)
{
    uint32_t at = 0;
    const cadre_strategy *strategy = living_next(&at);
    return strategy == NULL ? atomic_load(&last_rank) : strategy_rank_of(strategy);
}
