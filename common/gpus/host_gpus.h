/* SPDX-License-Identifier: Apache-2.0
 * The GPUs of a host, which of them its tasks get, and why not the others: the answer of
 * cadre-devices to a program that starts tasks. */
#ifndef CADRE_GPUS_HOST_GPUS_H
#define CADRE_GPUS_HOST_GPUS_H

#include <stdbool.h>

#include "common/model/gpus.h"

struct host_gpu {
    char name[LIMIT_NAME_BYTES];
    char uuid[LIMIT_NAME_BYTES];
    char bus[LIMIT_NAME_BYTES];
    char visible[LIMIT_NAME_BYTES]; /* how CUDA_VISIBLE_DEVICES names it */
    char unused[LIMIT_TEXT_BYTES];  /* "": tasks get it */
    uint64_t memory_bytes;
    uint32_t compute_major;
    uint32_t compute_minor;
};

/* Those that tasks get come first. */
struct host_gpus {
    struct host_gpu devices[LIMIT_GPUS_PER_WORKER];
    uint32_t count;
    uint32_t usable;
    char driver[LIMIT_NAME_BYTES];
    char runtime[LIMIT_NAME_BYTES];
    uint32_t nccl;
    char reason[LIMIT_TEXT_BYTES]; /* a clause without a full stop; "" */
};

/* The same as a message to the coordinator has it; `devices` has LIMIT_GPUS_PER_WORKER entries,
 * which point into `gpus`. */
struct gpus host_gpus_view(const struct host_gpus *gpus, struct gpu devices[]);

/* Adds what is on the bus and not among the devices yet, with the reason why tasks do not get
 * it. `visible`: CUDA_VISIBLE_DEVICES is set. */
void host_gpus_add_bus(struct host_gpus *gpus, const char *pci_folder, bool visible);

#endif
