/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/strategy/living.h"

#include <stdatomic.h>

#include "common/pure/assert.h"

static _Atomic(cadre_strategy *) living[LIVING_MAX];
static _Atomic uint32_t living_used; /* places that were ever taken */
static _Atomic uint64_t numbers;
/* Of the one before, so that its end does not make every task the first. */
static _Atomic uint32_t last_rank;

cadre_status living_add(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->number == 0);
    strategy->number = atomic_fetch_add(&numbers, 1) + 1;
    for (uint32_t i = 0; i < LIVING_MAX; i++) {
        cadre_strategy *none = NULL;
        if (atomic_compare_exchange_strong(&living[i], &none, strategy)) {
            uint32_t used = atomic_load(&living_used);
            while (used < i + 1 && !atomic_compare_exchange_weak(&living_used, &used, i + 1)) {
            }
            return CADRE_OK;
        }
    }
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
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
    atomic_store(&last_rank, strategy_rank_of(strategy));
    for (uint32_t i = 0; i < LIVING_MAX; i++) {
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
    uint32_t at = 0;
    const cadre_strategy *other = NULL;
    while (strategy != NULL && (other = living_next(&at)) != NULL && other != strategy) {
    }
    return other != NULL;
}

/* All that live in one process have the same rank. */
uint32_t strategy_rank(void)
{
    uint32_t at = 0;
    const cadre_strategy *strategy = living_next(&at);
    return strategy == NULL ? atomic_load(&last_rank) : strategy_rank_of(strategy);
}
