/* SPDX-License-Identifier: Apache-2.0
 * The GPUs that are shared out among the tasks of this cluster, probed with the environment of the
 * tasks. */
#include <stdlib.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "deploy/local/local_state.h"
#include "common/gpus/pci_gpus.h"
#include "worker/host/probe/slot_gpus.h"

#define GPU_TIMEOUT_US (30 * CADRE_US_PER_S)

/* The job's variables first, because of a name that occurs twice the first counts. The list is one
 * block. */
static const char **make_environment(const struct local_options *options)
{
    size_t own = 0;
    size_t count = 0;
    while (environ[own] != NULL) {
        own++;
    }
    const char **items = calloc(options->environment_count + own + 1, sizeof *items);
    for (size_t i = options->environment_count; items != NULL && i > 0; i--) {
        items[count++] = options->environment[i - 1];
    }
    for (size_t i = 0; items != NULL && i < own; i++) {
        items[count++] = environ[i];
    }
    return items;
}

cadre_status local_gpus_open(struct local *local, struct cadre_error *error)
{
    const struct local_options *options = local->options;
    uint32_t wanted = HOST_GPUS_ALL;
    if (options->gpus != NULL) {
        CADRE_TRY(host_gpus_parse_count(options->gpus, &wanted, error));
    }
    CADRE_FREE_AT_EXIT const char **environment = make_environment(options);
    if (environment == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to probe the GPUs");
    }
    const struct host_gpus_search search = {.wanted = wanted,
        .environment = (char *const *)(uintptr_t)environment,
        .timeout_us = GPU_TIMEOUT_US,
        .pci_folder = PCI_FOLDER};
    CADRE_TRY(slot_gpus_open(&search, options->tasks, &local->gpus, error));
    const struct host_gpus *host = &local->gpus->host;
    if (wanted != HOST_GPUS_ALL && wanted > host->usable) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "--gpus %u: this host offers %u%s%.300s; cadre-devices shows what there is", wanted,
            host->usable, host->usable == 0 ? ": " : "", host->usable == 0 ? host->reason : "");
    }
    return CADRE_OK;
}
