/* SPDX-License-Identifier: Apache-2.0
 * Progress and metrics of a training: counted per step, sent or drawn a few times a second.
 * step/ and metrics of the program call it; lifecycle/ ends it. */
#include "worker/library/runtime/input/reports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/program.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/summaries/summaries.h"

#define REPORT_EVERY_US (CADRE_US_PER_S / 4)
#define FLUSH_US        (5 * CADRE_US_PER_S) /* that the end waits for values to be stored */

cadre_status reports_open(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->input->reports == NULL);
    strategy->input->reports = calloc(1, sizeof *strategy->input->reports);
    if (strategy->input->reports == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for reports");
    }
    strategy->input->reports->by_hand = strategy->environment->by_hand;
    strategy->input->reports->show = true;
    return CADRE_OK;
}

void reports_free(cadre_strategy *strategy)
{
    free(strategy->input->reports);
    strategy->input->reports = NULL;
}

bool reports_are_shown(const cadre_strategy *strategy)
{
    return strategy->input->reports->show;
}

static struct progress input_reports_snapshot(const struct reports *reports)
{
    CADRE_ASSERT(reports->metric_count <= LIMIT_METRICS);
    struct progress progress = {
        .stream = reports->primary == NULL ? "" : reports->primary->name,
        .epoch = reports->epoch,
        .epochs = reports->epochs,
        .step = reports->step,
        .steps = reports->steps_per_epoch,
        .left_s = -1,
        .metrics = reports->metrics,
        .metric_count = reports->metric_count,
    };
    uint64_t elapsed_us = clock_monotonic_us() - reports->started_us;
    if (reports->steps > 0 && elapsed_us > 0) {
        double elapsed_s = (double)elapsed_us / (double)CADRE_US_PER_S;
        progress.samples_per_s = (double)reports->samples / elapsed_s;
        if (reports->steps_per_epoch > 0 && reports->epochs > reports->epoch) {
            double left =
                (double)(reports->epochs - reports->epoch) * (double)reports->steps_per_epoch -
                (double)reports->step;
            progress.left_s = left * elapsed_s / (double)reports->steps;
        }
    }
    return progress;
}

/* Sends or draws, at most four times a second unless `now`. Only the chief does. */
static void input_reports_report(cadre_strategy *strategy, bool now)
{
    struct reports *reports = strategy->input->reports;
    uint64_t now_us = clock_monotonic_us();
    bool due = now || now_us - reports->reported_us >= REPORT_EVERY_US;
    bool begun = reports->primary != NULL || reports->steps > 0;
    if (strategy->roster.rank != 0 || !begun || !reports->changed || !due) {
        return;
    }
    reports->reported_us = now_us;
    reports->changed = false;
    struct progress progress = input_reports_snapshot(reports);
    if (!reports->by_hand) {
        task_progress(strategy->task, &progress);
        if (now || now_us - reports->shards_us >= CADRE_US_PER_S) {
            reports->shards_us = now_us;
            report_shards(strategy);
        }
    } else if (reports->show && show_redraws()) {
        show_bar(&progress);
        reports->bar_drawn = true;
    }
}

/* Where nothing can be redrawn an epoch gets one text line, once all of it was reported. */
static void show_finished_epoch(struct reports *reports)
{
    if (reports->by_hand && reports->show && reports->epoch_unshown && !show_redraws()) {
        struct progress progress = input_reports_snapshot(reports);
        show_epoch(&progress);
    }
    reports->epoch_unshown = false;
}

void reports_epoch(cadre_strategy *strategy, const cadre_distributed_dataset *distributed)
{
    struct reports *reports = strategy->input->reports;
    CADRE_ASSERT(distributed->at.epochs_begun > 0);
    if (reports->primary == NULL) {
        reports->primary = distributed;
        reports->started_us = clock_monotonic_us();
        reports->steps = 0; /* the steps without a batch that came before it */
        reports->epoch_unshown = false;
    }
    if (reports->primary != distributed) {
        return;
    }
    if (strategy->roster.rank == 0) {
        show_finished_epoch(reports);
    }
    input_reports_report(strategy, false);
    reports->epoch = distributed->at.epochs_begun - 1;
    reports->epochs = distributed->epochs == UINT64_MAX ? 0 : distributed->epochs;
    int64_t steps = distributed->steps;
    reports->steps_per_epoch = steps > 0 ? (uint64_t)steps : 0;
    reports->step = distributed->at.applied; /* more than 0 in an epoch that is entered again */
    reports->changed = true;
}

void reports_step(
    cadre_strategy *strategy, const cadre_distributed_dataset *distributed, int64_t rows)
{
    struct reports *reports = strategy->input->reports;
    CADRE_ASSERT(rows >= 0);
    if (distributed != reports->primary) {
        return;
    }
    reports->steps++;
    reports->step = distributed == NULL ? strategy_position(strategy) : distributed->at.applied;
    reports->samples += (uint64_t)rows;
    reports->changed = true;
    reports->epoch_unshown = true;
    input_reports_report(strategy, false);
}

/* A metric. RESOURCE_EXHAUSTED when there are LIMIT_METRICS other names. */
static cadre_status reports_metric(
    cadre_strategy *strategy, const char *name, double value, struct cadre_error *error)
{
    struct reports *reports = strategy->input->reports;
    CADRE_ASSERT(strlen(name) < sizeof reports->names[0]); /* the caller has checked it */
    uint32_t at = 0;
    while (at < reports->metric_count && strcmp(reports->names[at], name) != 0) {
        at++;
    }
    if (at == LIMIT_METRICS) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "'%s' would be the metric number %d; at most %d are reported", name, LIMIT_METRICS + 1,
            LIMIT_METRICS);
    }
    if (at == reports->metric_count) {
        snprintf(reports->names[at], sizeof reports->names[at], "%s", name);
        reports->metrics[at].name = reports->names[at];
        reports->metric_count++;
    }
    reports->metrics[at].value = value;
    reports->changed = true;
    input_reports_report(strategy, false);
    /* The ledger has no positions of the chief of a ps job: its values are counted. */
    bool counted = strategy->environment->role != ROLE_NONE;
    if (!reports->by_hand &&
        !task_report_value(strategy->task, name, STEP_COUNTED, counted, value)) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for another value of '%s'", name);
    }
    return CADRE_OK;
}

void reports_flush(cadre_strategy *strategy)
{
    input_reports_report(strategy, true);
    task_flush_values(strategy->task, FLUSH_US);
    if (strategy->roster.rank == 0) {
        show_finished_epoch(strategy->input->reports);
    }
}

void reports_end(cadre_strategy *strategy)
{
    struct reports *reports = strategy->input->reports;
    if (reports != NULL && reports->bar_drawn) {
        show_bar_end();
        reports->bar_drawn = false;
    }
}

/* --- public --- */

cadre_status cadre_report(cadre_strategy *strategy, const char *name, double value)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = strategy_require(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        status = reported_name_check(name, &error);
    }
    if (status == CADRE_OK) {
        status = reports_metric(strategy, name, value, &error);
    }
    if (status == CADRE_OK) {
        status = summaries_add(strategy,
            &(struct summary_event){.kind = SUMMARY_SCALAR, .tag = name, .scalar = value}, &error);
    }
    return api_return(status, &error);
}

void cadre_show_progress(cadre_strategy *strategy, bool show)
{
    if (strategy_is_registered(strategy)) {
        strategy->input->reports->show = show;
    }
}
