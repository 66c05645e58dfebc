/* SPDX-License-Identifier: Apache-2.0
 * Messages from the coordinator to a task: warm, plans, releases, aborts, bye; and how the task
 * freezes. task_core.c calls it. */
#include "worker/core/task_internal.h"

#include <string.h>

#include "common/model/roster_tree.h"
#include "common/pure/assert.h"
#include "common/pure/text.h"

/* ---- freezing ---- */

/* Rule 17: an orderly freeze leaves the mesh open, because a peer may still be inside its last
 * collective. */
void task_freeze(
    struct task_core *core, enum report_reason reason, const char *text, struct task_actions *out)
{
    /* A frozen task freezes again only for a failure. */
    CADRE_ASSERT(core->phase != TASK_JOIN && core->phase != TASK_EXIT);
    CADRE_ASSERT(core->phase != TASK_FROZEN || reason == REPORT_FAILED);
    if (core->staged) {
        CADRE_ASSERT(core->phase == TASK_SYNC);
        CADRE_ASSERT(!core->clean);
        core->staged = false;
        core->clean = true; /* rule 11: what was received beside it is dropped, its own state is
                             * still whole */
    }
    core->phase = TASK_FROZEN;
    core->reason = reason;
    if (text != core->text) {
        task_copy_text(core->text, sizeof(core->text), text);
    }
    if (!task_is_orderly(reason)) {
        task_copy_text(
            task_append(out, TASK_ACTION_ABORT_MESH)->text, LIMIT_TEXT_BYTES, core->text);
    }
    task_append(out, TASK_ACTION_CHANGED);
    if (core->applying) {
        core->report_due = true; /* rule 6: a running apply ends first, then it reports */
    } else {
        task_send_report(core, out);
    }
}

/* Freezes at the end of the program. A halt takes effect only at the program's PAUSE_POINT, so that
 * all tasks have done the same between steps, and the state can be hashed. */
void task_settle(struct task_core *core, struct task_actions *out)
{
    if (core->phase != TASK_RUN || core->applying) {
        return;
    }
    CADRE_ASSERT(core->clean);
    if (core->position > core->halt_at) {
        /* Rule 3 excludes it. Not orderly (rule 31): its state is not what the others have at
         * halt_at. */
        char text[LIMIT_TEXT_BYTES];
        struct text builder = text_begin(text, sizeof(text));
        text_add(&builder, "the coordinator halts the job at step ");
        text_add_u64(&builder, core->halt_at);
        text_add(&builder, ", and this task is at step ");
        text_add_u64(&builder, core->position);
        task_freeze(core, REPORT_ABORT, text, out);
    } else if (core->finished) {
        task_freeze(core, REPORT_FINISHED, "", out);
    }
}

/* Rules 7 and 16: without bye (EXIT_VOID) the shell ends the program before its code after the
 * loop. */
static void task_down_leave(
    struct task_core *core, enum task_action_type how, const char *text, struct task_actions *out)
{
    CADRE_ASSERT(core->phase != TASK_EXIT);
    CADRE_ASSERT(how == TASK_ACTION_EXIT_OK || how == TASK_ACTION_EXIT_VOID);
    core->phase = TASK_EXIT;
    core->report_due = false;
    core->staged = false;
    if (how == TASK_ACTION_EXIT_VOID && core->generation.number != 0) {
        task_copy_text(task_append(out, TASK_ACTION_ABORT_MESH)->text, LIMIT_TEXT_BYTES, text);
    }
    task_copy_text(task_append(out, how)->text, LIMIT_TEXT_BYTES, text);
    task_append(out, TASK_ACTION_CHANGED);
}

/* ---- messages from the coordinator ---- */

/* UINT32_MAX: this incarnation is not in the roster (rule 12). */
static uint32_t rank_of(const struct task_core *core, const struct task_plan *plan)
{
    for (size_t i = 0; i < plan->roster_count; i++) {
        if (plan->roster[i].slot == core->slot &&
            plan->roster[i].incarnation == core->incarnation) {
            return plan_rank(plan, i);
        }
    }
    return UINT32_MAX;
}

