/* SPDX-License-Identifier: Apache-2.0
 * The steps of replicas on GPUs (steps_cuda.cu), where the program is built with CUDA: the same
 * model, with the same results but for rounding. The steps of digits.c go there first; nothing else
 * knows of them. */
#ifndef DIGITS_GPU_H
#define DIGITS_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include <cadre/cadre.h>

static inline bool on_gpu(const cadre_replica *replica)
{
    return cadre_replica_stream(replica) != NULL;
}

#ifdef DIGITS_CUDA
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
#else

/* Only a strategy that names GPUs comes here. */
static inline cadre_status gpu_train_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    return cadre_fail(CADRE_UNIMPLEMENTED, "a replica is on %s, and digits was built without CUDA",
        cadre_replica_device(replica));
}
#define gpu_test_step gpu_train_step

#endif
#endif
