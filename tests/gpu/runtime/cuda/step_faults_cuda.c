/* SPDX-License-Identifier: Apache-2.0
 * On a GPU: a kernel with a wild address, and a function on the stream that waits. */
#include "tests/gpu/runtime/step_faults.h"

#include <semaphore.h>
#include <stdlib.h>

#include <cuda_runtime_api.h>

#include "tests/gpu/runtime/step_kernels.h"

static sem_t released; /* of the one stream that is held */

void step_fault_kernel(void)
{
    step_kernel_wild();
}

bool step_fault_heal(void)
{
    return false;
}

static void wait_forever(void *user)
{
    (void)user;
    while (sem_wait(&released) != 0) {
    }
}

void step_fault_hold(void *stream)
{
    if (sem_init(&released, 0, 0) != 0 ||
        cudaLaunchHostFunc((cudaStream_t)stream, wait_forever, NULL) != cudaSuccess) {
        abort();
    }
}

void step_fault_release(void *stream)
{
    (void)stream;
    sem_post(&released);
}
