/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/collectives/told.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/participants.h"

#define COUNT_SHIFT 32
#define WHOLE       (UINT32_C(1) << 31)

bool told_due(const cadre_strategy *strategy, uint32_t local)
{
    const cadre_replica *replica = &strategy->replicas[local];
    return (strategy->roster.member_count > 1 || replica->digest != 0) &&
           atomic_load(&strategy->step.running) && !replica->told;
}

struct mesh_buffer told_speak(
    const cadre_strategy *strategy, uint32_t local, union told_words *told)
{
    CADRE_ASSERT(local < strategy->local_replicas);
    uint64_t digest = strategy->replicas[local].digest;
    *told = (union told_words){.words = {0}};
    if (local == 0) {
        told->told.feed = strategy->step.own;
        CADRE_ASSERT(strategy->step.compares_in < WHOLE);
        told->told.counts =
            strategy->step.compares_in | (strategy->step.compares_whole ? WHOLE : 0);
    }
    told->told.digests = digest;
    told->told.counts += (uint64_t)(digest != 0 ? 1 : 0) << COUNT_SHIFT;
    return (struct mesh_buffer){
        .data = told->words, .bytes = sizeof told->words, .dtype = MESH_I64};
}

cadre_status told_compare(const cadre_strategy *strategy, uint32_t local, uint64_t own,
    uint64_t sum, uint64_t count, bool *ret_equal, struct cadre_error *error)
{
    *ret_equal = own != 0 && count == strategy->replica_count && sum == count * own;
    if (own == 0 || count != strategy->replica_count || *ret_equal) {
        return CADRE_OK;
    }
    return participants_differ(strategy, &strategy->replicas[local], error);
}

cadre_status told_hear(cadre_strategy *strategy, uint32_t local, const union told_words *told,
    struct cadre_error *error)
{
    struct step *step = &strategy->step;
    cadre_replica *replica = &strategy->replicas[local];
    CADRE_ASSERT(!replica->told);
    replica->told = true;
    if (local == 0) {
        step->whole = told->told.feed;
        step->feed_known = true;
        step->compares_in = (uint32_t)told->told.counts & ~WHOLE;
        step->compares_whole = ((uint32_t)told->told.counts & WHOLE) != 0;
    }
    if (replica->digest == 0) {
        return CADRE_OK;
    }
    bool equal = false;
    cadre_status status = told_compare(strategy, local, replica->digest, told->told.digests,
        told->told.counts >> COUNT_SHIFT, &equal, error);
    if (local == 0) {
        step->equal = equal;
    }
    return status;
}
