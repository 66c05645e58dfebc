/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: the part of NVML that this project uses. The file CADRE_STANDIN_NVML
 * has a GPU in each text line, "NAME PERCENT BYTES", with "-" for what NVML does not support of it;
 * it is read at each call, so a test may replace it. Without the variable there is no driver. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Values of NVML's enum. */
enum { NVML_OK = 0, NVML_NOT_SUPPORTED = 3, NVML_NOT_FOUND = 6, NVML_NO_DRIVER = 9 };

#define NAMES_MAX  16
#define NAME_BYTES 96

struct memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct utilization {
    unsigned gpu;
    unsigned memory;
};

/* A handle is one of these: names that were found. */
static char names[NAMES_MAX][NAME_BYTES];

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret_device);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, struct memory *ret_memory);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, struct utilization *ret_rates);

/* Whether the file has a GPU of this name; its two values as text. */
static int nvml_find(const char *name, char ret_percent[32], char ret_bytes[32])
{
    char found[NAME_BYTES];
    int result = NVML_NOT_FOUND;
    FILE *file = fopen(getenv("CADRE_STANDIN_NVML"), "re");
    while (file != NULL && result != NVML_OK &&
           fscanf(file, "%95s %31s %31s", found, ret_percent, ret_bytes) == 3) {
        result = strcmp(found, name) == 0 ? NVML_OK : NVML_NOT_FOUND;
    }
    if (file != NULL) {
        fclose(file);
    }
    return result;
}

/* Of the two values of a device one: NOT_SUPPORTED where it is "-". */
static int nvml_value(const char *name, int which, unsigned long long *ret_value)
{
    char values[2][32];
    int result = nvml_find(name, values[0], values[1]);
    if (result == NVML_OK && strcmp(values[which], "-") == 0) {
        return NVML_NOT_SUPPORTED;
    }
    *ret_value = result == NVML_OK ? strtoull(values[which], NULL, 10) : 0;
    return result;
}

int nvmlInit_v2(void)
{
    return getenv("CADRE_STANDIN_NVML") != NULL ? NVML_OK : NVML_NO_DRIVER;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret_device)
{
    char values[2][32];
    int result = nvml_find(uuid, values[0], values[1]);
    for (size_t i = 0; i < NAMES_MAX && result == NVML_OK; i++) {
        if (names[i][0] == '\0') {
            snprintf(names[i], NAME_BYTES, "%s", uuid);
        }
        if (strcmp(names[i], uuid) == 0) {
            *ret_device = names[i];
            return NVML_OK;
        }
    }
    return result != NVML_OK ? result : NVML_NOT_FOUND;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *ret_memory)
{
    unsigned long long used = 0;
    int result = nvml_value(device, 1, &used);
    *ret_memory = (struct memory){.total = used + 1024, .free = 1024, .used = used};
    return result;
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *ret_rates)
{
    unsigned long long percent = 0;
    int result = nvml_value(device, 0, &percent);
    *ret_rates = (struct utilization){.gpu = (unsigned)percent, .memory = 1};
    return result;
}
