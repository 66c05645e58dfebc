/* SPDX-License-Identifier: Apache-2.0
 * What GPUs a host has, which of them its tasks get, and why not the others. The question is put to
 * a child, cadre-devices: a driver's fault is a reason shown to people, and whoever asks may fork
 * afterwards. */
#ifndef CADRE_WORKER_PROBE_HOST_GPUS_H
#define CADRE_WORKER_PROBE_HOST_GPUS_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/error.h"
#include "common/model/gpus.h"

#define HOST_GPUS_ALL UINT32_MAX

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

struct host_gpus_search {
    uint32_t wanted;          /* tasks get at most so many; HOST_GPUS_ALL, 0: nobody is asked */
    const char *program;      /* cadre-devices; NULL: CADRE_DEVICES_PROGRAM, else beside our own */
    char *const *environment; /* of the child */
    uint64_t timeout_us;
    const char *pci_folder;
    bool change_user; /* the child runs as tasks do */
    uid_t uid;
    gid_t gid;
};

/* "all", "none" or a number up to LIMIT_GPUS_PER_WORKER. INVALID_ARGUMENT names the option. */
cadre_status host_gpus_wanted(const char *text, uint32_t *ret_wanted, struct cadre_error *error);

/* Asks, and waits for at most timeout_us and a moment. Never fails: what went wrong is the reason.
 */
void host_gpus_find(const struct host_gpus_search *search, struct host_gpus *ret_gpus);

/* The same as the coordinator is told it; `devices` has LIMIT_GPUS_PER_WORKER entries, which point
 * into `gpus`. */
struct gpus host_gpus_view(const struct host_gpus *gpus, struct gpu devices[]);

/* Adds what is on the bus and not among the devices yet, with why it is of no use. `visible`:
 * CUDA_VISIBLE_DEVICES is set. */
void host_gpus_add_bus(struct host_gpus *gpus, const char *pci_folder, bool visible);

/* Tasks get at most so many; says so of the others. */
void host_gpus_limit(struct host_gpus *gpus, uint32_t wanted);

#endif
