/* SPDX-License-Identifier: Apache-2.0
 * /api/jobs/ID/logs: a page of a task's log, read by a thread. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/json/json.h"
#include "coordinator/daemon/logs/log_read.h"
#include "coordinator/daemon/logs/logs.h"
#include "coordinator/daemon/pages/api_deferred.h"
#include "coordinator/daemon/pages/log_page.h"

/* Where no offset is asked for: the newest of these. */
#define TAIL_BYTES ((uint64_t)64 * 1024)
#define TAIL_LINES 1000

struct deferred_log {
    struct api_deferred base;
    uint32_t slot;
    uint64_t offset; /* LOG_READ_BEGIN: of the newest lines */
    bool over;       /* nothing more will be written */
};

/* What a thread works with. */
struct log_reading {
    struct log_read read;
    struct log_page page;
};

/* ---- in a thread ---- */

static uint64_t size_of_log(struct deferred_log *log)
{
    uint64_t bytes = 0;
    (void)log_read_size(log->base.daemon, log->base.job, log->slot, &bytes, &log->base.error);
    return bytes;
}

/* Reads from where the page begins; returns where that is. */
static uint64_t read_log(
    struct deferred_log *log, struct log_read *read, uint64_t *offsets, uint64_t size)
{
    const struct logs_request tail = {
        .id = log->base.job, .tail_bytes = TAIL_BYTES, .tail_lines = TAIL_LINES + 1};
    read->daemon = log->base.daemon;
    read->job = log->base.job;
    read->offsets = offsets;
    read->request = &tail;
    read->slots[0] = log->slot;
    read->slot_count = 1;
    read->slots_done = 0;
    read->piece_count = 0;
    read->mark_count = 0;
    read->size = 0;
    bool behind = log->offset != LOG_READ_BEGIN && log->offset > size;
    offsets[log->slot] = behind ? size : log->offset; /* the host lost the end of the log */
    uint64_t asked = offsets[log->slot];
    log_read(read);
    if (read->error.code != CADRE_OK) {
        log->base.error = read->error;
    }
    read->request = NULL;
    return asked != LOG_READ_BEGIN ? asked
           : read->piece_count > 0 ? read->pieces[0].offset
                                   : offsets[log->slot];
}

/* The newest lines begin with a whole one, where there is one. */
static void skip_first_text_line(struct log_read *read)
{
    struct log_piece *piece = &read->pieces[0];
    const uint8_t *bytes = read->bytes + piece->at;
    const uint8_t *newline = piece->size > 0 ? memchr(bytes, '\n', piece->size) : NULL;
    size_t skip = newline != NULL ? (size_t)(newline + 1 - bytes) : 0;
    piece->at += skip;
    piece->offset += skip;
    piece->size -= skip;
    while (piece->mark_count > 1 && piece->marks[1].offset <= piece->offset) {
        piece->marks++;
        piece->mark_count--;
    }
}

/* False: the page is full. */
static bool add_piece(struct log_page *page, const struct log_read *read,
    const struct log_piece *piece, uint64_t left_out)
{
    const struct log_mark unknown = {.offset = piece->offset};
    const struct log_mark *marks = piece->mark_count > 0 ? piece->marks : &unknown;
    size_t count = piece->mark_count > 0 ? piece->mark_count : 1;
    bool room = true;
    for (size_t i = 0; i < count && room; i++) {
        uint64_t begin = marks[i].offset > piece->offset ? marks[i].offset : piece->offset;
        uint64_t end = i + 1 < count ? marks[i + 1].offset : piece->offset + piece->size;
        const cadre_log log = {.task = piece->slot,
            .offset = begin,
            .bytes = (const char *)read->bytes + piece->at + (begin - piece->offset),
            .size = (size_t)(end - begin),
            .left_out = i == 0 ? left_out : 0,
            .stream = (cadre_log_stream)marks[i].stream,
            .received_us = marks[i].received_us};
        room = log_page_add(page, &log);
    }
    return room;
}

