/* SPDX-License-Identifier: Apache-2.0
 * Datasets and resources that each worker has its own of, as the chief knows them: by number. A
 * worker that comes is told to make all of them, in order, before its first closure; what fails in
 * it the worker keeps, and says when a closure uses it. */
#ifndef CADRE_RUNTIME_CLOSURES_PER_WORKER_H
#define CADRE_RUNTIME_CLOSURES_PER_WORKER_H

#include <stdint.h>

#include "cadre/cluster_coordinator.h"
#include "worker/library/runtime/closures/closure_registry.h"

struct cadre_per_worker {
    uint64_t number; /* from 1; also its place in the scheduler's list */
    const struct registration *made_of;
};

#endif
