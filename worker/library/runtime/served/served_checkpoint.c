/* SPDX-License-Identifier: Apache-2.0
 * The names and entries of variables on servers in checkpoints. A variable that is trained after
 * others were created gets its slots behind theirs, because the writer of checkpoints requires that
 * no tensor moves. */
#include <stdio.h>
#include <stdlib.h>

#include "worker/library/runtime/served/served.h"
#include "worker/library/runtime/state/layout/registered.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

const char *served_part_name(const struct served_part *part, char ret_name[SAFETENSORS_NAME_BYTES])
{
    const struct optimizer_rule *rule = &part->variable->served->rule;
    snprintf(ret_name, SAFETENSORS_NAME_BYTES, "%s%s%s", part->variable->name,
        part->kind == SERVED_VALUE ? "" : "/",
        part->kind == SERVED_VALUE   ? ""
        : part->kind == SERVED_SLOT  ? optimizer_slot_name(rule, part->slot)
        : part->kind == SERVED_STEPS ? "steps"
                                     : "updates");
    return ret_name;
}

bool served_part_at(struct served_variables *all, uint32_t i, struct served_part *ret_part)
{
    pthread_mutex_lock(&all->lock);
    bool found = i < all->part_count;
    if (found) {
        *ret_part = all->checkpoint_parts[i];
    }
    pthread_mutex_unlock(&all->lock);
    return found;
}

/* The caller holds the lock. */
static bool make_room(struct served_variables *all, uint32_t more)
{
    uint32_t wanted = all->part_count + more;
    if (wanted <= all->part_capacity) {
        return true;
    }
    uint32_t capacity = wanted < 32 ? 32 : wanted * 2;
    struct served_part *grown = realloc(all->checkpoint_parts, capacity * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    all->checkpoint_parts = grown;
    all->part_capacity = capacity;
    return true;
}

cadre_status served_checkpoint_parts_add(
    cadre_variable *variable, bool trained, struct cadre_error *error)
{
    struct served_variables *all = variable->served->all;
    uint32_t slots = trained ? optimizer_slots(&variable->served->rule) : 0;
    pthread_mutex_lock(&all->lock);
    bool room = make_room(all, slots + 2);
    if (room && !trained) {
        all->checkpoint_parts[all->part_count++] = (struct served_part){variable, SERVED_VALUE, 0};
        all->checkpoint_parts[all->part_count++] = (struct served_part){variable, SERVED_STEPS, 0};
    }
    for (uint32_t slot = 0; room && slot < slots; slot++) {
        all->checkpoint_parts[all->part_count++] =
            (struct served_part){variable, SERVED_SLOT, slot};
    }
    if (room && trained) {
        all->checkpoint_parts[all->part_count++] =
            (struct served_part){variable, SERVED_UPDATES, 0};
    }
    pthread_mutex_unlock(&all->lock);
    return room ? CADRE_OK
                : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                      "no memory for what variable '%s' is in checkpoints", variable->name);
}

/* --- names --- */

static cadre_status check_part(const struct cadre_strategy *strategy, const char *name,
    const char *part, struct cadre_error *error)
{
    char whole[SAFETENSORS_NAME_BYTES];
    snprintf(whole, sizeof whole, "%s/%s", name, part);
    if (variable_lookup(strategy, whole) == NULL && !registered_has_name(strategy, whole) &&
        !streamed_has_name(strategy, whole)) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_ALREADY_EXISTS,
        "variable '%s' would stand in checkpoints as '%s' too, and something else does already; "
        "give it another name",
        name, whole);
}

cadre_status served_checkpoint_parts_check(const struct cadre_strategy *strategy, const char *name,
    const struct optimizer_rule *rule, struct cadre_error *error)
{
    if (rule == NULL) {
        return check_part(strategy, name, "steps", error);
    }
    for (uint32_t slot = 0; slot < optimizer_slots(rule); slot++) {
        CADRE_TRY(check_part(strategy, name, optimizer_slot_name(rule, slot), error));
    }
    return check_part(strategy, name, "updates", error);
}
