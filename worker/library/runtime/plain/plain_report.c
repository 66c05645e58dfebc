/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/plain/plain.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/event_file/event_log.h"

#define REPORT_EVERY_US (CADRE_US_PER_S / 4)
#define FLUSH_US        (5 * CADRE_US_PER_S) /* that the end waits for values to be stored */

static void plain_report_report(struct plain *plain, bool now)
{
    struct plain_report *report = &plain->report;
    uint64_t now_us = clock_monotonic_us();
    bool due = now || report->reported_us == 0 || now_us - report->reported_us >= REPORT_EVERY_US;
    if (plain->roster.rank != 0 || !report->changed || !due) {
        return;
    }
    report->reported_us = now_us;
    report->changed = false;
    const struct progress progress = {
        .stream = "",
        .step = report->step,
        .steps = report->steps,
        .left_s = -1,
        .metrics = report->metrics,
        .metric_count = report->metric_count,
    };
    if (!plain->environment->by_hand) {
        task_progress(plain->task, &progress);
    } else if (show_redraws()) {
        show_bar(&progress);
        report->bar_drawn = true;
    }
}

void plain_report_end(struct plain *plain)
{
    plain_report_report(plain, true);
    task_flush_values(plain->task, FLUSH_US);
    if (plain->report.bar_drawn) {
        show_bar_end();
        plain->report.bar_drawn = false;
    }
    plain_report_close(plain);
}

/* --- event files --- */

cadre_status plain_report_open(struct plain *plain, struct cadre_error *error)
{
    struct event_target target;
    return event_target_find(plain->environment, "", &target)
               ? event_log_open(&target, &plain->report.events, error)
               : CADRE_OK;
}

void plain_report_flush(struct plain *plain)
{
    if (plain->report.events != NULL) {
        event_log_flush(plain->report.events);
    }
}

void plain_report_close(struct plain *plain)
{
    event_log_close(plain->report.events);
    plain->report.events = NULL;
}

/* The step that the program is at, or how often the name was reported that was reported most. */
static uint64_t plain_report_step(const struct plain_report *report)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < report->metric_count; i++) {
        most = report->reported[i] > most ? report->reported[i] : most;
    }
    return report->numbered ? report->step : most;
}

/* Where the step goes back, what was written of it and of later ones is void: another file begins,
 * as it does where the program has begun again. */
static cadre_status plain_report_event(struct plain *plain, uint32_t at, struct cadre_error *error)
{
    struct plain_report *report = &plain->report;
    uint64_t step = plain_report_step(report);
    if (report->events == NULL || plain->roster.rank != 0) {
        return CADRE_OK;
    }
    if (step < report->event_step) {
        event_log_follow(report->events);
    }
    report->event_step = step;
    event_log_lead(report->events, plain->roster.generation.number, step > 0 ? step - 1 : 0);
    return event_log_add(report->events,
        &(struct summary_event){.kind = SUMMARY_SCALAR,
            .step = step,
            .tag = report->names[at],
            .scalar = report->metrics[at].value},
        true, error);
}

/* --- what is reported --- */

static cadre_status plain_report_put(struct plain_report *report, const char *name, double value,
    uint32_t *ret_at, struct cadre_error *error)
{
    CADRE_ASSERT(report->metric_count <= LIMIT_METRICS);
    uint32_t at = 0;
    while (at < report->metric_count && strcmp(report->names[at], name) != 0) {
        at++;
    }
    if (at == LIMIT_METRICS) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "'%s' would be the metric number %d; at most %d are reported", name, LIMIT_METRICS + 1,
            LIMIT_METRICS);
    }
    if (at == report->metric_count) {
        snprintf(report->names[at], sizeof report->names[at], "%s", name);
        report->metrics[at].name = report->names[at];
        report->metric_count++;
    }
    report->metrics[at].value = value;
    report->reported[at]++;
    report->changed = true;
    *ret_at = at;
    return CADRE_OK;
}

cadre_status cadre_plain_report(const char *name, double value)
{
    struct cadre_error error = {0};
    struct plain *plain = NULL;
    cadre_status status = plain_enter(__func__, &plain, &error);
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    uint32_t at = 0;
    status = reported_name_check(name, &error);
    if (status == CADRE_OK) {
        status = plain_report_put(&plain->report, name, value, &at, &error);
    }
    if (status == CADRE_OK && !plain->environment->by_hand) {
        uint64_t step = plain->report.numbered ? plain->report.step : STEP_COUNTED;
        if (!task_report_value(plain->task, name, step, true, value)) {
            status = cadre_error_set(
                &error, CADRE_RESOURCE_EXHAUSTED, "no memory for another value of '%s'", name);
        }
    }
    if (status == CADRE_OK) {
        plain_report_report(plain, false);
        status = plain_report_event(plain, at, &error);
    }
    plain_leave(plain);
    return api_return(status, &error);
}

cadre_status cadre_plain_progress(uint64_t step, uint64_t steps)
{
    struct cadre_error error = {0};
    struct plain *plain = NULL;
    cadre_status status = plain_enter(__func__, &plain, &error);
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    if (steps != 0 && step > steps) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "%s was called with step %" PRIu64 " of %" PRIu64
            "; give the number of all steps, or 0 where it is not known",
            __func__, step, steps);
    } else {
        plain->report.numbered = true;
        plain->report.step = step;
        plain->report.steps = steps;
        plain->report.changed = true;
        plain_report_report(plain, false);
    }
    plain_leave(plain);
    return api_return(status, &error);
}
