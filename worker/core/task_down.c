/* SPDX-License-Identifier: Apache-2.0
 * What a task is told: plans, releases, aborts, bye; and how it freezes. */
#include "worker/core/task_parts.h"

#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/text.h"

/* ---- freezing ---- */

/* An orderly freeze leaves the mesh open: a peer may still be inside its last collective (rule 17).
 */
void task_freeze(
    struct task_core *core, enum report_reason reason, const char *text, struct task_actions *out)
{
    CADRE_ASSERT(core->phase == TASK_SYNC || core->phase == TASK_RUN);
    core->phase = TASK_FROZEN;
    core->reason = reason;
    task_copy_text(core->text, sizeof(core->text), text);
    if (!task_is_orderly(reason)) {
        task_copy_text(task_append(out, TASK_ACTION_ABORT_MESH)->text, LIMIT_TEXT_BYTES, text);
    }
    task_append(out, TASK_ACTION_CHANGED);
    if (core->applying) {
        core->report_due =
            true; /* a running apply is let end, and the report says where it ended */
    } else {
        task_say_report(core, out);
    }
}

/* Halts or finishes when it stands where that is due. */
void task_settle(struct task_core *core, struct task_actions *out)
{
    if (core->phase != TASK_RUN || core->applying) {
        return;
    }
    if (core->position > core->halt_at) {
        /* Rule 3 forbids it. Not orderly (rule 31): what the others have at halt_at is not what
         * this one has. */
        char text[LIMIT_TEXT_BYTES];
        struct text builder = text_begin(text, sizeof(text));
        text_add(&builder, "told to halt at step ");
        text_add_u64(&builder, core->halt_at);
        text_add(&builder, ", but stands at step ");
        text_add_u64(&builder, core->position);
        task_freeze(core, REPORT_ABORT, text, out);
    } else if (core->position == core->halt_at) {
        task_freeze(core, REPORT_HALT, "", out);
    } else if (core->finished) {
        task_freeze(core, REPORT_FINISHED, "", out);
    }
}

static void leave(
    struct task_core *core, enum task_action_type how, const char *text, struct task_actions *out)
{
    core->phase = TASK_EXIT;
    core->report_due = false;
    if (how == TASK_ACTION_EXIT_VOID && core->generation.number != 0) {
        task_copy_text(task_append(out, TASK_ACTION_ABORT_MESH)->text, LIMIT_TEXT_BYTES, text);
    }
    task_copy_text(task_append(out, how)->text, LIMIT_TEXT_BYTES, text);
    task_append(out, TASK_ACTION_CHANGED);
}

/* ---- what it is told ---- */

/* UINT32_MAX: this incarnation is not in the roster (rule 12). */
static uint32_t rank_of(const struct task_core *core, const struct task_plan *plan)
{
    for (size_t i = 0; i < plan->roster_count; i++) {
        if (plan->roster[i].slot == core->slot &&
            plan->roster[i].incarnation == core->incarnation) {
            return (uint32_t)i;
        }
    }
    return UINT32_MAX;
}

/* NULL, or what is wrong with a plan that names this task. */
static const char *plan_fault(
    const struct task_core *core, const struct task_plan *plan, uint32_t rank)
{
    if (plan->source >= plan->roster_count) {
        return "the plan's source is not in its roster";
    }
    if (plan->resume > POSITION_MAX) {
        return "the plan resumes at an impossible step";
    }
    bool has_state = core->generation.number == 0 || core->clean;
    if (plan->source == rank && (core->position != plan->resume || !has_state)) {
        return "the plan takes the state of its first step from this task, which does not have it";
    }
    return NULL;
}

