/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: the number of devices, their names, the thread's current one and its
 * last error. */
#include "tests/gpu/standin/cudart/cudart_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MULTIPROCESSORS 4
#define SHARED_BYTES    49152

pthread_mutex_t standin_mutex = PTHREAD_MUTEX_INITIALIZER;

static struct standin_device devices[STANDIN_DEVICES_MAX];
static int visible[STANDIN_DEVICES_MAX];
static int visible_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread int current;
static __thread cudaError_t last_error;

static void write_uuid(int number, char ret_text[48])
{
    snprintf(ret_text, 48, "GPU-57a2d100-0000-4000-8000-%012x", (unsigned int)number);
}

/* One entry of CUDA_VISIBLE_DEVICES: a number, or the beginning of a UUID. -1: no such device. */
static int find(const char *entry, size_t bytes, int count)
{
    char *end = NULL;
    long number = strtol(entry, &end, 10);
    if (end == entry + bytes && bytes > 0) {
        return number >= 0 && number < count ? (int)number : -1;
    }
    for (int i = 0; i < count; i++) {
        char uuid[48];
        write_uuid(i, uuid);
        if (bytes > 4 && strncmp(uuid, entry, bytes) == 0) {
            return i;
        }
    }
    return -1;
}

static size_t parse_memory(void)
{
    const char *text = getenv("CADRE_STANDIN_MEMORY");
    char *end = NULL;
    size_t bytes = text != NULL ? strtoull(text, &end, 10) : 0;
    if (bytes == 0) {
        return (size_t)1 << 30;
    }
    return *end == 'K'   ? bytes << 10
           : *end == 'M' ? bytes << 20
           : *end == 'G' ? bytes << 30
                         : bytes;
}

static void start(void)
{
    const char *text = getenv("CADRE_STANDIN_DEVICES");
    long count = text != NULL ? strtol(text, NULL, 10) : 2;
    count = count < 0 ? 0 : count > STANDIN_DEVICES_MAX ? STANDIN_DEVICES_MAX : count;
    size_t memory = parse_memory();
    for (int i = 0; i < count; i++) {
        devices[i] = (struct standin_device){.number = i, .fd = -1, .capacity = memory};
    }
    const char *shown = getenv("CUDA_VISIBLE_DEVICES");
    for (int i = 0; shown == NULL && i < count; i++) {
        visible[visible_count++] = i;
    }
    while (shown != NULL && visible_count < STANDIN_DEVICES_MAX) {
        size_t bytes = strcspn(shown, ",");
        int device = find(shown, bytes, (int)count);
        if (device < 0) { /* as CUDA: this one and all after it are not there */
            break;
        }
        visible[visible_count++] = device;
        shown = shown[bytes] == ',' ? shown + bytes + 1 : NULL;
    }
    for (int i = 0; i < visible_count; i++) {
        devices[visible[i]].pool.device = i;
    }
}

int standin_device_count(void)
{
    pthread_once(&once, start);
    return visible_count;
}

struct standin_device *standin_device_at(int device)
{
    return device >= 0 && device < standin_device_count() ? &devices[visible[device]] : NULL;
}

int standin_device_index(const struct standin_device *device)
{
    return device->pool.device;
}

struct standin_device *standin_device_current(void)
{
    return standin_device_at(current);
}

cudaError_t standin_remember(cudaError_t error)
{
    if (error != cudaSuccess) {
        last_error = error;
    }
    return error;
}

