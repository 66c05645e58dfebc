/* SPDX-License-Identifier: Apache-2.0
 * Synchronous steps of shards of a variable that LAMB updates. The ratio of a step is kept until
 * that of the next step is given: by then all shards have applied the step, because none admits a
 * contribution to the next one before. */
#include <inttypes.h>

#include "common/pure/assert.h"
#include "worker/library/ps/store/store_internal.h"

static bool is_complete(const struct shard *shard)
{
    const struct image_step *step = shard->step;
    uint64_t count = step == NULL ? 0 : atomic_load(&step->count);
    return count != 0 && count == atomic_load(&step->contributions) &&
           atomic_load(&step->part) != 0;
}

cadre_status store_step_norms(struct store *store, uint32_t thread, uint32_t shard, uint64_t step,
    enum store_step_state *ret_state, struct optimizer_norms *ret_norms, struct cadre_error *error)
{
    struct shard *one = store_shard(store, shard);
    struct trust trust = {0};
    CADRE_ASSERT(shard < store_count(store));
    CADRE_TRY(journal_ready(store, thread, error));
    pthread_mutex_lock(&one->lock);
    uint64_t steps = atomic_load(&one->kept->steps);
    bool waits = steps == step && is_complete(one);
    *ret_state = steps > step ? STEP_OVER : waits ? STEP_WAITS : STEP_INCOMPLETE;
    if (waits && step_waits(one)) {
        step_norms(store, thread, one, &trust);
    }
    pthread_mutex_unlock(&one->lock);
    *ret_norms = trust.norms;
    return CADRE_OK;
}

/* The caller holds the lock. CADRE_OK: the step is to be applied, or *ret_over. */
static cadre_status store_settle_admit(struct shard *shard, uint64_t step, double trust,
    double *ret_trust, bool *ret_over, struct cadre_error *error)
{
    struct image_step *kept = shard->step;
    uint64_t steps = atomic_load(&shard->kept->steps);
    bool settled = kept != NULL && atomic_load(&kept->settled_step) == step + 1;
    *ret_over = steps > step;
    *ret_trust = settled ? store_double(atomic_load(&kept->settled_trust)) : 0;
    if (*ret_over) {
        return CADRE_OK;
    }
    if (steps != step || !is_complete(shard) || !(trust > 0)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            SHARD_TEXT ": step %" PRIu64 " was given the ratio %g of LAMB's norms, and does not "
                       "wait for one; it was begun again, or has not all contributions",
            SHARD_ARGS(shard), step, trust);
    }
    if (shard->settling) {
        return CADRE_PENDING;
    }
    if (!settled) {
        atomic_store(&kept->settled_trust, store_bits(trust));
        store_order_point();
        atomic_store(&kept->settled_step, step + 1);
        store_order_point();
        *ret_trust = trust;
    }
    shard->settling = true;
    return CADRE_OK;
}

cadre_status store_step_settle(struct store *store, uint32_t thread, uint32_t shard, uint64_t step,
    double trust, double *ret_trust, struct cadre_error *error)
{
    struct shard *one = store_shard(store, shard);
    bool over = false;
    CADRE_ASSERT(shard < store_count(store));
    CADRE_TRY(journal_ready(store, thread, error));
    pthread_mutex_lock(&one->lock);
    cadre_status status = store_settle_admit(one, step, trust, ret_trust, &over, error);
    pthread_mutex_unlock(&one->lock);
    if (status != CADRE_OK || over) {
        return status;
    }
    step_apply(store, thread, one);
    pthread_mutex_lock(&one->lock);
    one->settling = false;
    pthread_mutex_unlock(&one->lock);
    return CADRE_OK;
}
