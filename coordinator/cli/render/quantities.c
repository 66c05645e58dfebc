/* SPDX-License-Identifier: Apache-2.0
 * Ages, durations and sizes as text, for all listings. */
#include "coordinator/cli/render/quantities.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"

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
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    uint64_t tenths = bytes * 10; /* of `unit`; sizes stay far below the limit of the type */
    while (tenths >= UINT64_C(10240) && unit + 1 < sizeof units / sizeof units[0]) {
        tenths /= 1024;
        unit++;
    }
    if (unit == 0) {
        snprintf(text, RENDER_BYTES, "%" PRIu64 " B", bytes);
    } else {
        snprintf(text, RENDER_BYTES, "%" PRIu64 ".%u %s", tenths / 10, (unsigned)(tenths % 10),
            units[unit]);
    }
    return text;
}
