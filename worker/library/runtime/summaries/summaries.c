/* SPDX-License-Identifier: Apache-2.0
 * Event files as a part of a strategy. The strategy's hooks, reports of the program and checkpoints
 * call it. */
#include "worker/library/runtime/summaries/summaries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/event_file/event_log.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/summaries/generation_table.h"

#define TAG_STEP_SECONDS "cadre/step_seconds"
#define TAG_TASKS        "cadre/tasks"
#define TAG_GENERATIONS  "cadre/generations"

struct summaries_part {
    struct event_log *log; /* NULL: off */
    struct generation_table generations;
    bool described; /* the newest generation is in the file */
    uint64_t applied_us;
};

/* --- opening and closing --- */

static cadre_status summaries_open(cadre_strategy *strategy, struct cadre_error *error)
{
    struct event_target target;
    char run[24] = ""; /* of all but the first: a folder of its own, which is another run */
    CADRE_ASSERT(strategy->summaries == NULL);
    strategy->summaries = calloc(1, sizeof *strategy->summaries);
    if (strategy->summaries == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for event files");
    }
    if (strategy->number > 1) {
        snprintf(run, sizeof run, "%" PRIu64, strategy->number);
    }
    if (strategy->origin != STRATEGY_CONSTRUCTED ||
        !event_target_find(strategy->environment, run, &target)) {
        return CADRE_OK;
    }
    return event_log_open(&target, &strategy->summaries->log, error);
}

static void summaries_close(cadre_strategy *strategy)
{
    if (strategy->summaries != NULL) {
        event_log_close(strategy->summaries->log);
        strategy->summaries->log = NULL;
    }
}

static void summaries_free(cadre_strategy *strategy)
{
    if (strategy->summaries != NULL) {
        CADRE_ASSERT(strategy->summaries->log == NULL);
        generation_table_clear(&strategy->summaries->generations);
        free(strategy->summaries);
        strategy->summaries = NULL;
    }
}

static void summaries_exit(cadre_strategy *strategy)
{
    if (summaries_are_on(strategy)) {
        event_log_write_out(strategy->summaries->log);
    }
}

/* --- values --- */

bool summaries_are_on(const struct cadre_strategy *strategy)
{
    return strategy->summaries != NULL && strategy->summaries->log != NULL;
}

/* A value of the library: it begins no file, and is left out where there is no memory. */
static void add_own(cadre_strategy *strategy, const struct summary_event *value)
{
    struct cadre_error ignored;
    (void)event_log_add(strategy->summaries->log, value, false, &ignored);
}

/* The generations that this task knows of, once there is a file. */
static void describe_generation(cadre_strategy *strategy)
{
    struct summaries_part *part = strategy->summaries;
    if (part->described || !event_log_has_file(part->log)) {
        return;
    }
    part->described = true;
    char *text = generation_table_text(&part->generations);
    if (text != NULL) {
        add_own(strategy, &(struct summary_event){.kind = SUMMARY_TEXT,
                              .step = strategy->roster.resume,
                              .tag = TAG_GENERATIONS,
                              .text = text,
                              .text_bytes = strlen(text)});
        free(text);
    }
    add_own(strategy, &(struct summary_event){.kind = SUMMARY_SCALAR,
                          .step = strategy->roster.resume,
                          .tag = TAG_TASKS,
                          .scalar = strategy->roster.member_count});
}

cadre_status summaries_add(
    struct cadre_strategy *strategy, const struct summary_event *value, struct cadre_error *error)
{
    if (!summaries_are_on(strategy)) {
        return CADRE_OK;
    }
    struct summary_event event = *value;
    event.step = strategy_position(strategy);
    CADRE_TRY(event_log_add(strategy->summaries->log, &event, true, error));
    describe_generation(strategy);
    return CADRE_OK;
}

void summaries_flush(struct cadre_strategy *strategy)
{
    if (summaries_are_on(strategy)) {
        event_log_flush(strategy->summaries->log);
    }
}

/* A step is applied: how long it took, from the one before, with what came between. */
static void summaries_report(const struct step_order *order)
{
    cadre_strategy *strategy = order->strategy;
    if (!summaries_are_on(strategy)) {
        return;
    }
    uint64_t now_us = clock_monotonic_us();
    uint64_t before_us = strategy->summaries->applied_us;
    strategy->summaries->applied_us = now_us;
    if (before_us != 0) {
        add_own(strategy, &(struct summary_event){.kind = SUMMARY_SCALAR,
                              .step = order->position + 1,
                              .tag = TAG_STEP_SECONDS,
                              .scalar = (double)(now_us - before_us) / (double)CADRE_US_PER_S});
    }
}

/* --- generations --- */

static cadre_status summaries_reopen(cadre_strategy *strategy, struct cadre_error *error)
{
    const struct task_roster *roster = &strategy->roster;
    struct summaries_part *part = strategy->summaries;
    const uint32_t alone = 0;
    if (!summaries_are_on(strategy)) {
        return CADRE_OK;
    }
    CADRE_TRY(generation_table_add(&part->generations, roster->generation.number, roster->resume,
        roster->slots != NULL ? roster->slots : &alone,
        roster->slots != NULL ? roster->member_count : 1, strategy->state == STATE_RESTORES,
        error));
    part->described = false;
    if (roster->rank == 0) {
        event_log_lead(part->log, roster->generation.number, roster->resume);
        describe_generation(strategy);
    } else {
        event_log_follow(part->log);
    }
    return CADRE_OK;
}

const struct strategy_hooks summaries_hooks = {
    .name = "summaries",
    .open = summaries_open,
    .close = summaries_close,
    .free = summaries_free,
    .exit = summaries_exit,
    .report = summaries_report,
    .reopen = summaries_reopen,
};
