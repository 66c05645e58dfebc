/* SPDX-License-Identifier: Apache-2.0
 * Beginning and end of the list of variables on servers, and the table by which public functions
 * reach this folder. */
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/served/served.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_read.h"

/* --- the table --- */

static uint32_t count_shards(const cadre_variable *variable)
{
    return (uint32_t)variable->served->layout.shards;
}

static struct variable_shard shard_of(const cadre_variable *variable, uint32_t shard)
{
    const struct served *served = variable->served;
    CADRE_ASSERT(shard < served->layout.shards);
    return (struct variable_shard){.first = (int64_t)partition_first(served->layout, shard),
        .rows = (int64_t)partition_rows(served->layout, shard),
        .device = served->shards[shard].device};
}

static bool in_closure(void)
{
    const struct served_variables *all = served_current();
    return all != NULL && served_role(all) == ROLE_WORKER;
}

static const struct remote_variable_ops on_servers = {.create = served_create,
    .find = served_find,
    .shards = count_shards,
    .shard = shard_of,
    .read = served_read,
    .push = served_push,
    .train = served_train,
    .slot = served_slot,
    .updates = served_updates,
    .in_closure = in_closure,
    .free = served_free};

/* --- beginning and end --- */

cadre_status served_begin(struct ps_job_state *ps_job, struct cadre_error *error)
{
    CADRE_ASSERT(ps_job->served == NULL);
    struct served_variables *all = calloc(1, sizeof *all);
    if (all == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for variables on parameter servers");
    }
    all->ps_job = ps_job;
    pthread_mutex_init(&all->lock, NULL);
    ps_job->served = all;
    remote_variable_set_ops(&on_servers);
    served_set_current(all);
    return CADRE_OK;
}

void served_end(struct ps_job_state *ps_job)
{
    struct served_variables *all = ps_job->served;
    if (all == NULL) {
        return;
    }
    CADRE_ASSERT(all->ps_job == ps_job);
    served_set_current(NULL);
    for (uint32_t i = 0; i < all->count; i++) {
        variable_free(all->list[i]);
    }
    checkpoint_reader_close(all->reader);
    pthread_mutex_destroy(&all->lock);
    free(all->list);
    free(all->checkpoint_parts);
    free(all);
    ps_job->served = NULL;
}
