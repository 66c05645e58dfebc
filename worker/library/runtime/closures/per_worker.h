/* SPDX-License-Identifier: Apache-2.0
 * Datasets and resources that each worker has of its own, on the chief: by number. A worker that
 * connects receives all of them, in order, before its first closure; a failure stays with the
 * worker and is reported by a closure that uses the object. */
#ifndef CADRE_RUNTIME_CLOSURES_PER_WORKER_H
#define CADRE_RUNTIME_CLOSURES_PER_WORKER_H

#include <stdint.h>

#include "cadre/cluster_coordinator.h"
#include "worker/library/runtime/closures/closure_registry.h"

struct cadre_per_worker {
    uint64_t number; /* from 1; its index in the scheduler's list, plus 1 */
    const struct registration *made_of;
};

#endif
