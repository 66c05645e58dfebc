/* SPDX-License-Identifier: Apache-2.0
 * Counting and describing GPUs, and the versions of driver and runtime, for plugin_cuda.c. */
#include "worker/library/cuda/plugin_cuda.h"

#include <stdio.h>
#include <string.h>

#include "worker/library/cuda/call_cuda.h"
#include "worker/library/cuda/kernel_code.h"
#include "worker/library/cuda/nvml.h"

#define REASON_BYTES 256
#define VERSION_FILE "/proc/driver/nvidia/version"

/* A version of CUDA's, 13000 for 13.0. */
static int major_of(int version)
{
    return version / 1000;
}

static int minor_of(int version)
{
    return version % 1000 / 10;
}

static void print_no_devices(cudaError_t result, char *ret_reason)
{
    int driver = 0;
    cuda_forget(result);
    if (result != cudaErrorInsufficientDriver) {
        snprintf(ret_reason, REASON_BYTES, "CUDA finds no GPU: %s: %s", cudaGetErrorName(result),
            cudaGetErrorString(result));
    } else if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        snprintf(ret_reason, REASON_BYTES, "CUDA finds no driver of NVIDIA's on this host");
    } else {
        snprintf(ret_reason, REASON_BYTES,
            "the NVIDIA driver is for CUDA %d.%d, older than the CUDA %d.%d of the plugin needs; "
            "install a newer driver",
            major_of(driver), minor_of(driver), major_of(CUDART_VERSION), minor_of(CUDART_VERSION));
    }
}

/* Whether the kernels run on it; `ret_reason` is why not. */
static bool devices_cuda_usable(int device, char *ret_reason)
{
    int major = 0;
    int minor = 0;
    cudaError_t result = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (result == cudaSuccess) {
        result = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    }
    if (result != cudaSuccess) {
        cuda_forget(result);
        snprintf(ret_reason, REASON_BYTES, "GPU %d does not answer: %s: %s", device,
            cudaGetErrorName(result), cudaGetErrorString(result));
        return false;
    }
    if (!kernel_code_runs(CADRE_CUDA_CODE, (uint32_t)major, (uint32_t)minor)) {
        uint32_t least = kernel_code_least(CADRE_CUDA_CODE);
        snprintf(ret_reason, REASON_BYTES,
            "GPU %d has compute capability %d.%d, and the plugin has kernels for %s, from %u.%u "
            "on; leave it out of CUDA_VISIBLE_DEVICES, or build with CMAKE_CUDA_ARCHITECTURES=%d%d",
            device, major, minor, CADRE_CUDA_CODE, least / 10, least % 10, major, minor);
        return false;
    }
    return true;
}

/* Numbers are CUDA's, so the devices are those before the first one that cannot be used. */
uint32_t devices_count(char ret_reason[256])
{
    int count = 0;
    ret_reason[0] = '\0';
    cudaError_t result = cudaGetDeviceCount(&count);
    if (result != cudaSuccess) {
        print_no_devices(result, ret_reason);
        return 0;
    }
    int good = 0;
    while (good < count && good < DEVICES_MAX && devices_cuda_usable(good, ret_reason)) {
        good++;
    }
    if (good > 0) {
        ret_reason[0] = '\0';
    } else if (ret_reason[0] == '\0') {
        snprintf(ret_reason, REASON_BYTES, "CUDA sees no GPU (is CUDA_VISIBLE_DEVICES empty?)");
    }
    return (uint32_t)good;
}

/* Eight, four, four, four and twelve digits. */
static void write_uuid(const cudaUUID_t *uuid, char ret_text[40])
{
    size_t used = 0;
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        used += (size_t)snprintf(
            ret_text + used, 40 - used, "%s%02x", dash, (unsigned char)uuid->bytes[i]);
    }
}

