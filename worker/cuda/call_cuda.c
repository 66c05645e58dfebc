/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/cuda/call_cuda.h"

#include <stdarg.h>
#include <stdio.h>

#include "worker/device/device_ops.h"

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
 * every call that follows is told. */
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
    if (cudaPeekAtLastError() == result) {
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

cadre_status cuda_enter(uint32_t device, struct cuda_scope *ret_scope, struct cadre_error *error)
{
    *ret_scope = (struct cuda_scope){.changed = false};
    if (device >= DEVICES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "there is no GPU %u: a process has at most %d", device, DEVICES_MAX);
    }
    cudaError_t result = cudaGetDevice(&ret_scope->before);
    if (result == cudaSuccess && (uint32_t)ret_scope->before != device) {
        result = cudaSetDevice((int)device);
        ret_scope->changed = result == cudaSuccess;
    }
    if (result != cudaSuccess) {
        return cuda_fail(error, result, device, "it cannot be made the current device");
    }
    return CADRE_OK;
}

void cuda_leave(const struct cuda_scope *scope)
{
    if (scope->changed) {
        cudaError_t result = cudaSetDevice(scope->before);
        if (result != cudaSuccess) {
            cuda_forget(result); /* a device that is lost says so at its next call */
        }
    }
}
