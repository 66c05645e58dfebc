/* SPDX-License-Identifier: Apache-2.0
 * GPUs: replicas whose tensors, batches, variables and collectives are in the memory of a CUDA
 * device. No CUDA header is needed here, and no CUDA library on a host without a GPU: what touches
 * the device is in a plugin, libcadre-cuda.so, that is opened at run time.
 *
 *     cadre_enable_gpus();                              my step has kernels
 *     CADRE_CHECK(cadre_strategy_default(&strategy));   a replica on each GPU, else the CPU
 *
 *     static cadre_status step(cadre_replica *replica, cadre_tensor *const inputs[], ...)
 *     {
 *         cudaStream_t stream = cadre_replica_stream(replica);   NULL: this replica is on the CPU
 *         forward<<<grid, block, 0, stream>>>(cadre_tensor_const_data(inputs[0]), ...);
 *         CADRE_TRY(cadre_all_reduce(replica, CADRE_MEAN, gradients, count, NULL));
 *         return cadre_on_apply(replica, update, model);         update<<<..., stream>>>
 *     }
 *
 * One order: everything that Cadre does for a replica on a GPU is done in the order of its stream,
 * as a kernel launched on it is, and only calls that are documented to wait for the GPU do.
 * cadre_run waits once for each step, at its end: a step counts only when all replicas' work of it
 * is done without an error; what cadre_on_apply's functions launch goes on into the next step. A
 * program that uses streams of its own lets them wait for the replica's, and the replica's for
 * them, before the function returns (cudaStreamWaitEvent). The replica's device is the thread's
 * current one; the thread that calls cadre_run is left with that of local replica 0.
 *
 * Kernels may be captured from the replica's stream into a CUDA graph, which is launched as a
 * kernel is. Between the capture's begin and its end no call of Cadre's is made for the replica:
 * one that needs its stream gives FAILED_PRECONDITION, and tensors on the GPU that are released
 * then keep their memory. A replica on a GPU that shares its process with others should launch a
 * graph of NCCL's calls only as NCCL's own documents allow.
 *
 * A kernel that fails fails the step, in CUDA's words. After most such errors (an illegal address)
 * CUDA takes no more work of the process: then the failure is final, also by hand, and what is left
 * is the newest checkpoint. A launch that CUDA refuses (a grid of no blocks) never was a kernel:
 * only the program can detect it, by cudaGetLastError behind the launch. What functions of
 * cadre_on_apply launch and fails comes out of the next step, or of cadre_finish. A kernel that
 * does not end, when a step is given up for another reason, ends the process after 10 s (SIGKILL,
 * with a line that says so), since nothing else can end it; under a daemon the task is started
 * again. One that the others wait for in a collective is named after 5 s and replaced after 10 min,
 * as a task that makes no progress (`--slow-after`, `--stall-timeout` of cadre-coordinator); in a
 * job of one task nothing ends it.
 *
 * A replica may have further GPUs (cadre/logical_device.h).
 *
 * On a GPU are: batches (but strings, and those of datasets with keep_on_host), mirrored variables
 * (but strings, and those with keep_on_host), and what is created by cadre_tensor_create_on. Sums
 * of them go through NCCL when every replica of the job has a GPU of its own and NCCL is there;
 * else through the memory of the host, and a warning says why. */
#ifndef CADRE_GPU_H
#define CADRE_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/replica.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Says that the program's replica functions can run on a GPU: strategies that are made from now on
 * without a list of devices take all GPUs that this process may use (CUDA_VISIBLE_DEVICES,
 * `--gpus`), and the CPU where there are none. Without it they take the CPU, since a function in C
 * cannot follow a pointer into a GPU's memory (one that does is killed, by SIGSEGV); devices named
 * as "GPU:0" are taken either way.
 * Between cadre_init and the first strategy, else FAILED_PRECONDITION.
 * (In tf.distribute a GPU is the default of every strategy.) */
CADRE_API cadre_status cadre_enable_gpus(void);

/* GPUs that this process can use; 0: *ret_reason (may be NULL) is a sentence that says why, else it
 * is ""; valid for ever. Any context. (tf.config.list_physical_devices("GPU").) */
CADRE_API uint32_t cadre_gpu_count(const char **ret_reason);

/* --- replica context; `replica` as in cadre/replica.h --- */

/* The number of its GPU, of those that this process may use; -1 on the CPU, and of NULL. */
CADRE_API int32_t cadre_replica_gpu(const cadre_replica *replica);

/* The stream (cudaStream_t) that its work is ordered by; NULL on the CPU, and of NULL. Valid as
 * long as the strategy. In functions of cadre_on_apply it is the same. */
CADRE_API void *cadre_replica_stream(const cadre_replica *replica);

/* Waits until all that is on the replica's stream is done, on those of its other logical devices,
 * and what it has started of collectives: for a program that reads a result in the middle of a
 * step. INTERNAL: how the work failed, in
 * CUDA's words; ABORTED and others when peers are lost meanwhile. At once on the CPU.
 * (cudaStreamSynchronize, which would wait for a lost peer for ever.) */
CADRE_API cadre_status cadre_replica_synchronize(cadre_replica *replica);

/* A tensor of zeros in the replica's memory: its GPU's, or the host's. Errors as of
 * cadre_tensor_create; INVALID_ARGUMENT for strings on a GPU. */
CADRE_API cadre_status cadre_tensor_create_on(cadre_replica *replica, cadre_dtype dtype,
    uint32_t rank, const int64_t *dims, cadre_tensor **ret_tensor);

/* A copy of `tensor` in the replica's memory, wherever it is; in the order of the replica's stream,
 * so `tensor` is not written to before the replica has waited. */
CADRE_API cadre_status cadre_tensor_copy_to(
    cadre_replica *replica, const cadre_tensor *tensor, cadre_tensor **ret_tensor);

/* The NCCL communicator (ncclComm_t) of the replicas of this generation, of which this one is rank
 * cadre_replica_id: for programs that call NCCL themselves, on the replica's stream. Replicas make
 * the same calls in the same order; calls of Cadre's may stand between them, not started ones.
 * Before the call the step is admitted, as before a collective. It is a non-blocking one: a call
 * may return ncclInProgress, which is no failure. It is good until the replica's function returns,
 * but it is aborted 2 s after a peer was lost, and another one in the next attempt: do not keep it,
 * nor end it. Of further GPUs: cadre_logical_nccl_comm. FAILED_PRECONDITION, with the
 * reason: the job has none. */
CADRE_API cadre_status cadre_replica_nccl_comm(cadre_replica *replica, void **ret_comm);

/* --- any context --- */

/* A copy in the memory of the host; waits until it is there. */
CADRE_API cadre_status cadre_tensor_copy_to_host(
    const cadre_tensor *tensor, cadre_tensor **ret_tensor);

#ifdef __cplusplus
}
#endif
#endif
