/* SPDX-License-Identifier: Apache-2.0
 * The task's side of a preemption: saving at one step with all others, leaving, and what calls
 * return afterwards. input/ and step/ call preemption_check at the beginning of a step. */
#include "worker/library/runtime/preemption/preemption.h"

#include <math.h>
#include <stdlib.h>

#include "cadre/preemption.h"
#include "common/base/clock.h"
#include "common/model/job.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/digests/digests.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/strategy/strategy_registry.h"
#include "worker/library/runtime/preemption/notice.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/input/reports.h"

_Static_assert(CADRE_EXIT_PREEMPTED == JOB_EXIT_PREEMPTED, "a task and its job exit with the same");

#define GRACE_SECONDS_MAX 1e6

struct preemption {
    cadre_preemption_options options;
    struct notice notice;
    bool watched; /* the notice is */
    bool kept;    /* save_function was called, if there is one */
};

/* --- the handler --- */

static cadre_status watch_signals(cadre_strategy *strategy, struct cadre_error *error)
{
    struct preemption *preemption = strategy->preemption;
    CADRE_ASSERT(preemption->options.grace_seconds >= 0);
    double grace_us = preemption->options.grace_seconds * (double)CADRE_US_PER_S;
    notice_unwatch(&preemption->notice);
    preemption->notice = (struct notice){.task = strategy->task, .grace_us = (uint64_t)grace_us};
    preemption->watched = false;
    if (preemption->options.off) {
        return CADRE_OK;
    }
    CADRE_TRY(notice_watch(&preemption->notice, strategy->environment->daemon_pid, error));
    preemption->watched = true;
    return CADRE_OK;
}

cadre_status preemption_open(struct cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->preemption == NULL);
    strategy->preemption = calloc(1, sizeof *strategy->preemption);
    if (strategy->preemption == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the handler of preemption");
    }
    return strategy->environment->preemption ? watch_signals(strategy, error) : CADRE_OK;
}

/* Before the task is closed. */
static void preemption_close(struct cadre_strategy *strategy)
{
    if (strategy->preemption != NULL) {
        notice_unwatch(&strategy->preemption->notice);
        free(strategy->preemption);
        strategy->preemption = NULL;
    }
}

/* --- leaving --- */

/* It makes no call with the strategy: where the job stops for good, none may begin or end. */
static void call_program(
    cadre_strategy *strategy, cadre_preemption_function function, const char *which)
{
    if (function != NULL) {
        const char *before = strategy_set_activity(strategy, which);
        function(strategy, strategy->preemption->options.user);
        (void)strategy_set_activity(strategy, before);
    }
}

bool preemption_left(const struct cadre_strategy *strategy, int *ret_exit_code)
{
    const struct preemption *preemption = strategy->preemption;
    bool left = preemption != NULL && strategy->left;
    if (left && ret_exit_code != NULL) {
        int own = preemption->options.exit_code;
        *ret_exit_code = own != 0 ? own : CADRE_EXIT_PREEMPTED;
    }
    return left;
}

static cadre_status preemption_leave(cadre_strategy *strategy, struct cadre_error *error)
{
    struct preemption *preemption = strategy->preemption;
    CADRE_ASSERT(!strategy->left);
    const struct environment *environment = strategy->environment;
    unsigned long long position = (unsigned long long)strategy_position(strategy);
    int exit_code = CADRE_EXIT_PREEMPTED;
    strategy->left = true;
    cadre_error_set(error, CADRE_CANCELLED, "preempted: saved at step %llu", position);
    strategy->failed = *error;
    (void)preemption_left(strategy, &exit_code);
    cadre_check_set_exit_code(CADRE_CANCELLED, exit_code); /* for the program's CADRE_CHECK */
    if (environment->by_hand && strategy->roster.rank == 0) {
        reports_end(strategy);
        show_warning("preempted: saved at step %llu; CADRE_RESTORE=%s/checkpoint-%llu.json goes on "
                     "from there",
            position,
            environment->checkpoint_folder[0] != '\0' ? environment->checkpoint_folder
                                                      : environment->output_folder,
            position);
    }
    call_program(strategy, preemption->options.exit_function,
        "the exit_function of cadre_preemption_handler_set");
    return error->code;
}

