/* SPDX-License-Identifier: Apache-2.0
 * Finds the GPUs that this host's tasks get. A child, cadre-devices, loads the driver: its fault
 * is a reason shown to people, and the caller may fork afterwards. */
#ifndef CADRE_WORKER_PROBE_FIND_GPUS_H
#define CADRE_WORKER_PROBE_FIND_GPUS_H

#include <sys/types.h>

#include "common/base/error.h"
#include "common/gpus/host_gpus.h"

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

#endif
