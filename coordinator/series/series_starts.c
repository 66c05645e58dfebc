/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/series/series_starts.h"

#include <string.h>

#include "common/pure/assert.h"

bool series_starts_note(struct series_starts *starts, uint64_t generation, uint64_t step)
{
    CADRE_ASSERT(starts->count <= LIMIT_METRIC_GENERATIONS);
    if (starts->count > 0 && generation <= starts->items[starts->count - 1].generation) {
        return false;
    }
    if (starts->count == LIMIT_METRIC_GENERATIONS) {
        starts->count--;
        memmove(starts->items, starts->items + 1, starts->count * sizeof starts->items[0]);
    }
    starts->items[starts->count++] = (struct series_start){.generation = generation, .step = step};
    return true;
}

uint64_t series_starts_find(
    const struct series_starts *starts, uint64_t generation, uint64_t newest)
{
    CADRE_ASSERT(starts->count <= LIMIT_METRIC_GENERATIONS);
    for (size_t i = 0; i < starts->count; i++) {
        if (starts->items[i].generation >= generation) {
            return starts->items[i].step > 0 ? starts->items[i].step - 1 : 0;
        }
    }
    return newest;
}
