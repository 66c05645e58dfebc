/* SPDX-License-Identifier: Apache-2.0
 * Renders the text lines of progress_bar.h: counts, bar, metrics, rate and time left, cut to the
 * terminal's columns. Called by the runtime of a program run by hand and by the command line. */
#include "common/base/progress_bar.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#define BAR_CELLS     20
#define BAR_CELLS_MIN 4

struct bar_text {
    char *text;
    size_t used;
};

__attribute__((format(printf, 2, 3))) static void progress_bar_add(
    struct bar_text *out, const char *format, ...)
{
    size_t room = PROGRESS_BAR_TEXT_BYTES - out->used;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(out->text + out->used, room, format, arguments);
    va_end(arguments);
    if (length > 0) {
        out->used += (size_t)length < room ? (size_t)length : room - 1;
    }
}

static void add_name(struct bar_text *out, const char *name)
{
    for (size_t i = 0; name[i] != '\0' && i < 64; i++) {
        bool plain = (unsigned char)name[i] >= ' ' && name[i] != 0x7f;
        progress_bar_add(out, "%c", plain ? name[i] : '?');
    }
}

static void add_counts(struct bar_text *out, const struct progress_bar *progress)
{
    if (progress->stream != NULL && progress->stream[0] != '\0') {
        add_name(out, progress->stream);
        progress_bar_add(out, "  ");
    }
    bool epochs = progress->epochs > 0 || out->used > 0;
    if (epochs) { /* a program without datasets has none */
        progress_bar_add(out, "epoch %" PRIu64, progress->epoch + 1);
    }
    if (progress->epochs > 0) {
        progress_bar_add(out, "/%" PRIu64, progress->epochs);
    }
    progress_bar_add(out, "%sstep %" PRIu64, epochs ? "  " : "", progress->step);
    if (progress->steps > 0) {
        progress_bar_add(out, "/%" PRIu64, progress->steps);
    }
}

static void add_bar(struct bar_text *out, uint64_t done, uint64_t whole, unsigned cells)
{
    if (whole == 0 || cells == 0) {
        return;
    }
    uint64_t part = done < whole ? done : whole;
    unsigned full = (unsigned)((double)part / (double)whole * cells);
    progress_bar_add(out, " [");
    for (unsigned i = 0; i < cells; i++) {
        progress_bar_add(out, "%c", i < full ? '=' : (i == full ? '>' : ' '));
    }
    progress_bar_add(out, "]");
}

static void add_metrics(struct bar_text *out, const struct progress_bar *progress)
{
    for (size_t i = 0; i < progress->metric_count && i < PROGRESS_BAR_METRICS_MAX; i++) {
        progress_bar_add(out, "  ");
        add_name(out, progress->metrics[i].name);
        progress_bar_add(out, " %.4g", progress->metrics[i].value);
    }
}

static void add_rate(struct bar_text *out, double samples_per_s)
{
    static const char *const units[] = {"", "k", "M", "G"};
    size_t unit = 0;
    if (!(samples_per_s > 0)) {
        return;
    }
    while (samples_per_s >= 1000 && unit + 1 < sizeof units / sizeof units[0]) {
        samples_per_s /= 1000;
        unit++;
    }
    progress_bar_add(out, "  %.3g%s samples/s", samples_per_s, units[unit]);
}

static void add_left(struct bar_text *out, double left_s)
{
    if (!(left_s >= 0) || left_s > 1e9) {
        return;
    }
    uint64_t seconds = (uint64_t)(left_s + 0.5);
    if (seconds >= 3600) {
        progress_bar_add(out, "  %" PRIu64 ":%02u:%02u left", seconds / 3600,
            (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60));
    } else {
        progress_bar_add(out, "  %" PRIu64 ":%02u left", seconds / 60, (unsigned)(seconds % 60));
    }
}

/* A line of which only the bar may be shorter; returns how long it is. */
typedef size_t render_fn(const void *progress, unsigned cells, char text[PROGRESS_BAR_TEXT_BYTES]);

static size_t render_training(
    const void *progress, unsigned cells, char text[PROGRESS_BAR_TEXT_BYTES])
{
    const struct progress_bar *training = progress;
    struct bar_text out = {.text = text};
    text[0] = '\0';
    add_counts(&out, training);
    add_bar(&out, training->step, training->steps, cells);
    add_metrics(&out, training);
    add_rate(&out, training->samples_per_s);
    add_left(&out, training->left_s);
    return out.used;
}

static size_t render_part(const void *progress, unsigned cells, char text[PROGRESS_BAR_TEXT_BYTES])
{
    const struct progress_work *part = progress;
    struct bar_text out = {.text = text};
    text[0] = '\0';
    if (part->amount != NULL) {
        progress_bar_add(&out, "%s  %s", part->doing, part->amount);
    } else {
        progress_bar_add(&out, "%s  %" PRIu64, part->doing, part->done);
    }
    if (part->amount == NULL && part->whole > 0) {
        progress_bar_add(&out, "/%" PRIu64, part->whole);
    }
    if (part->amount == NULL) {
        progress_bar_add(&out, " %s", part->units);
    }
    add_bar(&out, part->done, part->whole, cells);
    if (part->rate != NULL) {
        progress_bar_add(&out, "  %s", part->rate);
        add_left(&out, part->left_s);
    }
    return out.used;
}

static const char *progress_bar_fit(
    render_fn *render, const void *progress, unsigned columns, char text[PROGRESS_BAR_TEXT_BYTES])
{
    size_t used = render(progress, BAR_CELLS, text);
    if (columns > 0 && used > columns) { /* without the bar: the numbers matter more */
        size_t excess = used - columns;
        bool some = excess + BAR_CELLS_MIN <= BAR_CELLS;
        used = render(progress, some ? (unsigned)(BAR_CELLS - excess) : 0, text);
    }
    if (columns > 0 && used > columns) {
        text[columns] = '\0';
    }
    return text;
}

const char *progress_bar_render(
    const struct progress_bar *progress, unsigned columns, char text[PROGRESS_BAR_TEXT_BYTES])
{
    return progress_bar_fit(render_training, progress, columns, text);
}

const char *progress_bar_render_work(
    const struct progress_work *part, unsigned columns, char text[PROGRESS_BAR_TEXT_BYTES])
{
    return progress_bar_fit(render_part, part, columns, text);
}

const char *progress_bar_render_epoch(
    const struct progress_bar *progress, char text[PROGRESS_BAR_TEXT_BYTES])
{
    struct bar_text out = {.text = text};
    text[0] = '\0';
    add_counts(&out, progress);
    add_metrics(&out, progress);
    add_rate(&out, progress->samples_per_s);
    return text;
}

const char *progress_bar_bytes(uint64_t bytes, char text[PROGRESS_BYTES_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    uint64_t tenths = bytes * 10; /* of `unit`; sizes stay far below the limit of the type */
    while (tenths >= UINT64_C(10240) && unit + 1 < sizeof units / sizeof units[0]) {
        tenths /= 1024;
        unit++;
    }
    if (unit == 0) {
        snprintf(text, PROGRESS_BYTES_TEXT, "%" PRIu64 " B", bytes);
    } else {
        snprintf(text, PROGRESS_BYTES_TEXT, "%" PRIu64 ".%u %s", tenths / 10,
            (unsigned)(tenths % 10), units[unit]);
    }
    return text;
}