/* NULL, or what is wrong with a plan that names this task. */
static const char *plan_fault(
    const struct task_core *core, const struct task_plan *plan, uint32_t rank)
{
    CADRE_ASSERT(rank < plan_member_count(plan));
    if (plan->source >= plan_member_count(plan) && plan->source != SOURCE_NONE) {
        return "the plan's source is not in its roster";
    }
    if (plan->resume > POSITION_MAX) {
        return "the plan resumes at an impossible step";
    }
    if (plan->source == SOURCE_NONE && (core->generation.number != 0 || core->warm)) {
        return "the plan starts from the beginning, and this task has begun already";
    }
    if (core->warm && core->generation.number == 0 && !core->joins) {
        return "the plan names this task, which has not reached a step yet";
    }
    bool has_state = core->clean || (core->generation.number == 0 && !core->warm);
    if (plan->source == rank && (core->position != plan->resume || !has_state)) {
        return "the plan takes the state of its first step from this task, which does not have it";
    }
    return NULL;
}

/* Whether its state is that of the plan's first step: then it receives nothing (rule 11). A
 * joiner's is its program's initial state: it counts for the source only. */
static bool keeps_state(const struct task_core *core, const struct task_plan *plan, uint32_t rank)
{
    CADRE_ASSERT(plan->source != rank || core->position == plan->resume);
    bool there = core->generation.number != 0 && core->clean && core->position == plan->resume;
    return plan->source != SOURCE_NONE && (plan->source == rank || there);
}

/* Of the older generation only the program itself and its window stay (rule 13). Input and steps
 * are claimed again by the program's next READY. */
static void enter_generation(struct task_core *core, const struct task_plan *plan)
{
    CADRE_ASSERT(plan->generation.number > core->generation.number);
    CADRE_ASSERT(plan->resume <= POSITION_MAX);
    CADRE_ASSERT(core->phase == TASK_JOIN || core->phase == TASK_FROZEN);
    CADRE_ASSERT(!core->applying);
    core->generation = plan->generation;
    core->alone = plan_member_count(plan) == 1;
    core->resume = plan->resume;
    core->consumed_count = 0;
    core->consumed_unsent = 0;
    core->ready = plan->resume;
    core->arrived = plan->resume;
    core->claimed = false;
    core->sent_applied = plan->resume;
    core->wanted = plan->resume;
    core->wanted_sent = plan->resume;
    core->released = plan->resume;
    core->checkpoint_at = plan->checkpoint_at;
    core->halt_at = plan->halt_at;
    core->halt_kind = plan->halt_kind;
    core->halt_stream = plan->halt_stream;
    core->verified = (struct verified){0};
    core->digest = 0;
    core->finished = false; /* its program finishes again: there may be another chief, which saves
                             */
    /* A part on the plan's timeline stays valid, and no other task has it; one beyond `resume` is
     * void (rule 18). */
    if (core->part.path != NULL && core->part.position <= plan->resume) {
        core->part.generation = plan->generation;
    } else {
        memset(&core->part, 0, sizeof(core->part));
    }
}

static void on_plan(struct task_core *core, const struct task_plan *plan, struct task_actions *out)
{
    if (plan->generation.number <= core->generation.number || core->report_due) {
        return; /* rule 13: older, or a duplicate */
    }
    uint32_t rank = rank_of(core, plan);
    if (rank == UINT32_MAX) {
        return; /* rule 12: it names another incarnation */
    }
    if (core->phase == TASK_SYNC || core->phase == TASK_RUN) {
        /* Rule 6: no report of this task chose the source: it freezes and reports first. */
        task_freeze(
            core, REPORT_ABORT, "a new generation was planned while this task was running", out);
        return;
    }
    const char *fault = plan_fault(core, plan, rank);
    if (fault != NULL) {
        task_down_leave(core, TASK_ACTION_EXIT_VOID, fault, out);
        return;
    }
    bool keeps = keeps_state(core, plan, rank);
    CADRE_ASSERT(!core->staged);
    core->staged = core->clean && !keeps;
    core->clean = keeps; /* dirty before the first byte (rule 11) */
    enter_generation(core, plan);
    core->phase = TASK_SYNC;
    if (core->code != CADRE_OK) {
        /* Its program failed, and reported that to a generation that had ended, or to none. */
        task_freeze(core, REPORT_FAILED, core->text, out);
        return;
    }
    core->text[0] = '\0';
    task_append(out, TASK_ACTION_FORM);
    task_append(out, TASK_ACTION_CHANGED);
}

