/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/variables/slice.h"

#include "common/pure/assert.h"

/* Into [low, high]; negative bounds count from the end. */
static int64_t slice_clip(int64_t length, int64_t bound, int64_t low, int64_t high)
{
    CADRE_ASSERT(low <= high + 1);
    int64_t at = bound < 0 ? bound + length : bound; /* cannot overflow: of different signs */
    return at < low ? low : at > high ? high : at;
}

struct slice slice_of(int64_t length, int64_t begin, int64_t end, int64_t step)
{
    CADRE_ASSERT(length >= 0);
    CADRE_ASSERT(step != 0);
    /* With a negative step the bounds are one lower: -1 is before the first. */
    int64_t low = step > 0 ? 0 : -1;
    int64_t high = step > 0 ? length : length - 1;
    int64_t first = step > 0 ? low : high;
    int64_t stop = step > 0 ? high : low;
    first = begin == SLICE_NONE ? first : slice_clip(length, begin, low, high);
    stop = end == SLICE_NONE ? stop : slice_clip(length, end, low, high);
    uint64_t span = step > 0 ? (uint64_t)(stop - first) : (uint64_t)(first - stop);
    uint64_t stride = step > 0 ? (uint64_t)step : (uint64_t)0 - (uint64_t)step;
    bool empty = step > 0 ? first >= stop : first <= stop;
    if (empty) {
        return (struct slice){.step = step};
    }
    return (struct slice){
        .first = first, .count = (int64_t)((span - 1) / stride + 1), .step = step};
}

bool slice_item(int64_t length, int64_t number, int64_t *ret_item)
{
    CADRE_ASSERT(length >= 0);
    *ret_item = number < 0 ? number + length : number;
    return *ret_item >= 0 && *ret_item < length;
}