static json_t *page_of(struct deferred_log *log, struct log_reading *reading, uint64_t *offsets)
{
    struct log_read *read = &reading->read;
    struct log_page *page = &reading->page;
    uint64_t begin = read_log(log, read, offsets, size_of_log(log));
    if (log->offset == LOG_READ_BEGIN && read->piece_count > 0 && begin > 0) {
        skip_first_text_line(read);
        begin = read->pieces[0].offset;
    }
    log_page_begin(page, log->base.job.n, begin);
    bool room = true;
    for (uint32_t i = 0; i < read->piece_count && room; i++) {
        const struct log_piece *piece = &read->pieces[i];
        room = add_piece(
            page, read, piece, piece->offset > page->offset ? piece->offset - page->offset : 0);
    }
    bool whole = room && read->slots_done == read->slot_count;
    json_t *lines = NULL;
    uint64_t next = log_page_end(page,
        !whole      ? LOG_PAGE_GOES_ON
        : log->over ? LOG_PAGE_OVER
                    : LOG_PAGE_GROWS,
        &lines);
    uint64_t size = size_of_log(log);
    json_t *json = lines != NULL ? json_object() : NULL;
    json_object_set_new(json, "lines", lines);
    json_object_set_new(json, "next_offset", json_integer((json_int_t)next));
    json_object_set_new(json, "end_offset", json_integer((json_int_t)(size > next ? size : next)));
    return json;
}

static void make_log(struct api_deferred *deferred)
{
    struct deferred_log *log = (struct deferred_log *)deferred;
    CADRE_FREE_AT_EXIT struct log_reading *reading = malloc(sizeof *reading);
    CADRE_FREE_AT_EXIT uint64_t *offsets = calloc((size_t)log->slot + 1, sizeof *offsets);
    bool room = reading != NULL && offsets != NULL;
    json_t *page = room ? page_of(log, reading, offsets) : NULL;
    if (log->base.error.code == CADRE_OK) {
        api_deferred_take(deferred, page);
    } else {
        json_decref(page);
    }
}

/* ---- on the loop ---- */

static cadre_status take_log(const struct api_request *api, struct job_id *ret_job,
    uint32_t *ret_slot, uint64_t *ret_offset, struct cadre_error *error)
{
    static const char *const names[] = {"task", "offset", NULL};
    const struct http_target *target = http_request_target(api->request);
    uint64_t task = 0;
    CADRE_TRY(http_target_check(target, names, error));
    CADRE_TRY(api_job_id(api, ret_job, error));
    if (http_target_argument(target, "task") == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a log is a task's: add task=0, or the number of another task of the job");
    }
    CADRE_TRY(http_target_number(target, "task", 0, UINT32_MAX, &task, error));
    CADRE_TRY(http_target_number(target, "offset", LOG_READ_BEGIN, INT64_MAX, ret_offset, error));
    const struct job_spec *spec = engine_job_spec(api->daemon->engine, *ret_job);
    if (spec == NULL) {
        return cadre_error_set(error, CADRE_NOT_FOUND, "there is no job %llu: see `cadre jobs`",
            (unsigned long long)ret_job->n);
    }
    if (task >= spec->workers) {
        return cadre_error_set(error, CADRE_NOT_FOUND, "job %llu has tasks 0 to %u, no task %llu",
            (unsigned long long)ret_job->n, spec->workers - 1, (unsigned long long)task);
    }
    *ret_slot = (uint32_t)task;
    return CADRE_OK;
}

void api_logs(const struct api_request *api)
{
    struct cadre_error error = {0};
    struct job_id job;
    struct job_info info;
    uint32_t slot = 0;
    uint64_t offset = 0;
    if (take_log(api, &job, &slot, &offset, &error) != CADRE_OK) {
        api_fail(api, &error);
        return;
    }
    struct deferred_log *log = api_deferred_new(api, job, sizeof *log, NULL);
    if (log == NULL) {
        return;
    }
    log->slot = slot;
    log->offset = offset;
    log->over = engine_job_basics(api->daemon->engine, job, &info) &&
                job_state_is_final(info.state) && !logs_are_unwritten(api->daemon, job, slot);
    api_deferred_work(&log->base, make_log, api_deferred_answer);
}
