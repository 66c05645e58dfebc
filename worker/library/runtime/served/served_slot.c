/* SPDX-License-Identifier: Apache-2.0
 * The optimizer's slots of a variable on servers, as read-only variables: "w/m" is in the shards of
 * "w", and "w/updates" is the largest count among them. Called through the table of
 * remote_variable.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/served/row_groups.h"
#include "worker/library/runtime/served/served_call.h"

#define UPDATES      "updates"
#define ROWS_AT_ONCE 4096 /* requests of one call */

/* --- finding and making one --- */

static cadre_status find_part(cadre_variable *variable, const char *name,
    struct served_part *ret_part, struct cadre_error *error)
{
    struct optimizer_rule rule;
    CADRE_TRY(served_find_rule(variable, &rule, error));
    *ret_part = (struct served_part){.variable = variable, .kind = SERVED_UPDATES};
    if (rule.kind != OPTIMIZER_NONE && strcmp(name, UPDATES) == 0) {
        return CADRE_OK;
    }
    for (uint32_t i = 0; rule.kind != OPTIMIZER_NONE && i < optimizer_slots(&rule); i++) {
        if (strcmp(name, optimizer_slot_name(&rule, i)) == 0) {
            ret_part->kind = SERVED_SLOT;
            ret_part->slot = i;
            return CADRE_OK;
        }
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "variable '%s' has %s on its servers; the chief gives it its optimizer, by "
        "cadre_optimizer_build or its first cadre_optimizer_apply",
        variable->name,
        rule.kind == OPTIMIZER_NONE ? "no optimizer yet"
                                    : "an optimizer of another kind, without that slot,");
}

/* The caller holds the lock. */
static cadre_variable *look(const struct served *served, const char *name)
{
    for (uint32_t i = 0; i <= OPTIMIZER_SLOTS; i++) {
        if (served->slots[i] != NULL && strcmp(served->slots[i]->name, name) == 0) {
            return served->slots[i];
        }
    }
    return NULL;
}

/* The caller holds the lock. Several replicas that write a slot are refused by the check of the
 * first one's push. */
static cadre_status make(const struct served_part *part, const char *name,
    cadre_variable **ret_slot, struct cadre_error *error)
{
    static const int64_t one[1] = {1};
    const cadre_variable *variable = part->variable;
    struct served *served = variable->served;
    const bool counts = part->kind == SERVED_UPDATES;
    const uint64_t shards = counts ? 1 : served->layout.shards;
    const cadre_variable_options options = {.aggregation = CADRE_AGGREGATION_ONLY_FIRST_REPLICA};
    const struct variable_plan plan = {.strategy = variable->strategy,
        .name = name,
        .dtype = counts ? CADRE_I64 : variable->dtype,
        .rank = counts ? 1 : variable->rank,
        .dims = counts ? one : variable->dims,
        .options = &options};
    CADRE_TRY(served_new(served->all, &plan, shards, ret_slot, error));
    struct served *slot = (*ret_slot)->served;
    memcpy(slot->shards, served->shards, (size_t)shards * sizeof slot->shards[0]);
    slot->part = *part;
    served->slots[counts ? OPTIMIZER_SLOTS : part->slot] = *ret_slot;
    return CADRE_OK;
}

