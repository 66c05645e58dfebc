/* SPDX-License-Identifier: Apache-2.0
 * The GPUs of a host that runs tasks: what hellos report of them, and the share of each slot. */
#ifndef CADRE_WORKER_PROBE_SLOT_GPUS_H
#define CADRE_WORKER_PROBE_SLOT_GPUS_H

#include "worker/host/probe/find_gpus.h"

struct slot_gpus {
    struct host_gpus host;
    struct gpu devices[LIMIT_GPUS_PER_WORKER];
    struct gpus reported; /* points into the two above */
    /* CUDA_VISIBLE_DEVICES by slot; "" where there is none. */
    char **shares;
};

/* Finds the GPUs (host_gpus_find) and divides them. The caller closes *ret_gpus.
 * RESOURCE_EXHAUSTED is the only error: any other failure is a reason why no GPU is used. */
cadre_status slot_gpus_open(const struct host_gpus_search *search, uint32_t slots,
    struct slot_gpus **ret_gpus, struct cadre_error *error);
/* Frees it; NULL is allowed. */
void slot_gpus_close(struct slot_gpus *gpus);

/* CUDA_VISIBLE_DEVICES of the slots, `slots` texts in one block to be freed with free(): slot k has
 * the GPUs of gpus_of_slot(). NULL: out of memory. */
char **slot_gpus_divide(const struct host_gpus *gpus, uint32_t slots);

/* "8 x NVIDIA H200", "7 x NVIDIA H200 and 1 other"; "none". */
void slot_gpus_summary(const struct host_gpus *gpus, char ret_text[LIMIT_TEXT_BYTES]);

#endif
