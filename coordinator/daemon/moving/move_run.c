/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/moving/move_run.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/progress_bar.h"
#include "common/base/thread.h"

#define THREADS       16
#define DRAW_EVERY_US (200 * CADRE_US_PER_MS)
#define LOG_EVERY_US  (10 * CADRE_US_PER_S)

/* A store that does not answer for so long ends the copy, which can go on later. */
#define AWAY_MAX_US (60 * CADRE_US_PER_S)

/* One thing that failed so often while the store was there in between ends it, too. Each try has
 * the requests of it repeated for as long as their deadline says. */
#define TRIES_MAX 10

struct move_run {
    struct move *move;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    size_t next;
    unsigned threads;
    struct move_result result;
    struct cadre_error error;
    /* The caller's: */
    bool terminal;
    uint64_t begin_us;
    uint64_t shown_us;
    uint64_t away_since_us;
    uint64_t moved_before; /* objects_moved_bytes() */
};

/* ---- the threads ---- */

static const struct move_item *take_item(struct move_run *run)
{
    const struct move_list *from = &run->move->from;
    pthread_mutex_lock(&run->mutex);
    bool more = run->next < from->count && run->error.code == CADRE_OK;
    const struct move_item *item = more ? &from->items[run->next++] : NULL;
    pthread_mutex_unlock(&run->mutex);
    return item;
}

static void note_done(struct move_run *run, const struct move_item *item, bool was_there,
    const struct cadre_error *error)
{
    struct move_result *result = &run->result;
    pthread_mutex_lock(&run->mutex);
    if (error->code == CADRE_DATA_LOSS) {
        result->damaged++;
    } else if (error->code != CADRE_OK) {
        run->error = run->error.code == CADRE_OK ? *error : run->error;
    } else if (was_there) {
        result->there++;
        result->there_bytes += item->bytes;
    } else {
        result->copied++;
        result->copied_bytes += item->bytes;
    }
    pthread_mutex_unlock(&run->mutex);
    if (error->code == CADRE_DATA_LOSS) {
        log_event(LOG_LEVEL_ERROR, "contents", "it is damaged, and not copied",
            LOG_U64("job", item->job.n), LOG_STR("reason", error->text));
    }
}

/* A store that is away is waited for, as long as the caller lets it. */
static void do_item(struct move_run *run, const struct move_item *item)
{
    struct cadre_error error = {0};
    bool was_there = move_has(run->move, item);
    cadre_status status = was_there ? CADRE_OK : move_one(run->move, item, &error);
    for (unsigned tries = 1;
         status == CADRE_UNAVAILABLE && tries < TRIES_MAX && objects_wait(run->move->objects);
         tries++) {
        error = (struct cadre_error){0};
        status = move_one(run->move, item, &error);
    }
    if (status == CADRE_NOT_FOUND && run->move->ahead) {
        error = (struct cadre_error){0};
        was_there = true;
    }
    note_done(run, item, was_there, &error);
}

static void *copy_items(void *user)
{
    struct move_run *run = user;
    const struct move_item *item;
    while ((item = take_item(run)) != NULL) {
        do_item(run, item);
    }
    pthread_mutex_lock(&run->mutex);
    run->threads--;
    pthread_cond_signal(&run->changed);
    pthread_mutex_unlock(&run->mutex);
    return NULL;
}

/* ---- how far it is ---- */

static unsigned columns_of_terminal(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1U : 79;
}

/* With what is under way of large ones, about. */
static uint64_t copied_so_far(const struct move_run *run, const struct move_result *result)
{
    uint64_t moved = objects_moved_bytes(run->move->objects) - run->moved_before;
    uint64_t most = run->move->from.bytes - result->there_bytes;
    moved = moved < most ? moved : most;
    return moved > result->copied_bytes ? moved : result->copied_bytes;
}