/* NVML accepts either name; without it CUDA is called, which makes a context on the device. */
static void describe_memory(uint32_t device, struct device_info *info, const char *uuid)
{
    static const char *const kinds[] = {"GPU-", "MIG-"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (nvml_memory_free(kinds[i], uuid, &info->memory_free)) {
            snprintf(info->uuid, sizeof info->uuid, "%s%s", kinds[i], uuid);
            return;
        }
    }
    snprintf(info->uuid, sizeof info->uuid, "%s%s", kinds[0], uuid);
    struct cuda_scope scope;
    size_t free_bytes = 0;
    size_t total = 0;
    if (cuda_enter(device, &scope, NULL) == CADRE_OK) {
        cudaError_t result = cudaMemGetInfo(&free_bytes, &total);
        if (result == cudaSuccess) {
            info->memory_free = free_bytes;
        } else {
            cuda_forget(result); /* no room for a context: nothing is free */
        }
        cuda_leave(&scope);
    }
}

cadre_status devices_describe(
    uint32_t device, struct device_info *ret_info, struct cadre_error *error)
{
    *ret_info = (struct device_info){.memory_bytes = 0};
    struct cudaDeviceProp found = {.major = 0};
    int number = device > INT32_MAX ? INT32_MAX : (int)device;
    cudaError_t result = cudaGetDeviceProperties(&found, number);
    if (result == cudaSuccess) {
        result = cudaDeviceGetPCIBusId(ret_info->bus, (int)sizeof ret_info->bus, number);
    }
    if (result != cudaSuccess) {
        return cuda_fail(error, result, device, "it cannot be described");
    }
    char uuid[40] = "";
    write_uuid(&found.uuid, uuid);
    snprintf(
        ret_info->name, sizeof ret_info->name, "%.*s", (int)sizeof ret_info->name - 1, found.name);
    ret_info->memory_bytes = found.totalGlobalMem;
    ret_info->compute_major = (uint32_t)found.major;
    ret_info->compute_minor = (uint32_t)found.minor;
    ret_info->multiprocessors = (uint32_t)found.multiProcessorCount;
    describe_memory(device, ret_info, uuid);
    return CADRE_OK;
}

cadre_status devices_bind(uint32_t device, struct cadre_error *error)
{
    cudaError_t result = cudaSetDevice(device > INT32_MAX ? INT32_MAX : (int)device);
    if (result != cudaSuccess) {
        return cuda_fail(error, result, device, "it cannot be made the thread's current device");
    }
    return CADRE_OK;
}

/* The first word of the file's first line of text that is a number with a dot in it,
 * "580.159.04". */
static void read_version(char *ret_version, size_t size)
{
    char text_line[256] = "";
    FILE *file = fopen(VERSION_FILE, "re");
    if (file == NULL) {
        return;
    }
    char *rest = NULL;
    char *word = fgets(text_line, sizeof text_line, file) != NULL
                     ? strtok_r(text_line, " \t\n", &rest)
                     : NULL;
    fclose(file);
    for (; word != NULL; word = strtok_r(NULL, " \t\n", &rest)) {
        if (strspn(word, "0123456789.") == strlen(word) && strchr(word, '.') != NULL) {
            snprintf(ret_version, size, "%s", word);
            return;
        }
    }
}

void devices_driver(char *ret_driver, size_t driver_bytes, char *ret_runtime, size_t runtime_bytes)
{
    char version[24] = "";
    int supports = 0;
    read_version(version, sizeof version);
    cudaError_t result = cudaDriverGetVersion(&supports);
    if (result != cudaSuccess) {
        cuda_forget(result);
        supports = 0;
    }
    if (supports == 0) {
        snprintf(ret_driver, driver_bytes, "%s%s", version[0] != '\0' ? version : "none",
            version[0] != '\0' ? " (without CUDA)" : "");
    } else {
        snprintf(ret_driver, driver_bytes, "%s (CUDA %d.%d)",
            version[0] != '\0' ? version : "unknown", major_of(supports), minor_of(supports));
    }
    snprintf(ret_runtime, runtime_bytes, "CUDA %d.%d", major_of(CUDART_VERSION),
        minor_of(CUDART_VERSION));
}