/* A task that waits for its plan receives it too, so that its program can continue. */
static void on_warm(struct task_core *core, struct task_actions *out)
{
    if (core->phase == TASK_JOIN) {
        CADRE_ASSERT(core->generation.number == 0);
        core->warm = true;
        task_append(out, TASK_ACTION_WARM);
    }
}

static void on_release(
    struct task_core *core, const struct task_release *release, struct task_actions *out)
{
    if (core->phase == TASK_JOIN || !generation_equal(release->generation, core->generation)) {
        return; /* rule 13 */
    }
    if (release->up_to < core->released || release->up_to > core->arrived) {
        return; /* rule 2: an older release, or one beyond what this task has arrived at */
    }
    CADRE_ASSERT(release->up_to >= core->released);
    core->released = release->up_to;
    core->checkpoint_at = release->checkpoint_at;
    core->halt_at = release->halt_at;
    core->halt_kind = release->halt_kind;
    core->halt_stream = release->halt_stream;
    if (release->published != POSITION_NONE &&
        (core->published == POSITION_NONE || release->published > core->published)) {
        core->published = release->published;
    }
    task_append(out, TASK_ACTION_CHANGED);
    task_settle(core, out);
}

/* Rule 13: only of its own generation. */
static void on_abort(struct task_core *core, const struct task_down *down, struct task_actions *out)
{
    if (core->phase == TASK_JOIN || !generation_equal(down->generation, core->generation)) {
        return;
    }
    if (core->phase == TASK_SYNC || core->phase == TASK_RUN) {
        task_freeze(core, REPORT_ABORT, down->reason, out);
    } else if (task_is_orderly(core->reason) && core->text[0] == '\0') {
        CADRE_ASSERT(core->phase == TASK_FROZEN);
        /* It has reported already. The mesh is closed, and the reason is kept for the program. */
        task_copy_text(core->text, sizeof(core->text), down->reason);
        task_copy_text(
            task_append(out, TASK_ACTION_ABORT_MESH)->text, LIMIT_TEXT_BYTES, down->reason);
        task_append(out, TASK_ACTION_CHANGED);
    }
}

/* Rules 16 and 17: bye counts only for a task that ended in order in the final generation. */
static void on_goodbye(
    struct task_core *core, const struct task_down *down, struct task_actions *out)
{
    bool done = core->phase == TASK_FROZEN && task_is_orderly(core->reason);
    if (done && generation_equal(down->generation, core->generation)) {
        CADRE_ASSERT(!core->applying);
        CADRE_ASSERT(core->clean); /* in order: its state is whole */
        task_down_leave(core, TASK_ACTION_EXIT_OK, "", out);
    }
}

void task_on_down(struct task_core *core, const struct task_down *down, struct task_actions *out)
{
    CADRE_ASSERT(core->phase != TASK_EXIT);
    switch (down->type) {
    case TASK_DOWN_PLAN:
        on_plan(core, &down->plan, out);
        break;
    case TASK_DOWN_RELEASE:
        on_release(core, &down->release, out);
        break;
    case TASK_DOWN_ABORT:
        on_abort(core, down, out);
        break;
    case TASK_DOWN_RESET: /* rule 7 */
        task_down_leave(
            core, TASK_ACTION_EXIT_VOID, "its state is void: a new incarnation takes over", out);
        break;
    case TASK_DOWN_GOODBYE:
        on_goodbye(core, down, out);
        break;
    case TASK_DOWN_SUPERSEDED: /* rule 16 */
        task_down_leave(
            core, TASK_ACTION_EXIT_VOID, "the job goes on or has ended without this task", out);
        break;
    case TASK_DOWN_REFUSED:
        task_down_leave(core, TASK_ACTION_EXIT_VOID, down->refused.text, out);
        break;
    case TASK_DOWN_WARM:
        on_warm(core, out);
        break;
    case TASK_DOWN_MEMBERS:
    case TASK_DOWN_VALUES_KEPT:
    case TASK_DOWN_TRACE:
        break; /* the shell handles them */
    }
}
