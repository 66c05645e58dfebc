/* SPDX-License-Identifier: Apache-2.0
 * The events of jobs: numbered as they are written, and bounded by removing those between the first
 * ones and the newest. */
#include "coordinator/store/sqlite_statements.h"

#include "coordinator/store/sqlite_tables.h"

/* The number of the job's newest event; 0: it has none. */
static cadre_status last_event(
    struct statements *statements, struct job_id job, uint64_t *ret_last, struct cadre_error *error)
{
    sqlite3_stmt *select = statements->prepared[STATEMENT_EVENT_LAST];
    bind_u64(select, 1, job.n);
    int result = sqlite3_step(select);
    cadre_status status = CADRE_OK;
    if (result == SQLITE_ROW) {
        *ret_last = column_u64(select, 0);
    } else {
        status = statements_fail(statements, "number an event", error);
    }
    sqlite3_reset(select);
    return status;
}

static void bind_event(sqlite3_stmt *insert, const struct history_event *event)
{
    bind_u64(insert, 3, event->time_us);
    sqlite3_bind_int(insert, 4, (int)event->kind);
    bind_u64(insert, 5, event->generation);
    bind_u64(insert, 6, event->position);
    sqlite3_bind_int64(insert, 7, event->slot == HISTORY_SLOT_NONE ? -1 : (int64_t)event->slot);
    bind_u64(insert, 8, event->incarnation);
    bind_u64(insert, 9, event->tasks);
    bind_u64(insert, 10, event->undone);
    bind_u64(insert, 11, event->restarted);
    bind_u64(insert, 12, event->waited_us);
    sqlite3_bind_int(insert, 13, event->exit_code);
    sqlite3_bind_int(insert, 14, event->exit_signal);
    sqlite3_bind_int(insert, 15, (int)event->state);
    sqlite3_bind_int(insert, 16, (int)event->code);
    bind_text(insert, 17, event->worker);
    bind_text(insert, 18, event->roster);
    bind_text(insert, 19, event->text);
}

cadre_status statements_write_event(struct statements *statements, struct job_id job,
    const struct history_event *event, struct cadre_error *error)
{
    uint64_t number = 0;
    CADRE_TRY(last_event(statements, job, &number, error));
    number++;
    sqlite3_stmt *insert = statements->prepared[STATEMENT_EVENT];
    bind_u64(insert, 1, job.n);
    bind_u64(insert, 2, number);
    bind_event(insert, event);
    CADRE_TRY(statements_run(statements, STATEMENT_EVENT, error));
    if (number <= LIMIT_EVENTS) {
        return CADRE_OK;
    }
    sqlite3_stmt *drop = statements->prepared[STATEMENT_EVENTS_DROPPED];
    bind_u64(drop, 1, job.n);
    bind_u64(drop, 2, LIMIT_EVENTS_FIRST);
    bind_u64(drop, 3, number - (LIMIT_EVENTS - LIMIT_EVENTS_FIRST));
    return statements_run(statements, STATEMENT_EVENTS_DROPPED, error);
}

struct event_visitor {
    void (*visit)(void *user, const struct history_event *event);
    void *user;
    bool damaged;
};

static cadre_status visit_event(void *user, sqlite3_stmt *row, struct cadre_error *error)
{
    (void)error;
    struct event_visitor *visitor = user;
    int64_t slot = sqlite3_column_int64(row, 5);
    visitor->damaged = visitor->damaged || sqlite3_column_int(row, 18) != 0;
    if (visitor->damaged) {
        return CADRE_OK;
    }
    visitor->visit(visitor->user, &(struct history_event){.number = column_u64(row, 0),
                                      .time_us = column_u64(row, 1),
                                      .kind = (enum history_kind)sqlite3_column_int(row, 2),
                                      .generation = column_u64(row, 3),
                                      .position = column_u64(row, 4),
                                      .slot = slot < 0 ? HISTORY_SLOT_NONE : (uint32_t)slot,
                                      .incarnation = column_u64(row, 6),
                                      .tasks = column_u32(row, 7),
                                      .undone = column_u64(row, 8),
                                      .restarted = column_u64(row, 9) != 0,
                                      .waited_us = column_u64(row, 10),
                                      .exit_code = sqlite3_column_int(row, 11),
                                      .exit_signal = sqlite3_column_int(row, 12),
                                      .state = (enum job_state)sqlite3_column_int(row, 13),
                                      .code = (cadre_status)sqlite3_column_int(row, 14),
                                      .worker = column_text(row, 15),
                                      .roster = column_text(row, 16),
                                      .text = column_text(row, 17)});
    return CADRE_OK;
}

cadre_status statements_history(struct statements *statements, struct job_id job, uint64_t after,
    size_t max, void (*visit)(void *user, const struct history_event *event), void *user,
    uint64_t *ret_last, struct cadre_error *error)
{
    static const char *const own[] = {NULL};
    static const char *const tables[] = {"event", NULL};
    struct event_visitor visitor = {.visit = visit, .user = user};
    const uint64_t from[] = {job.n, after, max};
    CADRE_TRY(statements_find_whole(statements, job, own, error));
    CADRE_TRY(last_event(statements, job, ret_last, error));
    CADRE_TRY(statements_each_of(statements, "read the history of a job",
        "SELECT " EVENT_COLUMNS ", sum IS NOT " SUM_OF("event",
            EVENT_COLUMNS) " FROM event WHERE job = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
        from, visit_event, &visitor, error));
    return visitor.damaged ? check_job_rows(statements, job, tables, error) : CADRE_OK;
}
