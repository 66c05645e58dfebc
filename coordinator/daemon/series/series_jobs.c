/* SPDX-License-Identifier: Apache-2.0
 * The jobs with values or queries, and what waits for the thread that works on a job's file.
 * agents.c, job_metrics.c and pages/ call it. */
#include "coordinator/daemon/series/series_jobs.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/base/links.h"
#include "coordinator/daemon/contents/quota.h"
#include "coordinator/daemon/series/series_files.h"

/* Of one job, that wait for its thread. */
#define WAITING_BYTES ((size_t)8 * 1024 * 1024)

/* Jobs whose values are in memory, each up to 4 MB; the one that was used least recently goes. */
#define JOBS_IN_MEMORY 64

struct job_series {
    struct job_series *next;
    struct daemon *daemon;
    struct job_id job;
    bool forgotten; /* its files are removed once more behind the thread */
    bool logged;    /* that it has reported too many names */
    uint64_t used_us;
    uint64_t known; /* the newest generation that a thread got */
    struct file_work work;
    struct series_io io; /* the thread's, while `work` runs */
    struct series_item *waiting;
    struct series_item **waiting_tail;
    size_t waiting_bytes;
};

/* ---- items ---- */

static void item_free(struct series_item *item)
{
    if (item != NULL) {
        wire_buffer_free(&item->answer);
        free(item->generations);
        free(item->values);
        free(item->request);
        free(item);
    }
}

/* Of a query whose reader is still there. */
static void answer_query(struct series_item *item)
{
    if (item->answer_to != NULL) {
        item->answer_to(item->reader, &item->answer, &item->error);
    }
}

static void series_jobs_drop_items(struct series_item *items)
{
    while (items != NULL) {
        struct series_item *next = items->next;
        cadre_error_set(&items->error, CADRE_UNAVAILABLE, "the values are not read: ask again");
        answer_query(items);
        item_free(items);
        items = next;
    }
}

/* Copies of names behind their pointers; *at is behind what is used already. */
static const char **copy_names(
    char **at, size_t pointers_at, void *block, const char *const *names, size_t count)
{
    const char **pointers = (const char **)((char *)block + pointers_at);
    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(names[i]) + 1;
        memcpy(*at, names[i], size);
        pointers[i] = *at;
        *at += size;
    }
    return pointers;
}

static size_t bytes_of_names(const char *const *names, size_t count)
{
    size_t size = count * sizeof(char *);
    for (size_t i = 0; i < count; i++) {
        size += strlen(names[i]) + 1;
    }
    return size;
}

/* One block. NULL: no memory. */
static struct task_values *copy_values(const struct task_values *from, size_t *ret_bytes)
{
    size_t values_bytes = from->value_count * sizeof from->values[0];
    size_t bytes = sizeof *from + values_bytes + bytes_of_names(from->names, from->name_count);
    struct task_values *made = malloc(bytes);
    *ret_bytes = bytes;
    if (made == NULL) {
        return NULL;
    }
    *made = *from;
    struct reported_value *values = (struct reported_value *)(made + 1);
    memcpy(values, from->values, values_bytes);
    char *at = (char *)values + values_bytes + from->name_count * sizeof(char *);
    made->values = values;
    made->names = copy_names(&at, sizeof *made + values_bytes, made, from->names, from->name_count);
    return made;
}

static struct metrics_request *copy_request(const struct metrics_request *from)
{
    struct metrics_request *made =
        malloc(sizeof *from + bytes_of_names(from->names, from->name_count));
    if (made != NULL) {
        *made = *from;
        char *at = (char *)(made + 1) + from->name_count * sizeof(char *);
        made->names = copy_names(&at, sizeof *made, made, from->names, from->name_count);
    }
    return made;
}

/* ---- jobs ---- */

static struct job_series *series_jobs_find(struct daemon *daemon, struct job_id job)
{
    struct job_series *found = daemon->job_series;
    while (found != NULL && found->job.n != job.n) {
        found = found->next;
    }
    return found;
}

static void series_jobs_remove(struct job_series *series)
{
    struct job_series **at = &series->daemon->job_series;
    while (*at != series) {
        at = &(*at)->next;
    }
    *at = series->next;
    series_jobs_drop_items(series->waiting);
    free(series->io.path);
    free(series->io.state);
    free(series);
}

static bool is_in_memory(const struct job_series *series)
{
    return series->io.items != NULL || series->io.state != NULL || series->io.chain.objects == NULL;
}

/* Removes the job that was used least recently, if there are as many as are kept. Of one whose
 * values lie in an object store it stays that its file has them. */
