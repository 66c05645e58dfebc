/* SPDX-License-Identifier: Apache-2.0
 * The list of variables on servers, and one variable: made, added, ended. Called by the other files
 * of this folder. */
#include "worker/library/runtime/served/served.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/served/read_versions.h"

static _Atomic(struct served_variables *) current;

void served_free(struct served *served)
{
    if (served != NULL) {
        for (uint32_t i = 0; i <= OPTIMIZER_SLOTS; i++) {
            variable_free(served->slots[i]);
        }
        read_versions_free(served->views);
        free(served->shards);
        free(served);
    }
}

/* --- the list --- */

void served_set_current(struct served_variables *all)
{
    atomic_store(&current, all);
}

struct served_variables *served_current(void)
{
    return atomic_load(&current);
}

enum role served_role(const struct served_variables *all)
{
    const struct ps_job_state *thread = ps_job_current();
    return thread != NULL ? thread->role : all->ps_job->role;
}

/* The caller holds the lock. */
static cadre_variable *find_in(const struct served_variables *all, const char *name)
{
    cadre_variable *found = NULL;
    for (uint32_t i = 0; found == NULL && i < all->count; i++) {
        found = strcmp(all->list[i]->name, name) == 0 ? all->list[i] : NULL;
    }
    return found;
}

cadre_variable *served_lookup(struct served_variables *all, const char *name)
{
    pthread_mutex_lock(&all->lock);
    cadre_variable *found = find_in(all, name);
    pthread_mutex_unlock(&all->lock);
    return found;
}

cadre_status served_require(const cadre_variable *variable, const char *function,
    const char *instead, struct cadre_error *error)
{
    CADRE_TRY(argument_require(variable, function, "variable", error));
    CADRE_TRY(variable_require_registered(variable, function, error));
    return variable->served != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "%s: variable '%s' lies in this process, on no parameter server; %s", function,
                     variable->name, instead);
}

cadre_status served_require_no_slot(const cadre_variable *variable, struct cadre_error *error)
{
    const cadre_variable *of = variable->served->part.variable;
    return of == NULL ? CADRE_OK
                      : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                            "'%s' is what the optimizer of variable '%s' remembers on parameter "
                            "servers, and is only read; use cadre_optimizer_apply, which updates "
                            "both",
                            variable->name, of->name);
}

cadre_variable *served_at(struct served_variables *all, uint32_t i)
{
    pthread_mutex_lock(&all->lock);
    cadre_variable *variable = i < all->count ? all->list[i] : NULL;
    pthread_mutex_unlock(&all->lock);
    return variable;
}

static bool make_room(struct served_variables *all)
{
    CADRE_ASSERT(all->count <= all->capacity);
    if (all->count < all->capacity) {
        return true;
    }
    uint32_t capacity = all->capacity == 0 ? 16 : all->capacity * 2;
    cadre_variable **grown = realloc(all->list, capacity * sizeof(cadre_variable *));
    if (grown == NULL) {
        return false;
    }
    all->list = grown;
    all->capacity = capacity;
    return true;
}

cadre_status served_add(
    struct served_variables *all, cadre_variable **variable, struct cadre_error *error)
{
    cadre_variable *added = *variable;
    CADRE_ASSERT(added->served->all == all);
    pthread_mutex_lock(&all->lock);
    cadre_variable *there = find_in(all, added->name);
    bool room = there != NULL || make_room(all);
    if (there == NULL && room) {
        all->list[all->count++] = added;
    }
    pthread_mutex_unlock(&all->lock);
    if (there != NULL || !room) {
        variable_free(added);
        *variable = there;
    }
    return room ? CADRE_OK
                : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                      "no memory for %u variables on parameter servers", all->count + 1);
}

/* --- one variable --- */

static struct served *new_served(struct served_variables *all, uint64_t shards)
{
    struct served *served = calloc(1, sizeof *served);
    if (served == NULL) {
        return NULL;
    }
    served->all = all;
    served->shards = calloc((size_t)shards, sizeof *served->shards);
    served->views = read_versions_new(shards);
    if (served->shards == NULL || served->views == NULL) {
        served_free(served);
        return NULL;
    }
    return served;
}

static void set_layout(struct served *served, const cadre_variable *variable, uint64_t shards)
{
    served->row_elements = 1;
    for (uint32_t axis = 1; axis < variable->rank; axis++) {
        served->row_elements *= (uint64_t)variable->dims[axis];
    }
    served->row_bytes = (size_t)served->row_elements * cadre_dtype_bytes(variable->dtype);
    served->layout = (struct partition_layout){
        .rows = variable->rank == 0 ? 1 : (uint64_t)variable->dims[0], .shards = shards};
}

cadre_status served_new(struct served_variables *all, const struct variable_plan *plan,
    uint64_t shards, cadre_variable **ret_variable, struct cadre_error *error)
{
    struct variable_plan served = *plan;
    *ret_variable = NULL;
    CADRE_ASSERT(shards > 0);
    served.served = new_served(all, shards);
    if (served.served == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for variable '%s'", plan->name);
    }
    CADRE_TRY(variable_new(&served, ret_variable, error)); /* which owns it */
    set_layout(served.served, *ret_variable, shards);
    return CADRE_OK;
}

void served_set_shard(struct served *served, uint64_t shard, uint32_t server)
{
    CADRE_ASSERT(shard < served->layout.shards);
    served->shards[shard].server = server;
    snprintf(served->shards[shard].device, SERVED_DEVICE_BYTES,
        "/job:ps/replica:0/task:%" PRIu32 "/device:CPU:0", server);
}
