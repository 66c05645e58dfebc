/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/layout/streamed.h"
#include "worker/library/runtime/state/layout/state_part.h"

#include <string.h>

#include "worker/library/runtime/strategy/strategy.h"

uint32_t streamed_count(const struct cadre_strategy *strategy)
{
    struct streamed *streamed = strategy->state_part->streamed;
    return streamed == NULL ? 0 : streamed->ops->count(streamed);
}

bool streamed_has_name(const struct cadre_strategy *strategy, const char *name)
{
    struct streamed *streamed = strategy->state_part->streamed;
    uint32_t count = streamed_count(strategy);
    for (uint32_t i = 0; i < count; i++) {
        struct safetensors_entry entry;
        streamed->ops->describe(streamed, i, &entry);
        if (strcmp(entry.name, name) == 0) {
            return true;
        }
    }
    return false;
}

bool streamed_stamp(const struct cadre_strategy *strategy, uint64_t *ret_stamp)
{
    struct streamed *streamed = strategy->state_part->streamed;
    *ret_stamp = 0;
    return streamed == NULL || streamed->ops->stamp(streamed, ret_stamp);
}