static void make_room(struct daemon *daemon)
{
    struct job_series *oldest = NULL;
    size_t count = 0;
    for (struct job_series *at = daemon->job_series; at != NULL; at = at->next) {
        bool counts = is_in_memory(at);
        count += counts ? 1 : 0;
        if (counts && at->io.items == NULL && (oldest == NULL || at->used_us < oldest->used_us)) {
            oldest = at;
        }
    }
    if (count < JOBS_IN_MEMORY || oldest == NULL) {
        return;
    }
    if (oldest->io.chain.objects == NULL) {
        series_jobs_remove(oldest);
        return;
    }
    free(oldest->io.state);
    oldest->io.state = NULL;
    oldest->known = 0;
}

static struct job_series *series_jobs_get(struct daemon *daemon, struct job_id job)
{
    struct job_series *series = series_jobs_find(daemon, job);
    if (series == NULL || !is_in_memory(series)) {
        make_room(daemon);
    }
    if (series == NULL) {
        series = calloc(1, sizeof *series);
        char *path = path_of_series(daemon, job);
        if (series == NULL || path == NULL) {
            free(series);
            free(path);
            return NULL;
        }
        *series = (struct job_series){.next = daemon->job_series,
            .daemon = daemon,
            .job = job,
            .io = {.path = path,
                .chain = {.objects = daemon->objects,
                    .leading = &daemon->leading,
                    .term = engine_term(daemon->engine).start,
                    .job = job}}};
        series->waiting_tail = &series->waiting;
        daemon->job_series = series;
    }
    series->used_us = clock_monotonic_us();
    return series;
}

/* ---- turns of a thread ---- */

static void in_thread(void *user)
{
    struct job_series *series = user;
    series_files_do_io(&series->io);
}

/* ... and frees them. */
static void answer_items(struct job_series *series)
{
    struct series_item *next = NULL;
    for (struct series_item *item = series->io.items; item != NULL; item = next) {
        next = item->next;
        if (item->values == NULL) {
            answer_query(item);
        } else if (item->stored && !series->forgotten) {
            const struct agent_down down = {.type = AGENT_DOWN_RELAY,
                .relay_down = {.job = series->job,
                    .one = true,
                    .task = item->task,
                    .down = {.type = TASK_DOWN_VALUES_KEPT, .values_kept = item->values->end}}};
            links_down(series->daemon, item->link, &down);
        }
        item_free(item);
    }
    series->io.items = NULL;
}

static void log_loss(struct job_series *series)
{
    const struct series_io *io = &series->io;
    if (io->state != NULL && io->state->set.refused > 0 && !series->logged) {
        series->logged = true;
        log_event(LOG_LEVEL_WARNING, "series",
            "a job reports values under more names than are kept: those of the others are dropped",
            LOG_U64("job", series->job.n), LOG_U64("names", LIMIT_METRICS));
    }
    if (io->lost_bytes > 0) {
        log_event(LOG_LEVEL_ERROR, "series", "values that a job reported are damaged and cut off",
            LOG_U64("job", series->job.n), LOG_U64("bytes", io->lost_bytes),
            LOG_STR("file", io->path));
    }
    if (io->lost_errno != 0 && !disk_is_full(io->lost_errno)) {
        struct cadre_error error = {0};
        cadre_error_errno(&error, io->lost_errno, "cannot use %s", io->path);
        log_event(LOG_LEVEL_WARNING, "series", "values that a job reported wait at their task",
            LOG_U64("job", series->job.n), LOG_STR("reason", error.text));
    }
}

static void start_io(struct job_series *series);

static void after_io(void *user)
{
    struct job_series *series = user;
    struct daemon *daemon = series->daemon;
    if (!series->forgotten) {
        log_loss(series);
    }
    answer_items(series);
    if (series->forgotten) {
        paths_remove_job(daemon, series->job);
        series_jobs_remove(series);
        return;
    }
    if (series->io.change_bytes != 0) {
        quota_log(daemon->quota, series->job, series->io.change_bytes);
    }
    if (series->io.state == NULL || series->io.reread) {
        series->known = 0; /* what is read again may be without the newest generations */
    }
    if (series->waiting != NULL) {
        start_io(series);
    }
}

static void start_io(struct job_series *series)
{
    series->io.items = series->waiting;
    series->io.change_bytes = 0;
    series->io.reread = false;
    series->io.lost_bytes = 0;
    series->io.lost_errno = 0;
    series->waiting = NULL;
    series->waiting_tail = &series->waiting;
    series->waiting_bytes = 0;
    file_work_start(&series->work, &series->daemon->write_pool, in_thread, after_io, series);
}

