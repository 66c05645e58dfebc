/* SPDX-License-Identifier: Apache-2.0
 * The digest of the final state: the coordinator compares it with the other tasks', this file those
 * of its own replicas. */
#include <stdio.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/digests/digests.h"
#include "worker/library/runtime/digests/digests_part.h"
#include "worker/library/runtime/replica/replica_pool.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"

static cadre_status hash_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    (void)user;
    return state_hash_all(strategy, local, &strategy->digests->hashes[local], error);
}

/* The first tensor in which two local replicas differ; their digests do. */
static uint32_t first_difference(const struct state_hashes *a, const struct state_hashes *b)
{
    uint32_t i = 0;
    CADRE_ASSERT(a->count == b->count);
    while (i + 1 < a->count && a->values[i] == b->values[i]) {
        i++;
    }
    return i;
}

static cadre_status digests_at_end_differ(
    cadre_strategy *strategy, uint32_t local, struct cadre_error *error)
{
    struct digests_part *part = strategy->digests;
    const struct task_roster *roster = &strategy->roster;
    const struct verified *verified = &strategy->step.verified;
    char room[STATE_TENSOR_TEXT_BYTES];
    uint32_t tensor = first_difference(&part->hashes[0], &part->hashes[local]);
    part->divergence = (struct divergence){.position = strategy_position(strategy),
        .verified = verified->digest != 0 ? verified->position : roster->resume,
        .culprits = {roster->slots != NULL ? roster->slots[roster->rank]
                                           : strategy->environment->slot},
        .culprit_count = 1};
    snprintf(part->text, sizeof part->text, "replica %u and replica %u do not hold the same in %s",
        strategy->replicas[0].id, strategy->replicas[local].id,
        state_tensor_text(strategy, tensor, room));
    part->found = true;
    return divergence_fail(strategy, part->text, error);
}

cadre_status digests_at_end(
    cadre_strategy *strategy, uint64_t *ret_digest, struct cadre_error *error)
{
    struct digests_part *part = strategy->digests;
    *ret_digest = 0;
    if (strategy->environment->verify_off) {
        return CADRE_OK;
    }
    CADRE_TRY(strategy_each_replica(strategy, hash_on_replica, NULL, error));
    uint64_t digest = state_digest(&part->hashes[0]);
    for (uint32_t i = 1; i < strategy->local_replicas; i++) {
        if (state_digest(&part->hashes[i]) != digest) {
            return digests_at_end_differ(strategy, i, error);
        }
    }
    if (strategy->roster.member_count == 1 && strategy->local_replicas > 1) {
        verified_position_record(
            strategy, strategy_position(strategy), digest); /* compared with those of all */
    }
    *ret_digest = digest;
    return CADRE_OK;
}
