/* SPDX-License-Identifier: Apache-2.0
 * The GPUs of a host that runs tasks: what hellos report of them, and the share of each slot. */
#ifndef CADRE_WORKER_PROBE_SLOT_GPUS_H
#define CADRE_WORKER_PROBE_SLOT_GPUS_H

#include <sys/types.h>

#include "common/base/error.h"
#include "common/gpus/host_gpus.h"

/* Finds the GPUs that this host's tasks get. A child, cadre-devices, loads the driver: its fault
 * is a reason shown to people, and the caller may fork afterwards. */

#define HOST_GPUS_ALL UINT32_MAX

struct host_gpus_search {
    uint32_t wanted;          /* tasks get at most so many; HOST_GPUS_ALL, 0: the child is not
                               * run */
    const char *program;      /* cadre-devices; NULL: CADRE_DEVICES_PROGRAM, else beside our own */
    char *const *environment; /* of the child */
    uint64_t timeout_us;
    const char *pci_folder;
    bool change_user; /* the child runs as tasks do */
    uid_t uid;
    gid_t gid;
};

/* "all", "none" or a number up to LIMIT_GPUS_PER_WORKER. INVALID_ARGUMENT names the option. */
cadre_status host_gpus_parse_count(
    const char *text, uint32_t *ret_count_wanted, struct cadre_error *error);

/* Runs the child, and waits for at most timeout_us and a moment. Never fails: an error is the
 * reason in the result. */
void host_gpus_find(const struct host_gpus_search *search, struct host_gpus *ret_gpus);

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