/* ---- what waits ---- */

/* The generations that no item before has; of a query all. False: the error. */
static bool add_generations(struct job_series *series, struct series_item *item)
{
    struct daemon *daemon = series->daemon;
    struct job_info info;
    bool query = item->values == NULL;
    if (!query && engine_job_basics(daemon->engine, series->job, &info) &&
        info.generation <= series->known) {
        return true;
    }
    item->known = series->known;
    item->generations = calloc(LIMIT_METRIC_GENERATIONS, sizeof *item->generations);
    if (item->generations == NULL) {
        cadre_error_set(&item->error, CADRE_RESOURCE_EXHAUSTED,
            "the coordinator has no memory for these values");
        return false;
    }
    if (engine_generations(daemon->engine, series->job, query ? 0 : series->known,
            item->generations, LIMIT_METRIC_GENERATIONS, &item->generation_count,
            &item->error) != CADRE_OK) {
        return false;
    }
    if (item->generation_count > 0) {
        series->known = item->generations[item->generation_count - 1].generation.number;
    }
    return true;
}

static void put_waiting(struct job_series *series, struct series_item *item)
{
    *series->waiting_tail = item;
    series->waiting_tail = &item->next;
    series->waiting_bytes += item->bytes;
    if (series->io.items == NULL) {
        start_io(series);
    }
}

void series_append(struct daemon *daemon, struct link_id link, struct task_ref task,
    const struct task_values *values)
{
    size_t bytes = 0;
    if (!engine_task_on_link(daemon->engine, task, link)) {
        return; /* of a task that is in no job any more */
    }
    struct job_series *series = series_jobs_get(daemon, task.job);
    struct series_item *item = calloc(1, sizeof *item);
    struct task_values *copy = copy_values(values, &bytes);
    if (series == NULL || item == NULL || copy == NULL || series->forgotten ||
        series->waiting_bytes + bytes > WAITING_BYTES ||
        disk_check(daemon, bytes, NULL) != CADRE_OK) {
        free(item);
        free(copy);
        return; /* it is sent again */
    }
    *item = (struct series_item){.bytes = bytes + sizeof *item,
        .link = link,
        .task = task,
        .values = copy,
        .source = engine_task_role(daemon->engine, task) == ROLE_EVALUATOR ? SERIES_EVALUATION
                                                                           : SERIES_TRAINING};
    if (add_generations(series, item)) {
        put_waiting(series, item);
    } else {
        item_free(item);
    }
}

struct series_item *series_query(struct daemon *daemon, const struct metrics_request *request,
    series_answer_fn *answer, void *reader, struct cadre_error *error)
{
    struct job_info info;
    if (!engine_job_basics(daemon->engine, request->id, &info)) {
        cadre_error_set(error, CADRE_NOT_FOUND, "there is no job %llu: see `cadre jobs`",
            (unsigned long long)request->id.n);
        return NULL;
    }
    struct job_series *series = series_jobs_get(daemon, request->id);
    struct series_item *item = calloc(1, sizeof *item);
    struct metrics_request *copy = copy_request(request);
    if (series == NULL || item == NULL || copy == NULL || series->forgotten ||
        series->waiting_bytes > WAITING_BYTES) {
        free(item);
        free(copy);
        cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the coordinator has no memory for another request for values: ask again");
        return NULL;
    }
    /* As much as an answer may take. */
    *item = (struct series_item){.bytes = WAITING_BYTES / 16, .request = copy};
    if (!add_generations(series, item)) {
        *error = item->error;
        item_free(item);
        return NULL;
    }
    item->answer_to = answer;
    item->reader = reader;
    put_waiting(series, item);
    return item;
}

void series_query_cancel(struct series_item *item)
{
    item->answer_to = NULL;
}

void series_forget(struct daemon *daemon, struct job_id job)
{
    struct job_series *series = series_jobs_find(daemon, job);
    if (series != NULL && series->io.items == NULL) {
        series_jobs_remove(series);
    } else if (series != NULL) {
        series->forgotten = true;
        series_jobs_drop_items(series->waiting);
        series->waiting = NULL;
        series->waiting_tail = &series->waiting;
    }
}

void series_close(struct daemon *daemon)
{
    for (struct job_series *at = daemon->job_series; at != NULL; at = at->next) {
        series_jobs_drop_items(at->waiting);
        at->waiting = NULL;
        at->waiting_tail = &at->waiting;
    }
}

void series_free(struct daemon *daemon)
{
    while (daemon->job_series != NULL) {
        series_jobs_remove(daemon->job_series);
    }
}
