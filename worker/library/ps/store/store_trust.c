/* SPDX-License-Identifier: Apache-2.0
 * LAMB's ratio of two norms: of the values that an update changes and of its changes. It is
 * computed in one pass that changes nothing, kept, and only then the first piece is changed; after
 * a kill the push goes on with the same ratio.
 *
 *     all values ──▶ norms ──▶ ratio ─▶ kept ──▶ piece ──▶ piece ──▶ ...
 *                               killed before: from the beginning; behind: with this ratio */
#include <float.h>

#include "worker/library/ps/store/store_internal.h"

bool trust_is_wanted(const struct shard *shard, enum push_kind kind)
{
    return kind == PUSH_UPDATE && shard_rule(shard)->kind == OPTIMIZER_LAMB;
}

void trust_add(struct shard *shard, uint64_t count, uint64_t start, const void *gradient,
    size_t length, struct trust *trust)
{
    size_t at = (size_t)start * shard->element_bytes;
    optimizer_norms_add(shard_rule(shard), shard->spec.dtype, count - 1, trust->index, length,
        shard->rows + at, gradient,
        (void *const[OPTIMIZER_SLOTS]){shard->slots[0] + at, shard->slots[1] + at, NULL},
        &trust->norms);
    trust->index += length;
}

double store_trust(const struct optimizer_norms *norms)
{
    double ratio = optimizer_trust(norms);
    return ratio > 0 ? ratio : DBL_MIN;
}
