/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/digests/digests_part.h"

#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"

bool pause_digest_differs(const cadre_strategy *strategy, uint64_t digest)
{
    const struct verified *paused = &strategy->digests->paused;
    CADRE_ASSERT(digest != 0);
    return paused->digest != 0 && paused->position == strategy_position(strategy) &&
           paused->digest != digest;
}

uint64_t pause_digest_to_send(const cadre_replica *replica, uint64_t digest)
{
    uint64_t own = prng_mix(~digest ^ prng_mix(replica->id));
    return !pause_digest_differs(replica->strategy, digest) ? digest : own != 0 ? own : 1;
}
