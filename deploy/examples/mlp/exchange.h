/* SPDX-License-Identifier: Apache-2.0
 * The gradients' way to the other replicas, in buckets, while the rest is still computed:
 *
 *     computes   slopes of 3 │ errors of 2 │ slopes of 2 │ errors of 1 │ slopes of 1 │
 *     travels                                            └ bucket: 3, 2 ───────────▶ └ the rest ─▶
 *
 * A bucket leaves when it is full; the last one, beside which there is nothing to compute, goes
 * without a thread. Small networks have one bucket. (DistributedDataParallel of PyTorch.) */
#ifndef MLP_EXCHANGE_H
#define MLP_EXCHANGE_H

#include <cadre/cadre.h>

enum { EXCHANGE_TENSORS = 16 }; /* at most */

struct exchange {
    cadre_replica *replica;
    size_t bucket_bytes;
    cadre_tensor *tensors[EXCHANGE_TENSORS]; /* of all buckets, in order */
    size_t count;
    size_t begun; /* tensors that have left */
    size_t bytes; /* of those that have not */
    cadre_collective *started[EXCHANGE_TENSORS];
    size_t started_count;
};

void exchange_begin(
    struct exchange *exchange, cadre_replica *replica, size_t bucket_bytes /* 0: each alone */);

/* The tensor is the exchange's until its end, which leaves the sum over all replicas in it. */
void exchange_add(struct exchange *exchange, cadre_tensor *tensor);

/* More will come: what has been added may leave, if it is enough. */
cadre_status exchange_go(struct exchange *exchange);

/* All sums are there. */
cadre_status exchange_end(struct exchange *exchange);

#endif
