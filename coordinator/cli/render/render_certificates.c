/* SPDX-License-Identifier: Apache-2.0
 * When the TLS certificates of workers expire, and the warning before. */
#include <inttypes.h>
#include <stdio.h>

#include "common/base/clock.h"
#include "common/tls/report.h"
#include "coordinator/cli/render/render.h"

#define HOUR_US (3600 * CADRE_US_PER_S)
#define DAY_US  (24 * HOUR_US)

/* Workers in a warning; the table has the others. */
#define NAMED_MAX 3

static uint64_t left_us(const cadre_worker *worker, uint64_t now_us)
{
    return worker->certificate_ends_us > now_us ? worker->certificate_ends_us - now_us : 0;
}

/* With as little time left the daemons log a warning, too. */
static bool ends_soon(const cadre_worker *worker, uint64_t now_us)
{
    return worker->certificate_ends_us != 0 &&
           left_us(worker, now_us) < TLS_EXPIRY_WARNING_S * CADRE_US_PER_S;
}

const char *render_certificate(const cadre_worker *worker, uint64_t now_us, char text[RENDER_BYTES])
{
    uint64_t left = left_us(worker, now_us);
    uint64_t hours = (left + HOUR_US - 1) / HOUR_US;
    if (worker->certificate_ends_us == 0) {
        snprintf(text, RENDER_BYTES, "-");
    } else if (left == 0) {
        snprintf(text, RENDER_BYTES, "expired");
    } else if (left < 2 * DAY_US) {
        snprintf(text, RENDER_BYTES, "%" PRIu64 " hour%s", hours, hours == 1 ? "" : "s");
    } else {
        snprintf(text, RENDER_BYTES, "%" PRIu64 " days", left / DAY_US);
    }
    return text;
}

enum colour render_certificate_colour(const cadre_worker *worker, uint64_t now_us)
{
    if (!ends_soon(worker, now_us)) {
        return COLOUR_NONE;
    }
    return left_us(worker, now_us) < DAY_US ? COLOUR_RED : COLOUR_YELLOW;
}

/* The one that expires next after `before`, ties in the order of the list; NULL: no other. */
static const cadre_worker *next_to_end(
    const cadre_worker_list *list, const cadre_worker *before, uint64_t now_us)
{
    const cadre_worker *next = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const cadre_worker *worker = &list->workers[i];
        uint64_t ends_us = worker->certificate_ends_us;
        bool ends_after = before == NULL || ends_us > before->certificate_ends_us ||
                          (ends_us == before->certificate_ends_us && worker > before);
        if (ends_after && ends_soon(worker, now_us) &&
            (next == NULL || ends_us < next->certificate_ends_us)) {
            next = worker;
        }
    }
    return next;
}

void render_certificate_warning(
    const cadre_worker_list *list, uint64_t now_us, const struct text_style *text_style, FILE *out)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        count += ends_soon(&list->workers[i], now_us) ? 1 : 0;
    }
    if (count == 0) {
        return;
    }
    const cadre_worker *worker = NULL;
    fprintf(out, "%sTLS certificates (or their CA) that expire soon%s: ",
        colour_start(text_style, COLOUR_YELLOW), colour_end(text_style, COLOUR_YELLOW));
    for (size_t i = 0; i < count && i < NAMED_MAX; i++) {
        char text[RENDER_BYTES];
        worker = next_to_end(list, worker, now_us);
        bool over = left_us(worker, now_us) == 0;
        fputs(i > 0 ? ", " : "", out);
        text_print(out, worker->name, 0);
        fprintf(out, " %s%s", over ? "has " : "in ", render_certificate(worker, now_us, text));
    }
    if (count > NAMED_MAX) {
        fprintf(out, ", and %zu more", count - NAMED_MAX);
    }
    fputs(": `cadre pki issue` into their folders; workers load new ones without a restart\n", out);
}