/* Calls the program's save_function, which may change what it registered. */
static void preemption_keep(cadre_strategy *strategy)
{
    struct preemption *preemption = strategy->preemption;
    if (!preemption->kept) {
        preemption->kept = true;
        call_program(strategy, preemption->options.save_function,
            "the save_function of cadre_preemption_handler_set");
    }
}

/* Reports that it stops here, with the digest of its state. */
static cadre_status stop_at_step(cadre_strategy *strategy, struct cadre_error *error)
{
    uint64_t digest = 0;
    preemption_keep(strategy);
    CADRE_TRY(digests_at_end(strategy, &digest, error));
    task_report_paused(strategy->task, digest);
    return CADRE_OK;
}

/* In one generation; ABORTED and similar codes: a member was lost, and another one follows. */
static cadre_status save_and_wait(cadre_strategy *strategy, struct cadre_error *error)
{
    bool is_void = false;
    CADRE_TRY(checkpoint_before_stop(strategy, error));
    cadre_status status = task_await_goodbye(strategy->task, &is_void, error);
    return is_void ? strategy_set_failed(strategy, error) : status;
}

cadre_status preemption_check(struct cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->preemption != NULL);
    enum task_pause_point edge;
    while ((edge = task_pause_point(strategy->task)) == TASK_STOPS || edge == TASK_STOPPED) {
        cadre_status status =
            edge == TASK_STOPS ? stop_at_step(strategy, error) : save_and_wait(strategy, error);
        struct cadre_error cause = *error;
        if (status != CADRE_OK && !task_dismissed(strategy->task)) {
            if (!strategy_is_peer_failure(status) || strategy->failed.code != CADRE_OK) {
                return strategy_set_failed(strategy, error);
            }
            status = strategy_regroup(strategy, &cause, error);
        }
        if (task_dismissed(strategy->task)) {
            return preemption_leave(strategy, error);
        }
        CADRE_TRY(status);
    }
    return CADRE_OK;
}

const struct strategy_hooks preemption_hooks = {
    .name = "preemption",
    .close = preemption_close,
    .halt = preemption_check,
};

/* --- public --- */

static cadre_status check_options(
    const cadre_preemption_options *options, struct cadre_error *error)
{
    double grace = options->grace_seconds;
    if (!isfinite(grace) || grace < 0 || grace > GRACE_SECONDS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_preemption_handler_set: grace_seconds is %g; give 0 to %g", grace,
            GRACE_SECONDS_MAX);
    }
    if (options->exit_code < 0 || options->exit_code > 255) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_preemption_handler_set: exit_code is %d; give 1 to 255, or 0 for %d",
            options->exit_code, CADRE_EXIT_PREEMPTED);
    }
    return CADRE_OK;
}

cadre_status cadre_preemption_handler_set(
    cadre_strategy *strategy, const cadre_preemption_options *options)
{
    STRATEGY_CALL call = {0};
    const cadre_preemption_options defaults = {.off = false};
    struct cadre_error error = {0};
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK && options == NULL) {
        options = &defaults;
    }
    if (status == CADRE_OK) {
        status = check_options(options, &error);
    }
    if (status == CADRE_OK) {
        strategy->preemption->options = *options;
        status = watch_signals(strategy, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_preempt(cadre_strategy *strategy)
{
    struct cadre_error error = {0};
    if (!strategy_is_registered(strategy)) {
        return api_return(cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
                              "cadre_preempt was called with a strategy that has ended; nothing is "
                              "left to save"),
            &error);
    }
    if (strategy->worker != NULL) {
        return api_return(strategy_allowed_on_worker(strategy, __func__, &error), &error);
    }
    if (strategy->preemption->watched) {
        notice_raise(&strategy->preemption->notice);
    } else {
        task_preempt(strategy->task, true);
    }
    return CADRE_OK;
}

bool cadre_preempted(const cadre_strategy *strategy)
{
    return strategy_is_registered(strategy) && preemption_left(strategy, NULL);
}
