/* SPDX-License-Identifier: Apache-2.0
 * The steps of replicas on GPUs, where the program is built with CUDA (steps_cuda.cu): the same
 * model, with the same results but for rounding. digits.c asks for them first in its own steps;
 * nothing else knows of them. */
#ifndef DIGITS_GPU_H
#define DIGITS_GPU_H

#include <stdbool.h>

#include <cadre/cadre.h>

#ifdef DIGITS_CUDA

static inline bool on_gpu(const cadre_replica *replica)
{
    return cadre_replica_stream(replica) != NULL;
}

#ifdef __cplusplus
extern "C" {
#endif
cadre_status gpu_train_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user);
cadre_status gpu_test_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user);
#ifdef __cplusplus
}
#endif

#else /* every replica is on the CPU, for nothing asks for GPUs */

#define on_gpu(replica)                                false
#define cadre_enable_gpus()                            CADRE_OK
#define gpu_train_step(replica, inputs, outputs, user) CADRE_UNIMPLEMENTED
#define gpu_test_step(replica, inputs, outputs, user)  CADRE_UNIMPLEMENTED

#endif
#endif
