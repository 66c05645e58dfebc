/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/digests/stood.h"

#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "worker/library/runtime/digests/digests_part.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"

bool stood_otherwise(const cadre_strategy *strategy, uint64_t digest)
{
    const struct verified *stood = &strategy->digests->stood;
    CADRE_ASSERT(digest != 0);
    return stood->digest != 0 && stood->position == strategy_position(strategy) &&
           stood->digest != digest;
}

uint64_t stood_tells(const cadre_replica *replica, uint64_t digest)
{
    uint64_t own = prng_mix(~digest ^ prng_mix(replica->id));
    return !stood_otherwise(replica->strategy, digest) ? digest : own != 0 ? own : 1;
}