static void take_plan(
    struct task_core *core, const struct task_plan *plan, struct task_actions *out)
{
    if (plan->generation.number <= core->generation.number || core->report_due) {
        return; /* older, or the same once more */
    }
    uint32_t rank = rank_of(core, plan);
    if (rank == UINT32_MAX) {
        return;
    }
    if (core->phase == TASK_SYNC || core->phase == TASK_RUN) {
        /* Who did not report was not asked for (rule 6): where it stands is said first. */
        task_freeze(
            core, REPORT_ABORT, "a new generation was planned while this task was running", out);
        return;
    }
    const char *fault = plan_fault(core, plan, rank);
    if (fault != NULL) {
        leave(core, TASK_ACTION_EXIT_VOID, fault, out);
        return;
    }
    /* A joiner's state is whatever its program started with: it counts for the source only. Dirty
     * before the first byte is received (rule 11). */
    bool keeps = plan->source == rank ||
                 (core->generation.number != 0 && core->clean && core->position == plan->resume);
    core->clean = keeps;
    core->phase = TASK_SYNC;
    core->generation = plan->generation;
    core->resume = plan->resume;
    core->arrived = plan->resume;
    core->told = plan->resume;
    core->wanted = plan->resume;
    core->wanted_told = plan->resume;
    core->released = plan->resume;
    core->checkpoint_at = plan->checkpoint_at;
    core->snapshot_at = POSITION_NONE;
    core->halt_at = plan->halt_at;
    core->halt_kind = plan->halt_kind;
    core->text[0] = '\0';
    memset(&core->part, 0, sizeof(core->part));
    memset(core->digest, 0, sizeof(core->digest));
    task_append(out, TASK_ACTION_FORM);
    task_append(out, TASK_ACTION_CHANGED);
}

static void take_release(
    struct task_core *core, const struct task_release *release, struct task_actions *out)
{
    if (core->phase == TASK_JOIN || !generation_equal(release->generation, core->generation)) {
        return;
    }
    if (release->up_to < core->released || release->up_to > core->arrived) {
        return; /* an older one that was overtaken; or one that no honest minimum over the roster
                   can give */
    }
    core->released = release->up_to;
    core->checkpoint_at = release->checkpoint_at;
    core->halt_at = release->halt_at;
    core->halt_kind = release->halt_kind;
    task_append(out, TASK_ACTION_CHANGED);
    task_settle(core, out);
}

static void take_abort(
    struct task_core *core, const struct task_down *down, struct task_actions *out)
{
    if (core->phase == TASK_JOIN || !generation_equal(down->generation, core->generation)) {
        return;
    }
    if (core->phase == TASK_SYNC || core->phase == TASK_RUN) {
        task_freeze(core, REPORT_ABORT, down->reason, out);
    } else if (task_is_orderly(core->reason) && core->text[0] == '\0') {
        /* It has reported already. The mesh goes, and the reason is kept for the program. */
        task_copy_text(core->text, sizeof(core->text), down->reason);
        task_copy_text(
            task_append(out, TASK_ACTION_ABORT_MESH)->text, LIMIT_TEXT_BYTES, down->reason);
        task_append(out, TASK_ACTION_CHANGED);
    }
}

static void take_bye(struct task_core *core, const struct task_down *down, struct task_actions *out)
{
    bool done = core->phase == TASK_FROZEN && task_is_orderly(core->reason);
    if (done && generation_equal(down->generation, core->generation)) {
        leave(core, TASK_ACTION_EXIT_OK, "", out);
    }
}

void task_take_down(struct task_core *core, const struct task_down *down, struct task_actions *out)
{
    switch (down->type) {
    case TASK_DOWN_PLAN:
        take_plan(core, &down->plan, out);
        break;
    case TASK_DOWN_RELEASE:
        take_release(core, &down->release, out);
        break;
    case TASK_DOWN_ABORT:
        take_abort(core, down, out);
        break;
    case TASK_DOWN_RESET:
        leave(core, TASK_ACTION_EXIT_VOID, "its state is void: a new incarnation takes over", out);
        break;
    case TASK_DOWN_BYE:
        take_bye(core, down, out);
        break;
    case TASK_DOWN_SUPERSEDED:
        leave(core, TASK_ACTION_EXIT_VOID, "the job ended without this task", out);
        break;
    case TASK_DOWN_REFUSED:
        leave(core, TASK_ACTION_EXIT_VOID, down->refused.text, out);
        break;
    }
}
