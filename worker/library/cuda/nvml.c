/* SPDX-License-Identifier: Apache-2.0
 * See nvml.h. NVML comes with the driver and is opened, never linked; its interface is that of the
 * NVML API Reference Guide. */
#include "worker/library/cuda/nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libnvidia-ml.so.1"

struct nvml_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct nvml_utilization {
    unsigned gpu;    /* percent of the time */
    unsigned memory; /* the same, of its memory's interface: of no interest here */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int (*by_uuid)(const char *uuid, void **ret_device);
static int (*memory_info)(void *device, struct nvml_memory *ret_memory);
static int (*utilization_rates)(void *device, struct nvml_utilization *ret_rates); /* may be NULL */
static char absence[256]; /* why memory_info is NULL */

static bool nvml_find(void *library, const char *name, void *ret_function)
{
    void *symbol = dlsym(library, name);
    memcpy(ret_function, &symbol, sizeof symbol); /* C has no cast from an object to a function */
    return symbol != NULL;
}

static void open_library(void)
{
    int (*start)(void) = NULL;
    int (*memory)(void *, struct nvml_memory *) = NULL;
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *message = dlerror();
        snprintf(absence, sizeof absence, "%s", message != NULL ? message : LIBRARY);
    } else if (!nvml_find(library, "nvmlInit_v2", (void *)&start) ||
               !nvml_find(library, "nvmlDeviceGetMemoryInfo", (void *)&memory) ||
               !nvml_find(library, "nvmlDeviceGetHandleByUUID", (void *)&by_uuid)) {
        snprintf(absence, sizeof absence, LIBRARY " lacks a function that is used");
    } else {
        int result = start();
        if (result == 0) {
            memory_info = memory;
            (void)nvml_find(library, "nvmlDeviceGetUtilizationRates", (void *)&utilization_rates);
        } else {
            snprintf(absence, sizeof absence, "nvmlInit_v2 of " LIBRARY " returns %d", result);
        }
    }
    (void)dlerror();
}

bool nvml_is_there(char ret_reason[256])
{
    pthread_once(&once, open_library);
    memcpy(ret_reason, absence, sizeof absence);
    return memory_info != NULL;
}

bool nvml_has(const char *name)
{
    void *device = NULL;
    pthread_once(&once, open_library);
    return memory_info != NULL && by_uuid(name, &device) == 0;
}

void nvml_use_of(const char *name, struct nvml_use *ret_use)
{
    void *device = NULL;
    struct nvml_memory memory = {.used = 0};
    struct nvml_utilization rates = {.gpu = 0};
    *ret_use = (struct nvml_use){.has_percent = false};
    pthread_once(&once, open_library);
    if (memory_info == NULL || by_uuid(name, &device) != 0) {
        return;
    }
    if (memory_info(device, &memory) == 0 && memory.used <= INT64_MAX) {
        ret_use->has_memory = true;
        ret_use->memory_bytes = memory.used;
    }
    if (utilization_rates != NULL && utilization_rates(device, &rates) == 0 && rates.gpu <= 100) {
        ret_use->has_percent = true;
        ret_use->percent = rates.gpu;
    }
}

bool nvml_memory_free(const char *kind, const char *uuid, uint64_t *ret_bytes)
{
    char name[96];
    void *device = NULL;
    struct nvml_memory memory = {.free = 0};
    pthread_once(&once, open_library);
    snprintf(name, sizeof name, "%s%s", kind, uuid);
    if (memory_info == NULL || by_uuid(name, &device) != 0 || memory_info(device, &memory) != 0) {
        return false;
    }
    *ret_bytes = memory.free;
    return true;
}
