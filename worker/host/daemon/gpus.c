/* SPDX-License-Identifier: Apache-2.0
 * The GPUs of this host, found once by worker/host/probe, before anything else of the daemon
 * runs. */
#include <unistd.h>

#include "worker/host/daemon/daemon.h"
#include "common/gpus/pci_gpus.h"
#include "worker/host/probe/slot_gpus.h"

static void log_gpus(const struct daemon *daemon, uint32_t wanted)
{
    const struct host_gpus *host = &daemon->gpus->host;
    uint32_t slots = (uint32_t)daemon->options.slots;
    char summary[LIMIT_TEXT_BYTES];
    slot_gpus_summary(host, summary);
    bool all = host->usable > 0 && (wanted == HOST_GPUS_ALL || host->usable == wanted);
    if (all) {
        log_event(LOG_LEVEL_INFO, "gpus", "tasks get GPUs", LOG_STR("gpus", summary),
            LOG_U64("per_slot", gpus_per_slot(host->usable, slots)),
            LOG_STR("driver", host->driver), LOG_U64("nccl", host->nccl));
    } else {
        /* A warning where tasks get fewer GPUs than the host has and they were not excluded. */
        log_event(host->count > 0 && wanted > 0 ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "gpus",
            host->usable > 0 ? "tasks get fewer GPUs" : "tasks get no GPU",
            LOG_STR("gpus", summary), LOG_STR("reason", host->reason),
            LOG_U64("unused", host->count - host->usable));
    }
    if (host->usable > 0 && host->usable < slots) {
        log_event(LOG_LEVEL_WARNING, "gpus",
            "there are more slots than GPUs: tasks share them, and exchange data through the host",
            LOG_U64("slots", slots), LOG_U64("gpus", host->usable));
    }
}

cadre_status gpus_open(struct daemon *daemon, struct cadre_error *error)
{
    uint32_t wanted = 0;
    CADRE_TRY(host_gpus_parse_count(daemon->options.gpus, &wanted, error));
    const struct host_gpus_search search = {.wanted = wanted,
        .environment = environ,
        .timeout_us = daemon->options.gpu_timeout_us,
        .pci_folder = PCI_FOLDER,
        .change_user = daemon->change_user,
        .uid = daemon->uid,
        .gid = daemon->gid};
    CADRE_TRY(slot_gpus_open(&search, (uint32_t)daemon->options.slots, &daemon->gpus, error));
    log_gpus(daemon, wanted);
    return CADRE_OK;
}