static void show(struct move_run *run, const struct move_result *result, uint64_t now_us)
{
    uint64_t whole = run->move->from.bytes;
    uint64_t copied = copied_so_far(run, result);
    uint64_t done = copied + result->there_bytes;
    uint64_t passed_us = now_us - run->begin_us + 1;
    double per_s = (double)copied * (double)CADRE_US_PER_S / (double)passed_us;
    double left_s = per_s > 0 && whole >= done ? (double)(whole - done) / per_s : -1;
    char done_text[PROGRESS_BYTES_TEXT];
    char whole_text[PROGRESS_BYTES_TEXT];
    char rate[PROGRESS_BYTES_TEXT + 2];
    char amount[2 * PROGRESS_BYTES_TEXT + 1];
    char text[PROGRESS_BAR_TEXT_BYTES];
    snprintf(rate, sizeof rate, "%s/s", progress_bar_bytes((uint64_t)per_s, done_text));
    snprintf(amount, sizeof amount, "%s/%s", progress_bar_bytes(done, done_text),
        progress_bar_bytes(whole, whole_text));
    const struct progress_work work = {.doing = "copying contents",
        .done = done,
        .whole = whole,
        .amount = amount,
        .rate = rate,
        .left_s = left_s};
    if (run->terminal) {
        fprintf(stderr, "\r\033[K%s", progress_bar_render_work(&work, columns_of_terminal(), text));
        fflush(stderr);
        return;
    }
    log_event(LOG_LEVEL_INFO, "contents", "copying", LOG_STR("amount", amount),
        LOG_STR("rate", rate), LOG_I64("left_s", (int64_t)left_s));
}

static void give_up_on_store(struct move_run *run, uint64_t now_us)
{
    struct cadre_error why = {0};
    if (!objects_are_away(run->move->objects, &why)) {
        run->away_since_us = now_us;
    } else if (now_us - run->away_since_us > AWAY_MAX_US && run->error.code == CADRE_OK) {
        run->error = why;
        objects_stop(run->move->objects);
    }
}

/* With the mutex, until all threads have ended. */
static void watch_threads(struct move_run *run)
{
    uint64_t every_us = run->terminal ? DRAW_EVERY_US : LOG_EVERY_US;
    while (run->threads > 0) {
        (void)thread_wait_until(&run->changed, &run->mutex, clock_monotonic_us() + DRAW_EVERY_US);
        uint64_t now_us = clock_monotonic_us();
        give_up_on_store(run, now_us);
        if (now_us - run->shown_us >= every_us) {
            run->shown_us = now_us;
            show(run, &run->result, now_us);
        }
    }
}

cadre_status move_run(struct move *move, struct move_result *ret_result, struct cadre_error *error)
{
    pthread_t threads[THREADS];
    uint64_t now_us = clock_monotonic_us();
    struct move_run run = {.move = move,
        .terminal = isatty(STDERR_FILENO) == 1,
        .begin_us = now_us,
        .shown_us = now_us,
        .away_since_us = now_us,
        .moved_before = objects_moved_bytes(move->objects)};
    size_t started = 0;
    pthread_mutex_init(&run.mutex, NULL);
    pthread_cond_init(&run.changed, NULL);
    pthread_mutex_lock(&run.mutex);
    while (started < THREADS && thread_start(&threads[started], copy_items, &run) == 0) {
        started++;
    }
    run.threads = (unsigned)started;
    if (started == 0) {
        cadre_error_set(&run.error, CADRE_RESOURCE_EXHAUSTED, "no thread can be started to copy");
    }
    watch_threads(&run);
    pthread_mutex_unlock(&run.mutex);
    for (size_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_cond_destroy(&run.changed);
    pthread_mutex_destroy(&run.mutex);
    if (run.terminal && run.shown_us > run.begin_us) {
        fputs("\r\033[K", stderr);
    }
    *ret_result = run.result;
    if (run.error.code != CADRE_OK) {
        *error = run.error;
    }
    return run.error.code;
}
