/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/render/transfer.h"

#include "common/base/clock.h"
#include "common/base/progress_bar.h"
#include "coordinator/cli/render/render.h"

#define DRAW_EVERY_US (100 * CADRE_US_PER_MS)
#define RATE_AFTER_US (500 * CADRE_US_PER_MS) /* the first bytes only fill buffers */

void transfer_open(struct transfer *transfer, FILE *out, FILE *err, uint64_t now_us)
{
    *transfer = (struct transfer){.begin_us = now_us};
    screen_open(&transfer->screen, out, err);
}

void transfer_show(struct transfer *transfer, const char *doing, uint64_t done_bytes,
    uint64_t whole_bytes, uint64_t now_us)
{
    char done[RENDER_BYTES];
    char whole[RENDER_BYTES];
    char amount[2 * RENDER_BYTES + 1];
    char rate[RENDER_BYTES + 2];
    char text[PROGRESS_BAR_TEXT_BYTES];
    if (!transfer->screen.live ||
        (transfer->drawn && now_us - transfer->drawn_us < DRAW_EVERY_US)) {
        return;
    }
    transfer->drawn = true;
    transfer->drawn_us = now_us;
    uint64_t passed_us = now_us - transfer->begin_us;
    double per_s = (double)done_bytes / ((double)(passed_us > 0 ? passed_us : 1) / CADRE_US_PER_S);
    bool rated = passed_us >= RATE_AFTER_US && done_bytes > 0;
    uint64_t left_bytes = whole_bytes > done_bytes ? whole_bytes - done_bytes : 0;
    snprintf(amount, sizeof amount, "%s/%s", render_bytes(done_bytes, done),
        render_bytes(whole_bytes, whole));
    snprintf(rate, sizeof rate, "%s/s", render_bytes((uint64_t)per_s, done));
    const struct progress_work work = {.doing = doing,
        .amount = amount,
        .done = done_bytes,
        .whole = whole_bytes,
        .rate = rated ? rate : NULL,
        .left_s = rated ? (double)left_bytes / per_s : -1};
    unsigned columns = transfer->screen.err_style.columns;
    screen_status(
        &transfer->screen, progress_bar_render_work(&work, columns > 0 ? columns - 1 : 0, text));
}

void transfer_clear(struct transfer *transfer)
{
    screen_status(&transfer->screen, "");
}
