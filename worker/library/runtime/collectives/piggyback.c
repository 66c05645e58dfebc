/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/collectives/piggyback.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/hooks.h"

#define COUNT_SHIFT 32
#define WHOLE       (UINT32_C(1) << 31)

bool piggyback_due(const cadre_strategy *strategy, uint32_t local)
{
    const cadre_replica *replica = &strategy->replicas[local];
    return (strategy->roster.member_count > 1 || replica->digest != 0) &&
           atomic_load(&strategy->step.running) && !replica->piggyback;
}

struct mesh_buffer piggyback_make(
    const cadre_strategy *strategy, uint32_t local, union piggyback_buffer *piggyback)
{
    CADRE_ASSERT(local < strategy->local_replicas);
    uint64_t digest = strategy->replicas[local].digest;
    *piggyback = (union piggyback_buffer){.fields = {0}};
    if (local == 0) {
        piggyback->piggyback.consumption = strategy->step.own;
        CADRE_ASSERT(strategy->step.compares_in < WHOLE);
        piggyback->piggyback.counts =
            strategy->step.compares_in | (strategy->step.compares_whole ? WHOLE : 0);
    }
    piggyback->piggyback.digests = digest;
    piggyback->piggyback.counts += (uint64_t)(digest != 0 ? 1 : 0) << COUNT_SHIFT;
    return (struct mesh_buffer){
        .data = piggyback->fields, .bytes = sizeof piggyback->fields, .dtype = MESH_I64};
}

cadre_status piggyback_compare(const cadre_strategy *strategy, uint32_t local, uint64_t own,
    uint64_t sum, uint64_t count, bool *ret_equal, struct cadre_error *error)
{
    *ret_equal = own != 0 && count == strategy->replica_count && sum == count * own;
    if (own == 0 || count != strategy->replica_count || *ret_equal) {
        return CADRE_OK;
    }
    return hooks_diverged(strategy, &strategy->replicas[local], error);
}

cadre_status piggyback_receive(cadre_strategy *strategy, uint32_t local,
    const union piggyback_buffer *piggyback, struct cadre_error *error)
{
    struct step *step = &strategy->step;
    cadre_replica *replica = &strategy->replicas[local];
    CADRE_ASSERT(!replica->piggyback);
    replica->piggyback = true;
    if (local == 0) {
        step->whole = piggyback->piggyback.consumption;
        step->consumption_known = true;
        step->compares_in = (uint32_t)piggyback->piggyback.counts & ~WHOLE;
        step->compares_whole = ((uint32_t)piggyback->piggyback.counts & WHOLE) != 0;
    }
    if (replica->digest == 0) {
        return CADRE_OK;
    }
    bool equal = false;
    cadre_status status = piggyback_compare(strategy, local, replica->digest,
        piggyback->piggyback.digests, piggyback->piggyback.counts >> COUNT_SHIFT, &equal, error);
    if (local == 0) {
        step->equal = equal;
    }
    return status;
}
