/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/collectives/collectives.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/collectives/buckets.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/collectives/collective_queue.h"
#include "worker/library/runtime/replica/collective_list.h"
#include "worker/library/runtime/strategy/strategy.h"

static cadre_status open_part(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->collectives == NULL);
    strategy->collectives = calloc(1, sizeof *strategy->collectives);
    return strategy->collectives != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                     "no memory for the collectives of the strategy");
}

static void free_part(cadre_strategy *strategy)
{
    free(strategy->collectives);
    strategy->collectives = NULL;
}

/* No replica runs or will run: ends their communication threads, and frees their memory. */
static void close_part(cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        cadre_replica *replica = &strategy->replicas[i];
        CADRE_ASSERT(atomic_load(&replica->doing) == REPLICA_IDLE);
        buckets_free(replica);
        collective_queue_close(replica);
        collective_list_free(&replica->list);
    }
}

static void collectives_returned(cadre_replica *replica, const struct cadre_error *failure)
{
    buckets_end(replica);
    collective_queue_end(replica, failure);
}

/* Protocol, rule 25: a step without a collective gets an implicit one, by which all tasks meet at
 * its end; where states are compared, that is done in it. */
static cadre_status collectives_complete(cadre_replica *replica, struct cadre_error *error)
{
    bool makes = atomic_load(&replica->collectives) == 0 &&
                 (replica->strategy->roster.member_count > 1 || replica->digest != 0);
    return makes ? collective_implicit(replica, error) : CADRE_OK;
}

const struct strategy_hooks collectives_hooks = {
    .name = "collectives",
    .open = open_part,
    .close = close_part,
    .free = free_part,
    .returned = collectives_returned,
    .complete = collectives_complete,
};
