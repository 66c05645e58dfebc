/* SPDX-License-Identifier: Apache-2.0
 * The list of variables that an optimizer has slots of. Replicas of one task add to it while others
 * read it; each makes the same slots, and the first one adds them. */
#include <stdlib.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/optimizers/optimizer.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

uint64_t optimizer_attempt(const cadre_optimizer *optimizer)
{
    const cadre_replica *replica = context_replica();
    bool inside = replica != NULL && replica->strategy == optimizer->strategy &&
                  optimizer->strategy->worker == NULL;
    return inside ? atomic_load_explicit(&optimizer->strategy->step.begun, memory_order_relaxed)
                  : 0;
}

static bool is_there(const cadre_optimizer *optimizer, const struct optimized *of, uint64_t attempt)
{
    return of->attempt == 0 || of->attempt == attempt ||
           strategy_position(optimizer->strategy) > of->position;
}

/* --- lookups: the lock is held --- */

static struct optimized *optimizer_list_look(
    const struct optimizer_list *list, const cadre_variable *variable, size_t likely)
{
    if (likely < list->count && list->entries[likely]->variable == variable) {
        return list->entries[likely];
    }
    for (size_t i = 0; i < list->count; i++) {
        if (list->entries[i]->variable == variable) {
            return list->entries[i];
        }
    }
    return NULL;
}

const struct optimized *optimizer_find(const cadre_optimizer *optimizer,
    const cadre_variable *variable, size_t likely, uint64_t attempt)
{
    pthread_mutex_lock(&optimizer->list->lock);
    const struct optimized *of = optimizer_list_look(optimizer->list, variable, likely);
    bool there = of != NULL && is_there(optimizer, of, attempt);
    pthread_mutex_unlock(&optimizer->list->lock);
    return there ? of : NULL;
}

const struct optimized *optimizer_at(const cadre_optimizer *optimizer, size_t i, uint64_t attempt)
{
    pthread_mutex_lock(&optimizer->list->lock);
    CADRE_ASSERT(i < optimizer->list->count);
    const struct optimized *of = optimizer->list->entries[i];
    bool there = is_there(optimizer, of, attempt);
    pthread_mutex_unlock(&optimizer->list->lock);
    return there ? of : NULL;
}

size_t optimizer_count(const cadre_optimizer *optimizer)
{
    pthread_mutex_lock(&optimizer->list->lock);
    size_t count = optimizer->list->count;
    pthread_mutex_unlock(&optimizer->list->lock);
    return count;
}

/* --- adding --- */

static cadre_status get_room(struct optimizer_list *list, size_t more, struct cadre_error *error)
{
    size_t wanted = list->count + more;
    if (wanted <= list->capacity) {
        return CADRE_OK;
    }
    size_t capacity = wanted > 2 * list->capacity ? wanted : 2 * list->capacity;
    struct optimized **entries = fault_point("optimizer.slots")
                                     ? NULL
                                     : realloc(list->entries, capacity * sizeof entries[0]);
    if (entries == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the slots of %zu variables", wanted);
    }
    list->entries = entries;
    list->capacity = capacity;
    return CADRE_OK;
}

cadre_status optimizer_list_room(cadre_optimizer *optimizer, size_t more, struct cadre_error *error)
{
    pthread_mutex_lock(&optimizer->list->lock);
    cadre_status status = get_room(optimizer->list, more, error);
    pthread_mutex_unlock(&optimizer->list->lock);
    return status;
}

/* Slots, then the count of updates. NULL: there is none at that index. */
static cadre_variable *read_ahead_slot_at(const struct optimized *of, uint32_t i)
{
    CADRE_ASSERT(i <= OPTIMIZER_SLOTS);
    return i < OPTIMIZER_SLOTS ? of->slots[i] : of->updates;
}

static cadre_status check_owner(
    const cadre_optimizer *optimizer, const struct optimized *made, struct cadre_error *error)
{
    for (uint32_t i = 0; i <= OPTIMIZER_SLOTS; i++) {
        const cadre_variable *slot = read_ahead_slot_at(made, i);
        if (slot != NULL && slot->slot_of != NULL && slot->slot_of != optimizer) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "optimizer '%s' was given variable '%s', which optimizer '%s' updates, and has "
                "'%s' "
                "for; give both optimizers to cadre_optimizer_build before the first step, which "
                "makes slots for each",
                optimizer->name, made->variable->name, slot->slot_of->name, slot->name);
        }
    }
    return CADRE_OK;
}

static void set_owner(const struct optimized *of, const cadre_optimizer *optimizer)
{
    for (uint32_t i = 0; i <= OPTIMIZER_SLOTS; i++) {
        cadre_variable *slot = read_ahead_slot_at(of, i);
        if (slot != NULL) {
            slot->slot_of = optimizer;
        }
    }
}

static cadre_status optimizer_list_put(
    cadre_optimizer *optimizer, const struct optimized *made, struct cadre_error *error)
{
    struct optimizer_list *list = optimizer->list;
    struct optimized *of = optimizer_list_look(list, made->variable, list->count);
    CADRE_TRY(check_owner(optimizer, made, error));
    if (of == NULL) {
        CADRE_TRY(get_room(list, 1, error));
        of = calloc(1, sizeof *of);
        if (of == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for the slots of variable '%s'", made->variable->name);
        }
        list->entries[list->count++] = of;
    }
    *of = *made;
    set_owner(of, optimizer);
    return CADRE_OK;
}

cadre_status optimizer_put(cadre_optimizer *optimizer, const struct optimized *made, bool *ret_put,
    struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&optimizer->list->lock);
    const struct optimized *of =
        optimizer_list_look(optimizer->list, made->variable, optimizer->list->count);
    bool there = of != NULL && is_there(optimizer, of, made->attempt);
    if (!there) {
        status = optimizer_list_put(optimizer, made, error);
    }
    pthread_mutex_unlock(&optimizer->list->lock);
    *ret_put = !there && status == CADRE_OK;
    return status;
}

/* --- new and free --- */

cadre_status optimizer_list_make(cadre_optimizer *optimizer, struct cadre_error *error)
{
    optimizer->list = calloc(1, sizeof *optimizer->list);
    if (optimizer->list == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an optimizer");
    }
    pthread_mutex_init(&optimizer->list->lock, NULL);
    return CADRE_OK;
}

void optimized_release(const cadre_optimizer *optimizer, const struct optimized *of)
{
    for (uint32_t i = 0; optimizer->strategy == NULL && i <= OPTIMIZER_SLOTS; i++) {
        cadre_variable_release(read_ahead_slot_at(of, i));
    }
}

void optimizer_list_free(cadre_optimizer *optimizer, bool attempts)
{
    struct optimizer_list *list = optimizer->list;
    if (list == NULL) {
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (attempts) {
            set_owner(list->entries[i], NULL);
        }
        optimized_release(optimizer, list->entries[i]);
        free(list->entries[i]);
    }
    pthread_mutex_destroy(&list->lock);
    free(list->entries);
    free(list);
}
