/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/replica/replica_pool.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/replica/step_admission.h"

struct each {
    cadre_strategy *strategy;
    strategy_function function;
    void *user;
};

static void call_one(uint32_t local, void *user)
{
    struct each *each = user;
    CADRE_ASSERT(local < each->strategy->local_replicas);
    cadre_replica *replica = &each->strategy->replicas[local];
    replica->error = (struct cadre_error){0};
    replica->status = each->function(each->strategy, local, each->user, &replica->error);
    if (replica->status != CADRE_OK && replica->status != CADRE_INVALID_ARGUMENT) {
        each->strategy->mesh->ops->abort(each->strategy->mesh, replica->error.text);
    }
}

cadre_status strategy_each_replica(
    cadre_strategy *strategy, strategy_function function, void *user, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->pool != NULL);
    CADRE_ASSERT(context_replica() == NULL);
    struct each each = {.strategy = strategy, .function = function, .user = user};
    replica_pool_run(strategy->pool, call_one, &each);
    const cadre_replica *worst = NULL;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        const cadre_replica *replica = &strategy->replicas[i];
        bool worse =
            worst == NULL || (worst->status == CADRE_ABORTED && replica->status != CADRE_ABORTED);
        if (replica->status != CADRE_OK && worse) {
            worst = replica;
        }
    }
    return worst == NULL ? CADRE_OK
                         : cadre_error_set(error, worst->status, "%s", worst->error.text);
}
