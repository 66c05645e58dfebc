/* SPDX-License-Identifier: Apache-2.0
 * The evaluator's loop: between two evaluations it reads the servers' progress now and then. The
 * program of an evaluator calls it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cadre/program.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/event_file/event_log.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/ps_job/progress_note.h"
#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/ps_job/ps_task.h"
#include "worker/library/runtime/served/served.h"

#define ASK_US         (CADRE_US_PER_S / 4) /* how often the progress is read, at most */
#define INTERVAL_S_MAX (365.0 * 24 * 3600)
#define FLUSH_US       (5 * CADRE_US_PER_S) /* that the end waits for values to be stored */
#define RUN            "eval"               /* its event files are another run (tf.estimator) */

/* The training may report the same names; Keras writes evaluations to TensorBoard with this prefix,
 * too. */
#define CURVE_PREFIX "evaluation_"
#define NAME_MAX_LEN (LIMIT_NAME_BYTES - sizeof CURVE_PREFIX)

/* The process has one evaluator, which is one thread. */
static struct {
    struct ps_job_state *ps_job;
    bool begun;
    bool over;
    struct cadre_error failed;
    struct progress_note seen; /* when the last evaluation began */
    uint64_t left_us;          /* when it began */
    uint64_t evaluations;
    char names[LIMIT_METRICS][LIMIT_NAME_BYTES]; /* of this evaluation */
    struct metric metrics[LIMIT_METRICS];
    size_t metric_count;
    struct event_log *events; /* NULL: none are wanted */
} evaluator;

static bool is_evaluator(void)
{
    const struct environment *environment = program_environment();
    return environment != NULL && environment->role == ROLE_EVALUATOR;
}

/* It runs no closure that could be cancelled. */
static bool is_cancelled(void)
{
    return false;
}

static cadre_status evaluator_begin(struct cadre_error *error)
{
    CADRE_ASSERT(evaluator.ps_job == NULL);
    struct ps_job_state *ps_job;
    CADRE_TRY(ps_job_begin(&ps_job, error));
    evaluator.ps_job = ps_job;
    const struct ps_task_options options = {
        .session = ps_job->session, .directory = ps_job->directory, .address = ps_job->address};
    ps_job->session = NULL;
    CADRE_TRY(ps_task_open(&options, &ps_job->ps_task, error));
    ps_job_set_current(ps_job);
    struct event_target target;
    if (event_target_find(program_environment(), RUN, &target)) {
        CADRE_TRY(event_log_open(&target, &evaluator.events, error));
    }
    CADRE_TRY(ps_job_connect(ps_job, is_cancelled, error));
    return served_begin(ps_job, error);
}

/* --- waiting for something to evaluate --- */

/* Whether there is something new; *ret_final: and nothing will follow. */
static cadre_status evaluator_look(
    bool *ret_new, bool *ret_final, struct progress_note *ret_note, struct cadre_error *error)
{
    struct cadre_error ended = {0};
    *ret_final = directory_ended(evaluator.ps_job->directory, &ended) != CADRE_OK;
    if (*ret_final && ended.code != CADRE_CANCELLED) {
        *error = ended;
        return ended.code;
    }
    cadre_status status = progress_note_read(evaluator.ps_job, ret_note, error);
    *ret_new = status == CADRE_OK &&
               (ret_note->pushes != evaluator.seen.pushes || ret_note->step != evaluator.seen.step);
    return *ret_final ? CADRE_OK : status; /* servers that have exited by now are no fault */
}

/* Until `until_us`, or the end of the job. */
static void pause_until(uint64_t until_us)
{
    struct directory *directory = evaluator.ps_job->directory;
    uint64_t seen = directory_await_change(directory, 0, 0);
    uint64_t now_us;
    while (directory_ended(directory, NULL) == CADRE_OK &&
           (now_us = clock_monotonic_us()) < until_us) {
        seen = directory_await_change(directory, seen, until_us - now_us);
    }
}

/* PENDING: there is something to evaluate; OK: the job is over. */
static cadre_status await_next(double interval_s, struct cadre_error *error)
{
    struct progress_note note;
    bool is_new = false;
    bool is_final = false;
    if (evaluator.evaluations > 0) {
        pause_until(evaluator.left_us + (uint64_t)(interval_s * CADRE_US_PER_S));
    }
    for (;;) {
        CADRE_TRY(evaluator_look(&is_new, &is_final, &note, error));
        if (is_new || is_final) {
            break;
        }
        pause_until(clock_monotonic_us() + ASK_US);
    }
    evaluator.over = is_final;
    evaluator.seen = note;
    return is_new ? CADRE_PENDING : CADRE_OK;
}

static cadre_status evaluator_next(double interval_s, struct cadre_error *error)
{
    if (evaluator.over) {
        return CADRE_OK;
    }
    if (!(interval_s >= 0 && interval_s <= INTERVAL_S_MAX)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_next_evaluation was given an interval of %g s; give 0 to %.0f", interval_s,
            INTERVAL_S_MAX);
    }
    if (!evaluator.begun) {
        evaluator.begun = true;
        CADRE_TRY(evaluator_begin(error));
    }
    return await_next(interval_s, error);
}

