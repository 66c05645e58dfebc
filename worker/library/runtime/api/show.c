/* SPDX-License-Identifier: Apache-2.0
 * The terminal of a program started by hand: bars, epochs, notes, warnings, each once. input/,
 * plain/, strategy/ and values/ call it. */
#include "worker/library/runtime/api/show.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/progress_bar.h"
#include "common/pure/assert.h"

bool show_redraws(void)
{
    return isatty(STDERR_FILENO) == 1;
}

static unsigned api_show_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) {
        return 79;
    }
    return (unsigned)size.ws_col - 1;
}

static struct progress_bar bar_of(
    const struct progress *progress, struct progress_bar_metric metrics[PROGRESS_BAR_METRICS_MAX])
{
    size_t count = progress->metric_count < PROGRESS_BAR_METRICS_MAX ? progress->metric_count
                                                                     : PROGRESS_BAR_METRICS_MAX;
    for (size_t i = 0; i < count; i++) {
        metrics[i] = (struct progress_bar_metric){
            .name = progress->metrics[i].name, .value = progress->metrics[i].value};
    }
    return (struct progress_bar){
        .stream = progress->stream,
        .epoch = progress->epoch,
        .epochs = progress->epochs,
        .step = progress->step,
        .steps = progress->steps,
        .samples_per_s = progress->samples_per_s,
        .left_s = progress->left_s,
        .metrics = metrics,
        .metric_count = count,
    };
}

void show_bar(const struct progress *progress)
{
    struct progress_bar_metric metrics[PROGRESS_BAR_METRICS_MAX];
    struct progress_bar bar = bar_of(progress, metrics);
    char text[PROGRESS_BAR_TEXT_BYTES];
    /* Back to the first column; then clears what an older, longer text has left. */
    fprintf(stderr, "\r%s\033[K", progress_bar_render(&bar, api_show_columns(), text));
    fflush(stderr);
}

void show_bar_end(void)
{
    fputc('\n', stderr);
}

void show_epoch(const struct progress *progress)
{
    struct progress_bar_metric metrics[PROGRESS_BAR_METRICS_MAX];
    struct progress_bar bar = bar_of(progress, metrics);
    char text[PROGRESS_BAR_TEXT_BYTES];
    fprintf(stderr, "%s\n", progress_bar_render_epoch(&bar, text));
}

void show_failure(const struct cadre_error *error)
{
    CADRE_ASSERT(error->code != CADRE_OK);
    fprintf(stderr, "cadre: %s: %s\n", cadre_status_name(error->code), error->text);
}

void show_note(const char *format, ...)
{
    char text[CADRE_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "cadre: %s\n", text);
}

void show_warning(const char *format, ...)
{
    char text[CADRE_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "cadre: warning: %s\n", text);
}

static struct {
    pthread_mutex_t lock;
    struct log_ratelimit log_ratelimit[SHOW_MISUSES];
} misuse = {.lock = PTHREAD_MUTEX_INITIALIZER};

void show_misuse(enum show_misuse which, const struct cadre_error *error)
{
    CADRE_ASSERT(which < SHOW_MISUSES);
    uint64_t suppressed = 0;
    pthread_mutex_lock(&misuse.lock);
    bool printed =
        log_ratelimit_allow(&misuse.log_ratelimit[which], clock_monotonic_us(), &suppressed);
    pthread_mutex_unlock(&misuse.lock);
    if (printed && suppressed > 0) {
        show_warning(
            "%s (and %" PRIu64 " times before, which were not shown)", error->text, suppressed);
    } else if (printed) {
        show_warning("%s", error->text);
    }
}

void show_misuse_end(void)
{
    static const char *const what[SHOW_MISUSES] = {"a value", "a tensor"};
    for (int i = 0; i < SHOW_MISUSES; i++) {
        pthread_mutex_lock(&misuse.lock);
        uint64_t suppressed = misuse.log_ratelimit[i].suppressed;
        misuse.log_ratelimit[i].suppressed = 0;
        pthread_mutex_unlock(&misuse.lock);
        if (suppressed > 0) {
            show_warning("%s of which the program holds no reference was released %" PRIu64
                         " times more",
                what[i], suppressed);
        }
    }
}

void show_replay(const char *name, uint64_t done, uint64_t wanted, uint64_t elapsed_us, bool ends)
{
    double elapsed_s = (double)elapsed_us / (double)CADRE_US_PER_S;
    double rate = elapsed_s > 0 ? (double)done / elapsed_s : 0;
    double left_s = rate > 0 && wanted > done ? (double)(wanted - done) / rate : 0;
    char text[CADRE_ERROR_TEXT_BYTES];
    snprintf(text, sizeof text,
        "cadre: dataset '%s' is read again up to its position: %" PRIu64 " of %" PRIu64
        " elements, %.0f/s, %.0f s left",
        name, done, wanted, rate, left_s);
    if (show_redraws()) {
        fprintf(stderr, "\r%s\033[K%s", text, ends ? "\n" : "");
        fflush(stderr);
    } else {
        fprintf(stderr, "%s\n", text);
    }
}

/* "12.5 MiB" */
static const char *show_bytes(double bytes, char text[24])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 24, "%.1f %s", bytes, units[unit]);
    return text;
}

void show_reading(const struct task_fetch *fetch, bool ends)
{
    double elapsed_s = (double)fetch->elapsed_us / (double)CADRE_US_PER_S;
    double per_s = elapsed_s > 0 ? (double)fetch->done_bytes / elapsed_s : 0;
    uint64_t left_bytes = fetch->whole_bytes - fetch->done_bytes;
    char done[24];
    char whole[24];
    char amount[64];
    char rate[32];
    char text[PROGRESS_BAR_TEXT_BYTES];
    show_bytes((double)fetch->whole_bytes, whole);
    snprintf(amount, sizeof amount, "%s/%s", show_bytes((double)fetch->done_bytes, done), whole);
    snprintf(rate, sizeof rate, "%s/s", show_bytes(per_s, done));
    if (show_redraws()) {
        const struct progress_work work = {.doing = "reading the checkpoint",
            .amount = amount,
            .done = fetch->done_bytes,
            .whole = fetch->whole_bytes,
            .rate = rate,
            .left_s = per_s > 0 ? (double)left_bytes / per_s : -1};
        fprintf(stderr, "\r%s\033[K%s", progress_bar_render_work(&work, api_show_columns(), text),
            ends ? "\n" : "");
        fflush(stderr);
    } else if (ends) {
        show_note("the checkpoint was read: %s in %.1f s, %s", whole, elapsed_s, rate);
    } else {
        show_note("reading the checkpoint: %s", whole);
    }
}
