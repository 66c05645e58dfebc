/* SPDX-License-Identifier: Apache-2.0
 * Buckets of gradients (cadre/buckets.h), each an all-reduce that is started. A replica has one set
 * of them, whose memory it keeps from one step to the next. */
#ifndef CADRE_RUNTIME_BUCKETS_H
#define CADRE_RUNTIME_BUCKETS_H

#include "cadre/buckets.h"
#include "common/base/error.h"

/* All of `tensors` in buckets in one call: begun, started, waited for. */
cadre_status buckets_reduce(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_bucket_options *options,
    struct cadre_error *error);

/* The replica's function has returned: buckets that were begun and not waited for end; their
 * all-reduces are waited for as all started ones (collective_queue_end). */
void buckets_end(cadre_replica *replica);

/* Frees the replica's buckets, if it has any. */
void buckets_free(cadre_replica *replica);

#endif
