/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/step/apply_function.h"

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/replica/replica_pool.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/hooks.h"
#include "worker/library/runtime/strategy/strategy.h"

static void run_replica(uint32_t local, void *user)
{
    const cadre_strategy *strategy = user;
    cadre_replica *replica = &strategy->replicas[local];
    if (replica->apply.first == NULL) {
        return;
    }
    struct cadre_error ignored; /* a launch that failed is returned by the next step */
    CADRE_ASSERT(replica->apply.count <= APPLY_MAX);
    CADRE_ASSERT(!replica->active);
    hooks_bind(strategy, replica, &ignored);
    context_replica_enter(replica, replica->strategy);
    replica->apply.running = true;
    const struct apply_call *next = NULL;
    for (const struct apply_call *call = replica->apply.first; call != NULL; call = next) {
        next = call->next;
        call->function(replica, call->user);
    }
    replica->apply.running = false;
    context_replica_leave();
}

void apply_run(cadre_strategy *strategy)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        if (strategy->replicas[i].apply.first != NULL) {
            atomic_store(&strategy->step.running, true); /* for other threads it is a step */
            replica_pool_run(strategy->pool, run_replica, strategy);
            atomic_store(&strategy->step.running, false);
            return;
        }
    }
}

void apply_add(cadre_replica *replica, struct apply_call *call)
{
    struct apply_list *list = &replica->apply;
    CADRE_ASSERT(replica->active);
    CADRE_ASSERT(call->function != NULL);
    call->next = NULL;
    if (list->first == NULL) {
        list->first = call;
    } else {
        list->last->next = call;
    }
    list->last = call;
}

static cadre_status apply_function_add(
    cadre_replica *replica, cadre_apply_function function, void *user, struct cadre_error *error)
{
    CADRE_TRY(step_require_own_thread(replica, "cadre_on_apply", error));
    if (function == NULL) {
        return argument_require(NULL, "cadre_on_apply", "function", error);
    }
    if (replica->apply.count == APPLY_MAX) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "cadre_on_apply was called more than %d times in a step; let one function do more",
            APPLY_MAX);
    }
    struct apply_call *call = &replica->apply.calls[replica->apply.count++];
    call->function = function;
    call->user = user;
    apply_add(replica, call);
    return CADRE_OK;
}

cadre_status cadre_on_apply(cadre_replica *replica, cadre_apply_function function, void *user)
{
    struct cadre_error error;
    cadre_status status = apply_function_add(replica, function, user, &error);
    if (status != CADRE_OK) {
        step_record_refusal(replica, &error);
    }
    return api_return(status, &error);
}
