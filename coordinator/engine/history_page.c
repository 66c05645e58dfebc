/* SPDX-License-Identifier: Apache-2.0
 * A page of a job's history, as clients read it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/engine/engine_state.h"

/* An event and its texts. */
struct history_row {
    char worker[LIMIT_NAME_BYTES];
    char roster[LIMIT_ROSTER_BYTES];
    char text[LIMIT_TEXT_BYTES];
};

struct page_taker {
    struct history_page *page;
    bool full; /* no memory */
};

static bool page_make_room(struct history_page *page)
{
    if (page->count < page->capacity) {
        return true;
    }
    size_t capacity = page->capacity > 0 ? page->capacity * 2 : 64;
    struct history_event *events = realloc(page->events, capacity * sizeof *events);
    page->events = events != NULL ? events : page->events;
    struct history_row *rows = realloc(page->rows, capacity * sizeof *rows);
    page->rows = rows != NULL ? rows : page->rows;
    page->capacity = events != NULL && rows != NULL ? capacity : page->capacity;
    return events != NULL && rows != NULL;
}

static void take_row(void *user, const struct history_event *event)
{
    struct page_taker *taker = user;
    struct history_page *page = taker->page;
    if (taker->full || !page_make_room(page)) {
        taker->full = true;
        return;
    }
    struct history_row *row = &page->rows[page->count];
    memset(row, 0, sizeof *row);
    memcpy(row->worker, event->worker, strnlen(event->worker, sizeof row->worker - 1));
    memcpy(row->roster, event->roster, strnlen(event->roster, sizeof row->roster - 1));
    memcpy(row->text, event->text, strnlen(event->text, sizeof row->text - 1));
    page->events[page->count++] = *event;
}

static void point_to_rows(struct history_page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        page->events[i].worker = page->rows[i].worker;
        page->events[i].roster = page->rows[i].roster;
        page->events[i].text = page->rows[i].text;
    }
}

cadre_status engine_history(struct engine *engine, const struct history_request *request,
    struct history_response *ret_response, struct cadre_error *error)
{
    struct history_page *page = &engine->history_page;
    struct page_taker taker = {.page = page};
    uint32_t limit = request->limit > 0 ? request->limit : LIMIT_EVENTS_LISTED;
    uint64_t last = 0;
    *ret_response = (struct history_response){.events = NULL};
    if (!engine_job_basics(engine, request->id, &ret_response->job)) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "there is no job %" PRIu64 ": see `cadre jobs`", request->id.n);
    }
    page->count = 0;
    CADRE_TRY(engine->store->ops->history(
        engine->store, request->id, request->after, limit, take_row, &taker, &last, error));
    if (taker.full) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the history of job %" PRIu64, request->id.n);
    }
    point_to_rows(page);
    ret_response->events = page->events;
    ret_response->event_count = page->count;
    ret_response->last = last;
    ret_response->dropped = last > LIMIT_EVENTS ? last - LIMIT_EVENTS : 0;
    ret_response->more = page->count > 0 && page->events[page->count - 1].number < last;
    return CADRE_OK;
}

void engine_history_page_free(struct history_page *page)
{
    free(page->events);
    free(page->rows);
    *page = (struct history_page){0};
}
