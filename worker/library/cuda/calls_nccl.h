/* SPDX-License-Identifier: Apache-2.0
 * One rank of a communicator, what its failures are called, and the collectives on it. */
#ifndef CADRE_WORKER_CUDA_CALLS_NCCL_H
#define CADRE_WORKER_CUDA_CALLS_NCCL_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/cuda/library_nccl.h"
#include "worker/library/device/device_ops.h"

struct device_comm {
    ncclComm_t nccl;
    uint32_t rank;
    uint32_t world;
    uint32_t device;
    struct cadre_error failure; /* how it failed, for ever; code CADRE_OK: it did not */
};

/* CADRE_OK, CADRE_PENDING, or "NCCL, rank 1 of 2 on GPU 0: <what>: <words>: <last error>". */
cadre_status nccl_status(const struct device_comm *comm, ncclResult_t result, const char *what,
    struct cadre_error *error);

/* The same, and remembers a failure as the communicator's own. */
cadre_status nccl_status_kept(
    struct device_comm *comm, ncclResult_t result, const char *what, struct cadre_error *error);

bool calls_take(cadre_dtype dtype);

cadre_status calls_all_reduce(struct device_comm *comm, enum device_reduction reduction,
    const struct device_vector vectors[], size_t count, void *stream, struct cadre_error *error);
cadre_status calls_reduce_scatter(struct device_comm *comm, enum device_reduction reduction,
    const struct device_vector *part, void *stream, struct cadre_error *error);
cadre_status calls_all_gather(struct device_comm *comm, const void *from, size_t bytes, void *to,
    void *stream, struct cadre_error *error);
cadre_status calls_broadcast(struct device_comm *comm, uint32_t root,
    const struct device_vector vectors[], size_t count, void *stream, struct cadre_error *error);

#endif
