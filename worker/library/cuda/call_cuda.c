/* SPDX-License-Identifier: Apache-2.0
 * Entering and leaving a device around a call to CUDA, and its errors. All files of the plugin use
 * it. */
#include "worker/library/cuda/call_cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "worker/library/device/device_ops.h"

static cadre_status code_of(cudaError_t result)
{
    switch (result) {
    case cudaErrorMemoryAllocation:
        return CADRE_RESOURCE_EXHAUSTED;
    case cudaErrorInvalidDevice:
    case cudaErrorInvalidValue:
        return CADRE_INVALID_ARGUMENT;
    default:
        return CADRE_INTERNAL;
    }
}

/* Whether it is not of the call that returned it: a kernel that was launched before failed so, and
 * every call that follows returns it. */
static bool is_of_a_kernel(cudaError_t result)
{
    switch (result) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
        return true;
    default:
        return false;
    }
}

void cuda_forget(cudaError_t result)
{
    if (result != cudaSuccess && cudaPeekAtLastError() == result) {
        (void)cudaGetLastError();
    }
}

cadre_status cuda_fail(
    struct cadre_error *error, cudaError_t result, uint32_t device, const char *format, ...)
{
    char what[CADRE_ERROR_TEXT_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    cuda_forget(result);
    return cadre_error_set(error, code_of(result), "GPU %u: %s%s: %s: %s", device,
        length < 0 ? "?" : what, is_of_a_kernel(result) ? " (a kernel launched before failed)" : "",
        cudaGetErrorName(result), cudaGetErrorString(result));
}

/* cuCtxGetCurrent of the driver that the runtime has opened; NULL where there is none. */
static int (*current_context)(void **ret_context);
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_current_context(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    void *symbol = driver != NULL ? dlsym(driver, "cuCtxGetCurrent") : NULL;
    memcpy(&current_context, &symbol, sizeof symbol); /* C has no cast from an object to a function
                                                       */
    (void)dlerror();
}

static bool thread_has_context(void)
{
    void *context = NULL;
    (void)pthread_once(&once, find_current_context);
    return current_context == NULL || (current_context(&context) == 0 && context != NULL);
}

cadre_status cuda_enter(uint32_t device, struct cuda_scope *ret_scope, struct cadre_error *error)
{
    *ret_scope = (struct cuda_scope){.changed = false};
    if (device >= DEVICES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "there is no GPU %u: a process has at most %d", device, DEVICES_MAX);
    }
    cudaError_t result = cudaGetDevice(&ret_scope->before);
    if (result == cudaSuccess && (uint32_t)ret_scope->before != device) {
        bool put_back = thread_has_context();
        result = cudaSetDevice((int)device);
        ret_scope->changed = result == cudaSuccess && put_back;
    }
    if (result != cudaSuccess) {
        return cuda_fail(error, result, device, "it cannot be made the current device");
    }
    ret_scope->mode = cudaStreamCaptureModeRelaxed;
    result = cudaThreadExchangeStreamCaptureMode(&ret_scope->mode);
    ret_scope->relaxed = result == cudaSuccess;
    cuda_forget(result);
    return CADRE_OK;
}

void cuda_leave(const struct cuda_scope *scope)
{
    if (scope->relaxed) {
        enum cudaStreamCaptureMode mode = scope->mode;
        cuda_forget(cudaThreadExchangeStreamCaptureMode(&mode));
    }
    if (scope->changed) {
        cudaError_t result = cudaSetDevice(scope->before);
        if (result != cudaSuccess) {
            cuda_forget(result); /* a lost device returns its error at its next call */
        }
    }
}
