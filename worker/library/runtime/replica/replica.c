/* SPDX-License-Identifier: Apache-2.0
 * What a replica function can read of its replica. */
#include "cadre/replica.h"
#include "worker/library/runtime/replica/step_admission.h"

#include "worker/library/runtime/strategy/strategy.h"

uint32_t cadre_replica_id(const cadre_replica *replica)
{
    return replica == NULL ? 0 : replica->id;
}

uint32_t cadre_replica_count(const cadre_replica *replica)
{
    return replica == NULL ? 0 : replica->strategy->replica_count;
}

uint32_t cadre_replica_local_id(const cadre_replica *replica)
{
    return replica == NULL ? 0 : replica->local;
}

int64_t cadre_replica_global_rows(const cadre_replica *replica)
{
    return replica == NULL ? 0 : replica->strategy->step.global_rows;
}

uint32_t cadre_replica_input_count(const cadre_replica *replica)
{
    return replica == NULL ? 0 : replica->strategy->step.input_count;
}

cadre_strategy *cadre_replica_strategy(const cadre_replica *replica)
{
    return replica == NULL ? NULL : replica->strategy;
}

const char *cadre_replica_device(const cadre_replica *replica)
{
    return replica == NULL ? "" : replica->strategy->devices.names[replica->local];
}
