/* SPDX-License-Identifier: Apache-2.0
 * Opening and closing a strategy: its parts are opened one after the other, and closed in the
 * opposite order. */
#ifndef CADRE_RUNTIME_STRATEGY_LIFECYCLE_STRATEGY_LIFECYCLE_H
#define CADRE_RUNTIME_STRATEGY_LIFECYCLE_STRATEGY_LIFECYCLE_H

#include "worker/library/runtime/strategy/strategy.h"

/* What a new strategy is made of. `ps_job`: of a ps job's chief, with the session that the strategy
 * takes; it ends with the strategy. */
struct strategy_config {
    enum strategy_kind kind;
    struct device_list devices; /* of its replicas, 1 to LIMIT_REPLICAS_PER_TASK; taken over */
    struct device_list parameter;
    struct ps_job_state *ps_job;
    enum strategy_origin origin;
    const struct environment *environment; /* of its task; borrowed until its end */
    const struct strategy_hooks *const *hook_tables; /* from top to bottom */
    uint32_t hook_table_count;
    struct worker_strategy *worker; /* STRATEGY_OF_WORKER: its worker's; borrowed until its end */
};

/* Makes it and enters the job's first generation; the constructor `function` has it then until
 * `call` is left. The lists and the ps job are taken over, also on error. */
cadre_status strategy_create(struct strategy_config *shape, const char *function,
    struct strategy_call *call, cadre_strategy **ret_strategy, struct cadre_error *error);

/* Ends a strategy that the calling thread has, in a call that is left afterwards. */
void strategy_close(cadre_strategy *strategy);

#endif
