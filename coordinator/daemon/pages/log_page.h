/* SPDX-License-Identifier: Apache-2.0
 * A page of a task's log: its lines, as `logs --json` prints them, and where the next page begins,
 * which is never inside of a line that this page has whole. No I/O. */
#ifndef CADRE_COORDINATOR_PAGES_LOG_PAGE_H
#define CADRE_COORDINATOR_PAGES_LOG_PAGE_H

#include <jansson.h>

#include "cadre/client.h"

#define LOG_PAGE_LINES      4096
#define LOG_PAGE_LINE_BYTES 16384 /* a longer one is broken there, as the command does */
#define LOG_PAGE_STREAMS    3     /* indexed by cadre_log_stream */

/* A line whose end is not there yet. */
struct open_text_line {
    cadre_log first; /* what is true of its first byte */
    size_t used;
    char bytes[LOG_PAGE_LINE_BYTES];
};

struct log_page {
    uint64_t job;
    json_t *lines;
    uint64_t begin;  /* the offset of the page */
    uint64_t offset; /* behind what was added */
    /* The newest offset at which no line is open, and how many lines end before it. */
    uint64_t between;
    size_t between_count;
    struct open_text_line open[LOG_PAGE_STREAMS];
};

/* A page that begins at the offset; released by log_page_end(). */
void log_page_begin(struct log_page *page, uint64_t job, uint64_t offset);

/* Adds bytes of one stream, received at once; left_out bytes before them are not kept. False: the
 * page is full, and *page says up to where it took them. */
bool log_page_add(struct log_page *page, const cadre_log *log);

/* Where an open line is at the end: */
enum log_page_rest {
    LOG_PAGE_GOES_ON, /* there is more to read: the line is left to the next page */
    LOG_PAGE_GROWS,   /* more may be written: the line is shown, and again by the next page */
    LOG_PAGE_OVER     /* nothing more will be written: it is the last one */
};

/* Returns where the next page begins; the lines are the caller's. */
uint64_t log_page_end(struct log_page *page, enum log_page_rest rest, json_t **ret_lines);

#endif
