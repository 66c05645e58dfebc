/* SPDX-License-Identifier: Apache-2.0
 * Adds up the fetches of a job's tasks, for the monitor and for `cadre job`. */
#include "coordinator/cli/render/fetches.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/cli/render/quantities.h"

static const struct doing {
    const char *what;
    const char *of_one;
    const char *of_several;
} doings[] = {
    {"files", "fetches its files", "fetch their files"},
    {"checkpoint", "fetches its checkpoint", "fetch their checkpoint"},
    {"check", "waits until its checkpoint is checked", "wait until their checkpoint is checked"},
    {"read", "reads its checkpoint", "read their checkpoint"},
};
static const struct doing other_doing = {
    "", "fetches what it needs", "fetch their files and checkpoint"};

static const struct doing *doing_of(const char *what)
{
    for (size_t i = 0; i < sizeof doings / sizeof doings[0]; i++) {
        if (strcmp(what, doings[i].what) == 0) {
            return &doings[i];
        }
    }
    return &other_doing;
}

static bool is_fetched_for(const cadre_job_task *task)
{
    return task->fetch.what != NULL && task->fetch.what[0] != '\0';
}

static double rate_of(const cadre_job_fetch *fetch)
{
    return fetch->elapsed_us > 0 ? (double)fetch->done_bytes / ((double)fetch->elapsed_us / 1e6)
                                 : 0;
}

static void fetches_add(struct fetches *fetches, const cadre_job_task *task)
{
    const cadre_job_fetch *fetch = &task->fetch;
    bool other = fetches->tasks > 0 && strcmp(fetches->what, fetch->what) != 0;
    if (fetches->tasks++ == 0) {
        fetches->first = task->task;
    }
    fetches->what = other ? "" : fetch->what;
    fetches->done_bytes += fetch->done_bytes;
    fetches->whole_bytes += fetch->whole_bytes;
    fetches->bytes_per_s += rate_of(fetch);
    if (fetch->elapsed_us > fetches->elapsed_us) {
        fetches->elapsed_us = fetch->elapsed_us;
    }
}

struct fetches fetches_of(const cadre_job *job)
{
    struct fetches fetches = {.what = ""};
    for (size_t i = 0; i < job->task_count; i++) {
        if (is_fetched_for(&job->tasks[i])) {
            fetches_add(&fetches, &job->tasks[i]);
        }
    }
    return fetches;
}

/* Negative: unknown. */
static double left_s(const struct fetches *fetches)
{
    uint64_t left_bytes = fetches->whole_bytes - fetches->done_bytes;
    return fetches->bytes_per_s > 0 ? (double)left_bytes / fetches->bytes_per_s : -1;
}

const char *fetches_text(const struct fetches *fetches, char text[FETCHES_TEXT_BYTES])
{
    const struct doing *doing = doing_of(fetches->what);
    if (fetches->tasks == 1) {
        snprintf(text, FETCHES_TEXT_BYTES, "task %" PRIu32 " %s", fetches->first, doing->of_one);
    } else {
        snprintf(
            text, FETCHES_TEXT_BYTES, "%" PRIu32 " tasks %s", fetches->tasks, doing->of_several);
    }
    return text;
}

const char *fetches_bar(const struct fetches *fetches, const char *doing, unsigned columns,
    char text[PROGRESS_BAR_TEXT_BYTES])
{
    char done[RENDER_BYTES];
    char whole[RENDER_BYTES];
    char amount[2 * RENDER_BYTES + 1];
    char rate[RENDER_BYTES + 2];
    snprintf(amount, sizeof amount, "%s/%s", render_bytes(fetches->done_bytes, done),
        render_bytes(fetches->whole_bytes, whole));
    snprintf(rate, sizeof rate, "%s/s", render_bytes((uint64_t)fetches->bytes_per_s, done));
    const struct progress_work work = {.doing = doing,
        .amount = amount,
        .done = fetches->done_bytes,
        .whole = fetches->whole_bytes,
        .rate = rate,
        .left_s = left_s(fetches)};
    return progress_bar_render_work(&work, columns, text);
}

const char *fetches_note(const cadre_job_task *task, char text[FETCHES_TEXT_BYTES])
{
    char done[RENDER_BYTES];
    char whole[RENDER_BYTES];
    char rate[RENDER_BYTES];
    struct fetches one = {.what = ""};
    text[0] = '\0';
    if (!is_fetched_for(task)) {
        return text;
    }
    fetches_add(&one, task);
    int used = snprintf(text, FETCHES_TEXT_BYTES, "%s: %s of %s, %s/s", doing_of(one.what)->of_one,
        render_bytes(one.done_bytes, done), render_bytes(one.whole_bytes, whole),
        render_bytes((uint64_t)one.bytes_per_s, rate));
    double left = left_s(&one);
    if (left >= 0 && left < 1e9) {
        uint64_t seconds = (uint64_t)(left + 0.5);
        snprintf(text + used, FETCHES_TEXT_BYTES - (size_t)used, ", %" PRIu64 ":%02u left",
            seconds / 60, (unsigned)(seconds % 60));
    }
    return text;
}