cadre_status served_slot(cadre_variable *variable, const char *name, cadre_variable **ret_slot,
    struct cadre_error *error)
{
    struct served *served = variable->served;
    struct served_part part;
    char whole[LIMIT_NAME_BYTES + 24];
    cadre_status status = CADRE_OK;
    CADRE_TRY(served_require_no_slot(variable, error));
    snprintf(whole, sizeof whole, "%s/%s", variable->name, name);
    pthread_mutex_lock(&served->all->lock);
    *ret_slot = look(served, whole);
    pthread_mutex_unlock(&served->all->lock);
    if (*ret_slot != NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(name_check("variable", whole, error));
    CADRE_TRY(find_part(variable, name, &part, error));
    pthread_mutex_lock(&served->all->lock);
    *ret_slot = look(served, whole); /* another thread may have made it meanwhile */
    if (*ret_slot == NULL) {
        status = make(&part, whole, ret_slot, error);
    }
    pthread_mutex_unlock(&served->all->lock);
    return status;
}

/* --- reading --- */

cadre_status served_updates(
    const cadre_variable *variable, int64_t *ret_updates, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct request *requests = NULL;
    const struct request like = {.kind = REQUEST_SLOT};
    CADRE_TRY(served_call_shards(variable, &like, &requests, error));
    uint64_t most = 0;
    for (uint64_t i = 0; i < variable->served->layout.shards; i++) {
        most = requests[i].updates > most ? requests[i].updates : most;
    }
    *ret_updates = (int64_t)most;
    return CADRE_OK;
}

/* Waits until so many synchronous steps were applied. */
static cadre_status wait_for_step(
    const cadre_variable *variable, uint64_t step, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct request *requests = NULL;
    const struct request like = {.kind = REQUEST_PULL, .min_steps = step};
    return step == 0 ? CADRE_OK : served_call_shards(variable, &like, &requests, error);
}

static cadre_status check_ids(
    const cadre_variable *slot, const struct variable_rows *rows, struct cadre_error *error)
{
    const uint64_t all = slot->served->layout.rows;
    for (uint64_t i = 0; rows->ids != NULL && i < rows->count; i++) {
        if (rows->ids[i] < 0 || (uint64_t)rows->ids[i] >= all) {
            return row_groups_no_such_row(slot->name, all, rows->ids[i], error);
        }
    }
    return CADRE_OK;
}

static cadre_status read_updates(const cadre_variable *slot, const struct variable_rows *rows,
    int64_t *into, struct cadre_error *error)
{
    int64_t updates = 0;
    CADRE_TRY(served_updates(slot->served->part.variable, &updates, error));
    for (uint64_t i = 0; i < rows->count; i++) {
        into[i] = updates;
    }
    return CADRE_OK;
}

/* Servers return slots by ranges, so each row is a request of its own. */
static cadre_status read_some(const cadre_variable *slot, const int64_t *ids, size_t count,
    char *into, struct cadre_error *error)
{
    const struct served *served = slot->served;
    CADRE_FREE_AT_EXIT struct request *requests = calloc(count + 1, sizeof *requests);
    if (requests == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for requests of %zu rows of variable '%s'", count, slot->name);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t shard = partition_owner(served->layout, (uint64_t)ids[i]);
        requests[i] = (struct request){.kind = REQUEST_SLOT,
            .server = served->shards[shard].server,
            .shard = served->shards[shard].number,
            .slot = served->part.slot,
            .first = (uint64_t)ids[i] - partition_first(served->layout, shard),
            .rows = 1,
            .row_bytes = served->row_bytes,
            .into = into + i * served->row_bytes};
    }
    return served_send(slot, requests, count, error);
}

cadre_status served_slot_read(const cadre_variable *slot, const struct variable_rows *rows,
    uint64_t step, void *into, struct cadre_error *error)
{
    const struct served_part *part = &slot->served->part;
    CADRE_ASSERT(part->variable != NULL);
    CADRE_TRY(check_ids(slot, rows, error));
    CADRE_TRY(wait_for_step(part->variable, step, error));
    if (part->kind == SERVED_UPDATES) {
        return read_updates(slot, rows, into, error);
    }
    if (rows->ids == NULL) {
        const struct request like = {.kind = REQUEST_SLOT, .slot = part->slot, .into = into};
        const struct row_range range = {.first = rows->first, .rows = rows->count};
        return served_call_range(slot, range, &like, NULL, NULL, error);
    }
    for (size_t at = 0; at < rows->count; at += ROWS_AT_ONCE) {
        const size_t left = (size_t)rows->count - at;
        CADRE_TRY(read_some(slot, rows->ids + at, left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE,
            (char *)into + at * slot->served->row_bytes, error));
    }
    return CADRE_OK;
}
