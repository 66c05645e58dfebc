/* SPDX-License-Identifier: Apache-2.0
 * One closure on its worker: from the bytes of its arguments to those of its outputs. */
#ifndef CADRE_RUNTIME_CLOSURES_CLOSURE_RUN_H
#define CADRE_RUNTIME_CLOSURES_CLOSURE_RUN_H

#include "worker/library/runtime/closures/closure_inbox.h"
#include "worker/library/runtime/closures/worker_strategy.h"
#include "worker/library/runtime/closures/worker_objects.h"

/* Runs the closure of a START and sends the result. Returns errors of the connection; the closure's
 * own error is sent to the chief. */
cadre_status closure_run(struct worker_strategy *worker, struct closure_inbox *inbox,
    const struct worker_objects *objects, const struct message *start, struct cadre_error *error);

#endif
