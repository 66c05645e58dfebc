/* SPDX-License-Identifier: Apache-2.0
 * Gradients that are reduced while backward goes on: they are put into buckets in the order in
 * which backward makes them, and a bucket's all-reduce starts when its last gradient is ready.
 * (The buckets of PyTorch's DistributedDataParallel; tf.distribute has bytes_per_pack.)
 *
 *     backward   ── g9 ── g8 ── g7 ── g6 ── g5 ── ...        ── g0 ──┐
 *     all-reduce         [g9 g8]         [g7 g6 g5]                   [...] ── wait ── optimizer
 *
 *     CADRE_TRY(cadre_buckets_begin(replica, CADRE_MEAN, gradients, count, NULL, &buckets));
 *     for (layer = last; layer >= 0; layer--) {
 *         backward(layer);                                   kernels, or C
 *         CADRE_TRY(cadre_buckets_ready(buckets, layer_gradient[layer]));
 *     }
 *     CADRE_TRY(cadre_buckets_wait(buckets));                each gradient is the mean now
 */
#ifndef CADRE_BUCKETS_H
#define CADRE_BUCKETS_H

#include <stddef.h>

#include "cadre/collective.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_BUCKET_FIRST_BYTES ((size_t)1 << 20)  /* small, so that the first one starts early */
#define CADRE_BUCKET_BYTES_GPU   ((size_t)25 << 20) /* where the gradients are on a GPU */
#define CADRE_BUCKET_BYTES_CPU   ((size_t)4 << 20)  /* stays in the cache */

/* How large buckets are, and how each is reduced. Zeroed: the defaults. All replicas give the same.
 */
typedef struct cadre_bucket_options {
    size_t first_bytes;  /* of the first bucket; 0: CADRE_BUCKET_FIRST_BYTES */
    size_t bucket_bytes; /* of each other one; 0: as above. A bucket closes once it is as large */
    cadre_collective_options collective; /* of each bucket's all-reduce */
} cadre_bucket_options;

/* The buckets of one step of one replica, from cadre_buckets_begin to cadre_buckets_wait. */
typedef struct cadre_buckets cadre_buckets;

/* Begins the reduction of a step's gradients, in a replica function. `tensors`: `count` gradients,
 * listed in the order in which backward makes them (or nearly); borrowed until cadre_buckets_wait,
 * and combined in place by `op`. Replicas give the same list and the same options. One at a time of
 * a replica: FAILED_PRECONDITION. Ends with cadre_buckets_wait, or with the replica's function.
 * Errors as of cadre_all_reduce_start. */
CADRE_API cadre_status cadre_buckets_begin(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_bucket_options *options,
    cadre_buckets **ret_buckets);

/* Reports that tensor `index` holds its gradient (on a GPU: in the order of the replica's stream),
 * and is not touched until the wait. Buckets start in the order of the list, so that all replicas
 * start them alike: a full one waits for those before it. INVALID_ARGUMENT: no such tensor, or
 * twice. */
CADRE_API cadre_status cadre_buckets_ready(cadre_buckets *buckets, size_t index);

/* Waits for all buckets: the tensors then hold the results, on a GPU in the order of the stream,
 * and `buckets` is freed. FAILED_PRECONDITION: a tensor was never ready; it names the first. Else
 * as cadre_collective_wait of each. */
CADRE_API cadre_status cadre_buckets_wait(cadre_buckets *buckets);

#ifdef __cplusplus
}
#endif
#endif
