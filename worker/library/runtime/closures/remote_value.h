/* SPDX-License-Identifier: Apache-2.0
 * A closure on the chief, from its schedule to its result: one object is both what the queue holds
 * and what the program fetches. References: the scheduler's until it is done, the program's until
 * it is released, also after the strategy's end. */
#ifndef CADRE_RUNTIME_CLOSURES_REMOTE_VALUE_H
#define CADRE_RUNTIME_CLOSURES_REMOTE_VALUE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cadre/cluster_coordinator.h"
#include "common/base/error.h"
#include "worker/library/ps/closure_queue.h"
#include "worker/library/runtime/closures/closure_wire.h"
#include "worker/library/runtime/closures/closure_registry.h"

struct scheduler;

struct cadre_remote_value {
    struct closure closure; /* first: the queue's */
    atomic_uint references;
    uint64_t number;
    uint64_t step; /* of the ledger, in which it was scheduled */
    const struct registration *function;
    const struct scheduler *scheduler; /* only compared: the scheduler it belongs to */
    struct wire_item *arguments;       /* [argument_count], tensors retained; NULL once done */
    uint32_t argument_count;
    /* Written once, before `ready`. */
    atomic_bool ready;
    cadre_status code;
    char *text; /* of a failure; NULL: there was no memory for it */
    cadre_tensor **outputs;
    uint32_t output_count;
    uint32_t waiting; /* threads in remote_value_wait */
};

static inline cadre_remote_value *remote_value_of(struct closure *closure)
{
    return (cadre_remote_value *)closure;
}

/* One reference; `arguments` were checked, and their tensors are retained. */
cadre_status remote_value_new(const struct registration *function,
    const cadre_closure_argument *arguments, uint32_t argument_count,
    cadre_remote_value **ret_value, struct cadre_error *error);
/* Adds a reference. */
void remote_value_retain(cadre_remote_value *value);
/* Drops a reference; the last one frees the value. */
void remote_value_release(cadre_remote_value *value);

/* Sets its result, once. The value owns the outputs and their array afterwards. */
void remote_value_succeed(cadre_remote_value *value, cadre_tensor **outputs, uint32_t output_count);
/* Sets its failure, once; the message is copied. */
void remote_value_fail(cadre_remote_value *value, const struct cadre_error *error);

/* Returns its failure again, after remote_value_fail. */
cadre_status remote_value_error(const cadre_remote_value *value, struct cadre_error *error);

/* Waits at most a second; true: it is ready. */
bool remote_value_wait(cadre_remote_value *value);

#endif
