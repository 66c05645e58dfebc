/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/pages/log_page.h"

#include <string.h>

#include "common/json/json.h"

void log_page_begin(struct log_page *page, uint64_t job, uint64_t offset)
{
    page->job = job;
    page->lines = json_array();
    page->begin = offset;
    page->offset = offset;
    page->between = offset;
    page->between_count = 0;
    for (size_t i = 0; i < LOG_PAGE_STREAMS; i++) {
        page->open[i].used = 0;
    }
}

static size_t count_open(const struct log_page *page)
{
    size_t count = 0;
    for (size_t i = 0; i < LOG_PAGE_STREAMS; i++) {
        count += page->open[i].used > 0 ? 1 : 0;
    }
    return count;
}

static void note_between(struct log_page *page)
{
    if (count_open(page) == 0) {
        page->between = page->offset;
        page->between_count = json_array_size(page->lines);
    }
}

static void emit(struct log_page *page, struct open_text_line *open)
{
    json_array_append_new(
        page->lines, json_of_text_line(page->job, &open->first, open->bytes, open->used));
    open->used = 0;
}

/* In the order in which they began. */
static void emit_open(struct log_page *page)
{
    while (count_open(page) > 0) {
        struct open_text_line *first = NULL;
        for (size_t i = 0; i < LOG_PAGE_STREAMS; i++) {
            struct open_text_line *open = &page->open[i];
            if (open->used > 0 && (first == NULL || open->first.offset < first->first.offset)) {
                first = open;
            }
        }
        emit(page, first);
    }
}

/* Up to the end of the line, or as much as there is; returns how many bytes. */
static size_t add_some(
    struct log_page *page, struct open_text_line *open, const cadre_log *log, size_t at)
{
    size_t rest = log->size - at;
    const char *newline = memchr(log->bytes + at, '\n', rest);
    size_t take = newline != NULL ? (size_t)(newline + 1 - log->bytes) - at : rest;
    size_t room = sizeof open->bytes - open->used;
    take = take < room ? take : room;
    if (open->used == 0) {
        open->first = *log;
        open->first.offset = log->offset + at;
        open->first.left_out = at == 0 ? log->left_out : 0;
    }
    memcpy(open->bytes + open->used, log->bytes + at, take);
    open->used += take;
    page->offset = log->offset + at + take;
    if (open->used == sizeof open->bytes || open->bytes[open->used - 1] == '\n') {
        emit(page, open);
    }
    note_between(page);
    return take;
}

bool log_page_add(struct log_page *page, const cadre_log *log)
{
    if (log->left_out > 0) {
        emit_open(page);
        page->offset = log->offset;
        note_between(page);
    }
    bool full = json_array_size(page->lines) >= LOG_PAGE_LINES;
    for (size_t at = 0; at < log->size && !full;) {
        at += add_some(page, &page->open[log->stream], log, at);
        full = json_array_size(page->lines) >= LOG_PAGE_LINES;
    }
    return !full;
}

static void drop_behind(struct log_page *page)
{
    while (json_array_size(page->lines) > page->between_count) {
        json_array_remove(page->lines, json_array_size(page->lines) - 1);
    }
}

uint64_t log_page_end(struct log_page *page, enum log_page_rest rest, json_t **ret_lines)
{
    uint64_t next = page->offset;
    bool alone = count_open(page) == 1 && json_array_size(page->lines) == page->between_count;
    if (count_open(page) > 0 && rest == LOG_PAGE_GOES_ON && page->between > page->begin) {
        drop_behind(page);
        next = page->between;
    } else if (rest == LOG_PAGE_GROWS && alone) {
        emit_open(page);
        next = page->between;
    } else {
        emit_open(page);
    }
    *ret_lines = page->lines;
    return next;
}