cudaError_t standin_begin(int fault, const struct standin_device *device)
{
    if (fault != 0) {
        return (cudaError_t)fault;
    }
    if (device == NULL) {
        return standin_device_count() == 0 ? cudaErrorNoDevice : cudaErrorInvalidDevice;
    }
    pthread_mutex_lock(&standin_mutex);
    cudaError_t error = device->error;
    pthread_mutex_unlock(&standin_mutex);
    return error;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = cudaPeekAtLastError();
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    const struct standin_device *device = standin_device_current();
    cudaError_t stays = device != NULL ? standin_begin(0, device) : cudaSuccess;
    return stays != cudaSuccess ? stays : last_error;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    STANDIN_CALL("cudaGetDeviceCount");
    if (standin_fault != 0) {
        return standin_remember((cudaError_t)standin_fault);
    }
    *count = standin_device_count();
    return standin_remember(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return standin_remember(standin_device_count() == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
    STANDIN_CALL("cudaSetDevice");
    cudaError_t error = standin_begin(standin_fault, standin_device_at(device));
    if (standin_device_at(device) != NULL && standin_fault == 0) {
        current = device;
    }
    return standin_remember(error);
}

cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
    STANDIN_CALL("cudaInitDevice");
    (void)deviceFlags;
    (void)flags;
    return standin_remember(standin_begin(standin_fault, standin_device_at(device)));
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    (void)flags;
    return cudaSuccess;
}

static void fill_properties(const struct standin_device *asked, struct cudaDeviceProp *prop)
{
    *prop = (struct cudaDeviceProp){.totalGlobalMem = asked->capacity,
        .sharedMemPerBlock = SHARED_BYTES,
        .sharedMemPerBlockOptin = SHARED_BYTES,
        .sharedMemPerMultiprocessor = SHARED_BYTES,
        .regsPerBlock = 65536,
        .warpSize = 32,
        .maxThreadsPerBlock = 1024,
        .maxThreadsDim = {1024, 1024, 64},
        .maxGridSize = {2147483647, 65535, 65535},
        .major = 9,
        .multiProcessorCount = MULTIPROCESSORS,
        .maxThreadsPerMultiProcessor = 2048,
        .canMapHostMemory = 1,
        .concurrentKernels = 1,
        .pciBusID = asked->number + 1,
        .asyncEngineCount = 1,
        .unifiedAddressing = 1,
        .l2CacheSize = 1 << 20,
        .streamPrioritiesSupported = 1,
        .memoryPoolsSupported = 1};
    snprintf(prop->name, sizeof(prop->name), "stand-in device %d", asked->number);
    static const char head[15] = {
        0x57, (char)0xa2, (char)0xd1, 0, 0, 0, 0x40, 0, (char)0x80, 0, 0, 0, 0, 0, 0};
    memcpy(prop->uuid.bytes, head, sizeof(head));
    prop->uuid.bytes[15] = (char)asked->number;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    STANDIN_CALL("cudaGetDeviceProperties");
    const struct standin_device *asked = standin_device_at(device);
    if (standin_fault != 0 || asked == NULL) {
        return standin_remember(
            standin_fault != 0 ? (cudaError_t)standin_fault : cudaErrorInvalidDevice);
    }
    fill_properties(asked, prop);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    struct cudaDeviceProp prop;
    if (standin_device_at(device) == NULL) {
        return standin_remember(cudaErrorInvalidDevice);
    }
    fill_properties(standin_device_at(device), &prop);
    const struct {
        enum cudaDeviceAttr attr;
        int value;
    } known[] = {{cudaDevAttrMaxThreadsPerBlock, prop.maxThreadsPerBlock},
        {cudaDevAttrMaxBlockDimX, prop.maxThreadsDim[0]},
        {cudaDevAttrMaxGridDimX, prop.maxGridSize[0]},
        {cudaDevAttrMaxSharedMemoryPerBlock, SHARED_BYTES},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, SHARED_BYTES}, {cudaDevAttrWarpSize, 32},
        {cudaDevAttrMaxRegistersPerBlock, prop.regsPerBlock}, {cudaDevAttrClockRate, 1000000},
        {cudaDevAttrMultiProcessorCount, MULTIPROCESSORS}, {cudaDevAttrIntegrated, 0},
        {cudaDevAttrCanMapHostMemory, 1}, {cudaDevAttrConcurrentKernels, 1},
        {cudaDevAttrPciBusId, prop.pciBusID}, {cudaDevAttrPciDeviceId, 0},
        {cudaDevAttrPciDomainId, 0}, {cudaDevAttrL2CacheSize, prop.l2CacheSize},
        {cudaDevAttrMaxThreadsPerMultiProcessor, prop.maxThreadsPerMultiProcessor},
        {cudaDevAttrAsyncEngineCount, 1}, {cudaDevAttrUnifiedAddressing, 1},
        {cudaDevAttrComputeCapabilityMajor, prop.major},
        {cudaDevAttrComputeCapabilityMinor, prop.minor}, {cudaDevAttrManagedMemory, 0},
        {cudaDevAttrPageableMemoryAccess, 0}, {cudaDevAttrCooperativeLaunch, 0},
        {cudaDevAttrHostRegisterSupported, 1}, {cudaDevAttrMemoryPoolsSupported, 1}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].attr == attr) {
            *value = known[i].value;
            return cudaSuccess;
        }
    }
    return standin_remember(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceGetPCIBusId(char *pciBusId, int len, int device)
{
    const struct standin_device *asked = standin_device_at(device);
    if (asked == NULL || len < 13) {
        return standin_remember(asked == NULL ? cudaErrorInvalidDevice : cudaErrorInvalidValue);
    }
    snprintf(pciBusId, (size_t)len, "0000:%02x:00.0", (unsigned int)asked->number + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *pciBusId)
{
    char own[16];
    for (int i = 0; i < standin_device_count(); i++) {
        if (cudaDeviceGetPCIBusId(own, sizeof(own), i) == cudaSuccess &&
            strcmp(own, pciBusId) == 0) {
            *device = i;
            return cudaSuccess;
        }
    }
    return standin_remember(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    *leastPriority = 0;
    *greatestPriority = -5;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *canAccessPeer, int device, int peerDevice)
{
    if (standin_device_at(device) == NULL || standin_device_at(peerDevice) == NULL) {
        return standin_remember(cudaErrorInvalidDevice);
    }
    *canAccessPeer = 0; /* kernels reach their own device only; copies go anywhere */
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peerDevice, unsigned int flags)
{
    (void)peerDevice;
    (void)flags;
    return standin_remember(cudaErrorPeerAccessUnsupported);
}

cudaError_t cudaDeviceSynchronize(void)
{
    STANDIN_CALL("cudaDeviceSynchronize");
    struct standin_device *device = standin_device_current();
    cudaError_t error = standin_begin(standin_fault, device);
    return standin_remember(error != cudaSuccess ? error : standin_device_finish(device));
}

/* Of CUDA's effects here only this: the sticky error is cleared. */
cudaError_t cudaDeviceReset(void)
{
    struct standin_device *device = standin_device_current();
    if (device == NULL) {
        return standin_remember(cudaErrorNoDevice);
    }
    (void)standin_device_finish(device);
    pthread_mutex_lock(&standin_mutex);
    device->error = cudaSuccess;
    pthread_mutex_unlock(&standin_mutex);
    last_error = cudaSuccess;
    return cudaSuccess;
}
