/* SPDX-License-Identifier: Apache-2.0
 * Finding and opening the plugin of devices, for device_count() and for tests of the reasons. */
#ifndef CADRE_WORKER_DEVICE_DEVICE_PLUGIN_H
#define CADRE_WORKER_DEVICE_DEVICE_PLUGIN_H

#include <stdint.h>

#include "worker/library/device/device_ops.h"

#define DEVICE_PLUGIN_FILE  "libcadre-cuda.so"
#define DEVICE_REASON_BYTES 512

/* The settings of one search. */
struct device_search {
    const char *devices;        /* CADRE_DEVICES: "cpu" is none; NULL or anything else: search */
    const char *devices_reason; /* CADRE_DEVICES_REASON: what set "cpu", and why; NULL: not given */
    const char *plugin;     /* CADRE_PLUGIN: the file to open, in any case; NULL or "": search */
    const char *driver;     /* the driver's library, without which there is no search */
    const char *pci_folder; /* for the reason, when it is missing: is there a GPU without a
                             * driver */
    const char *const *folders; /* to search, in this order; ends with NULL */
};

/* The result of a search. */
struct device_found {
    const struct device_ops *ops;     /* NULL: none that can be used */
    uint32_t count;                   /* of its devices, at most DEVICES_MAX; 0 without */
    char reason[DEVICE_REASON_BYTES]; /* of 0: why, as a clause without a full stop; else "" */
};

/* Searches and opens. What was opened stays open, because its threads and handlers may. */
void device_plugin_find(const struct device_search *search, struct device_found *ret_found);

#endif
