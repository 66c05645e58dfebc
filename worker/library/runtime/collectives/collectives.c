/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/collectives/collectives.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/collectives/buckets.h"
#include "worker/library/runtime/collectives/collective_queue.h"
#include "worker/library/runtime/replica/collective_list.h"
#include "worker/library/runtime/strategy/strategy.h"

void collectives_close(cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        cadre_replica *replica = &strategy->replicas[i];
        CADRE_ASSERT(atomic_load(&replica->doing) == REPLICA_AWAY);
        buckets_free(replica);
        collective_queue_close(replica);
        collective_list_free(&replica->list);
    }
}
