/* SPDX-License-Identifier: Apache-2.0
 * See nvml.h. NVML comes with the driver and is opened, never linked; its interface is that of the
 * NVML API Reference Guide. */
#include "worker/library/cuda/nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct nvml_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int (*by_uuid)(const char *uuid, void **ret_device);
static int (*memory_info)(void *device, struct nvml_memory *ret_memory);

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
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library != NULL && nvml_find(library, "nvmlInit_v2", (void *)&start) &&
        nvml_find(library, "nvmlDeviceGetMemoryInfo", (void *)&memory) &&
        nvml_find(library, "nvmlDeviceGetHandleByUUID", (void *)&by_uuid) && start() == 0) {
        memory_info = memory;
    }
    (void)dlerror();
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
