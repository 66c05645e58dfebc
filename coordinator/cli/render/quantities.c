/* SPDX-License-Identifier: Apache-2.0
 * Ages, durations and sizes as text, for all listings. */
#include "coordinator/cli/render/quantities.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/progress_bar.h"

#define MINUTE_S 60
#define HOUR_S   3600
#define DAY_S    86400

const char *render_age(uint64_t span_us, char text[RENDER_BYTES])
{
    uint64_t seconds = span_us / CADRE_US_PER_S;
    if (seconds < 2 * MINUTE_S) {
        snprintf(text, RENDER_BYTES, "%" PRIu64 " s", seconds);
    } else if (seconds < 2 * HOUR_S) {
        snprintf(text, RENDER_BYTES, "%" PRIu64 " min", seconds / MINUTE_S);
    } else if (seconds < 2 * DAY_S) {
        snprintf(text, RENDER_BYTES, "%" PRIu64 " h", seconds / HOUR_S);
    } else {
        snprintf(text, RENDER_BYTES, "%" PRIu64 " d", seconds / DAY_S);
    }
    return text;
}

const char *render_duration(uint64_t span_us, char text[RENDER_BYTES])
{
    uint64_t seconds = span_us / CADRE_US_PER_S;
    if (seconds == 0) {
        snprintf(text, RENDER_BYTES, "%" PRIu64 " ms", span_us / CADRE_US_PER_MS);
    } else if (seconds < MINUTE_S) {
        snprintf(text, RENDER_BYTES, "%" PRIu64 ".%u s", seconds,
            (unsigned)(span_us % CADRE_US_PER_S / (CADRE_US_PER_S / 10)));
    } else if (seconds < HOUR_S) {
        snprintf(text, RENDER_BYTES, "%" PRIu64 ":%02u min", seconds / MINUTE_S,
            (unsigned)(seconds % MINUTE_S));
    } else {
        snprintf(text, RENDER_BYTES, "%" PRIu64 ":%02u:%02u h", seconds / HOUR_S,
            (unsigned)(seconds % HOUR_S / MINUTE_S), (unsigned)(seconds % MINUTE_S));
    }
    return text;
}

const char *render_bytes(uint64_t bytes, char text[RENDER_BYTES])
{
    _Static_assert(RENDER_BYTES >= PROGRESS_BYTES_TEXT, "a text of progress_bar.h fits");
    return progress_bar_bytes(bytes, text);
}