bool cadre_next_evaluation(double interval_s, uint64_t *ret_step)
{
    struct cadre_error error = {0};
    if (!is_evaluator() || evaluator.failed.code != CADRE_OK) {
        return false;
    }
    cadre_status status = evaluator_next(interval_s, &error);
    if (status == CADRE_CANCELLED) {
        status = CADRE_OK; /* the job was over before it began, or its servers have exited */
        evaluator.over = true;
    }
    if (status != CADRE_PENDING && status != CADRE_OK) {
        api_return(status, &error);
        evaluator.failed = error;
        evaluator.failed.code = status;
    }
    if (status != CADRE_PENDING) {
        return false;
    }
    evaluator.evaluations++;
    evaluator.metric_count = 0;
    evaluator.left_us = clock_monotonic_us();
    if (ret_step != NULL) {
        *ret_step = evaluator.seen.step;
    }
    return true;
}

/* --- its results --- */

static cadre_status keep_metric(const char *name, double value, struct cadre_error *error)
{
    CADRE_ASSERT(evaluator.metric_count <= LIMIT_METRICS);
    CADRE_TRY(reported_name_check(name, error));
    if (strlen(name) > NAME_MAX_LEN) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the name of a metric of an evaluation, '%.32s...', has %zu characters; give at most "
            "%zu, because its curve is called " CURVE_PREFIX "NAME",
            name, strlen(name), NAME_MAX_LEN);
    }
    size_t i = 0;
    while (i < evaluator.metric_count && strcmp(evaluator.names[i], name) != 0) {
        i++;
    }
    if (i == LIMIT_METRICS) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "'%s' is one number too many of this evaluation, which may have %d", name,
            LIMIT_METRICS);
    }
    if (i == evaluator.metric_count) {
        snprintf(evaluator.names[i], sizeof evaluator.names[i], "%s", name);
        evaluator.metric_count++;
    }
    evaluator.metrics[i] = (struct metric){.name = evaluator.names[i], .value = value};
    return CADRE_OK;
}

/* The value as a point of its curve, and in the event file of this run. */
static cadre_status keep_value(const char *name, double value, struct cadre_error *error)
{
    struct ps_task *ps_task = evaluator.ps_job->ps_task;
    char curve[LIMIT_NAME_BYTES];
    uint64_t step = evaluator.seen.step;
    snprintf(curve, sizeof curve, CURVE_PREFIX "%s", name);
    if (!program_environment()->by_hand && !ps_task_value(ps_task, curve, step, value)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "'%s' gets no curve: there is no memory, or the evaluator has reported %d other names",
            name, LIMIT_METRICS);
    }
    if (evaluator.events == NULL) {
        return CADRE_OK;
    }
    event_log_lead(evaluator.events, ps_task_generation(ps_task), step > 0 ? step - 1 : 0);
    return event_log_add(evaluator.events,
        &(struct summary_event){.kind = SUMMARY_SCALAR, .step = step, .tag = name, .scalar = value},
        true, error);
}

static cadre_status evaluator_report(const char *name, double value, struct cadre_error *error)
{
    if (evaluator.evaluations == 0 || evaluator.ps_job == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_report_evaluation was called outside of an evaluation; call it in a task of "
            "type evaluator, after cadre_next_evaluation has returned true");
    }
    CADRE_TRY(keep_metric(name, value, error));
    const struct progress progress = {.stream = "evaluation",
        .epoch = evaluator.evaluations - 1,
        .step = evaluator.seen.step,
        .left_s = -1,
        .metrics = evaluator.metrics,
        .metric_count = evaluator.metric_count};
    ps_task_progress(evaluator.ps_job->ps_task, &progress);
    return keep_value(name, value, error);
}

cadre_status cadre_report_evaluation(const char *name, double value)
{
    struct cadre_error error = {0};
    return api_return(evaluator_report(name, value, &error), &error);
}

/* Prints it, unless the coordinator reports why the job ends. */
static void print_failure(void)
{
    struct ps_job_state *ps_job = evaluator.ps_job;
    if (ps_job != NULL && ps_job->ps_task != NULL &&
        directory_ended(ps_job->directory, NULL) == CADRE_OK) {
        ps_task_failed(ps_job->ps_task, &evaluator.failed);
    }
}

int cadre_evaluator_finish(void)
{
    struct cadre_error error = evaluator.failed;
    if (!is_evaluator()) {
        cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_evaluator_finish was called in a task that is no evaluator; call it where "
            "cadre_task_type_of() is CADRE_TASK_EVALUATOR");
    }
    if (error.code != CADRE_OK) {
        print_failure();
        api_return(error.code, &error);
        show_failure(&error);
    }
    evaluator.over = true;
    event_log_close(evaluator.events);
    evaluator.events = NULL;
    if (evaluator.ps_job != NULL && evaluator.ps_job->ps_task != NULL) {
        ps_task_flush_values(evaluator.ps_job->ps_task, FLUSH_US);
    }
    if (evaluator.ps_job != NULL) {
        served_end(evaluator.ps_job);
    }
    ps_job_free(evaluator.ps_job);
    evaluator.ps_job = NULL;
    return error.code == CADRE_OK ? 0 : 1;
}
