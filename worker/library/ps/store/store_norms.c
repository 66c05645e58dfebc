/* SPDX-License-Identifier: Apache-2.0
 * LAMB of a variable that is cut into shards: the norms go over all shards, so the client first
 * gets each shard's norms, and pushes with the ratio, which each shard keeps. */
#include "common/pure/assert.h"
#include "worker/library/ps/store/store_internal.h"

static cadre_status store_norms_check(
    const struct shard *shard, const struct push *push, struct cadre_error *error)
{
    struct push known = *push;
    known.trust = 0;
    CADRE_TRY(push_check_kind(shard, &known, error));
    if (!trust_is_wanted(shard, push->kind) || push->contributions != 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            SHARD_TEXT " has norms for LAMB only, and this push is no update by "
                       "LAMB, or one of a synchronous step; the optimizer may have come just now: "
                       "push it again",
            SHARD_ARGS(shard));
    }
    return push_check_rows(shard, push, error);
}

cadre_status store_push_norms(struct store *store, uint32_t thread, const struct push *push,
    const void *values, struct optimizer_norms *ret_norms, struct cadre_error *error)
{
    struct shard *shard = store_shard(store, push->shard);
    struct pushing pushing = {.push = *push, .thread = thread};
    struct trust trust = {0};
    CADRE_ASSERT(push->shard < store_count(store));
    *ret_norms = (struct optimizer_norms){{0}, {0}};
    CADRE_TRY(store_norms_check(shard, push, error));
    CADRE_TRY(journal_ready(store, thread, error));
    pushing.count = atomic_load(&shard->kept->updates) + 1;
    if (!push->sparse) {
        dense_norms(shard, &pushing, values, &trust);
    } else if (!sparse_norms(store, shard, &pushing, values, &trust)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "ps has no memory to sort %zu rows of `%s`", (size_t)push->rows, shard->spec.name);
    }
    *ret_norms = trust.norms;
    return CADRE_OK;
}
