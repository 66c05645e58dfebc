/* SPDX-License-Identifier: Apache-2.0
 * What a task is told: warm, plans, releases, aborts, bye; and how it freezes. */
#include "worker/core/task_internal.h"

#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/text.h"

/* ---- freezing ---- */

/* An orderly freeze leaves the mesh open: a peer may still be inside its last collective (rule 17).
 */
void task_freeze(
    struct task_core *core, enum report_reason reason, const char *text, struct task_actions *out)
{
    /* Only a failure is told beyond another reason. */
    CADRE_ASSERT(core->phase != TASK_JOIN && core->phase != TASK_EXIT);
    CADRE_ASSERT(core->phase != TASK_FROZEN || reason == REPORT_FAILED);
    if (core->staged) {
        CADRE_ASSERT(core->phase == TASK_SYNC);
        CADRE_ASSERT(!core->clean);
        core->staged = false;
        core->clean = true; /* nothing of what was received is kept: it stands where it stood */
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
        core->report_due =
            true; /* a running apply is let end, and the report says where it ended */
    } else {
        task_send_report(core, out);
    }
}

/* Finishes when it stands where that is due. A halt takes effect where the program says that it
 * stands still (EDGE), so that all that programs do between steps is done by all, and its state can
 * be hashed. */
void task_settle(struct task_core *core, struct task_actions *out)
{
    if (core->phase != TASK_RUN || core->applying) {
        return;
    }
    CADRE_ASSERT(core->clean);
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
    } else if (core->finished) {
        task_freeze(core, REPORT_FINISHED, "", out);
    }
}

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
    CADRE_ASSERT(rank < plan->roster_count);
    CADRE_ASSERT(plan->roster[rank].slot == core->slot);
    if (plan->source >= plan->roster_count && plan->source != SOURCE_NONE) {
        return "the plan's source is not in its roster";
    }
    if (plan->resume > POSITION_MAX) {
        return "the plan resumes at an impossible step";
    }
    if (plan->source == SOURCE_NONE && (core->generation.number != 0 || core->warm)) {
        return "the plan begins anew, and this task has begun already";
    }
    if (core->warm && core->generation.number == 0 && !core->joins) {
        return "the plan counts on this task, which has not come to a step yet";
    }
    bool has_state = core->clean || (core->generation.number == 0 && !core->warm);
    if (plan->source == rank && (core->position != plan->resume || !has_state)) {
        return "the plan takes the state of its first step from this task, which does not have it";
    }
    return NULL;
}

/* Whether its state is that of the plan's first step: then it receives nothing. A joiner's is
 * whatever its program started with: it counts for the source only. */
static bool keeps_state(const struct task_core *core, const struct task_plan *plan, uint32_t rank)
{
    CADRE_ASSERT(plan->source != rank || core->position == plan->resume);
    bool there = core->generation.number != 0 && core->clean && core->position == plan->resume;
    return plan->source != SOURCE_NONE && (plan->source == rank || there);
}

/* Nothing of the older generation is left but the program itself and its window. What was claimed
 * of input and of steps is claimed anew, by the program's next READY. */
static void enter_generation(struct task_core *core, const struct task_plan *plan)
{
    CADRE_ASSERT(plan->generation.number > core->generation.number);
    CADRE_ASSERT(plan->resume <= POSITION_MAX);
    CADRE_ASSERT(core->phase == TASK_JOIN || core->phase == TASK_FROZEN);
    CADRE_ASSERT(!core->applying);
    core->generation = plan->generation;
    core->resume = plan->resume;
    core->consumed_count = 0;
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
    core->finished = false; /* its program says so again: there may be another chief, who saves */
    /* A part on the plan's line is still one, and nobody else can say it; one beyond is void. */
    if (core->part.path != NULL && core->part.position <= plan->resume) {
        core->part.generation = plan->generation;
    } else {
        memset(&core->part, 0, sizeof(core->part));
    }
}

static void on_plan(struct task_core *core, const struct task_plan *plan, struct task_actions *out)
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
        /* Its program failed and has said so to a generation that was over, or to none. */
        task_freeze(core, REPORT_FAILED, core->text, out);
        return;
    }
    core->text[0] = '\0';
    task_append(out, TASK_ACTION_FORM);
    task_append(out, TASK_ACTION_CHANGED);
}

/* One that waits for its plan already hears that the others went on. */
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
        return;
    }
    if (release->up_to < core->released || release->up_to > core->arrived) {
        return; /* an older one that was overtaken; or one that no honest minimum over the roster
                   can give */
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

static void on_abort(struct task_core *core, const struct task_down *down, struct task_actions *out)
{
    if (core->phase == TASK_JOIN || !generation_equal(down->generation, core->generation)) {
        return;
    }
    if (core->phase == TASK_SYNC || core->phase == TASK_RUN) {
        task_freeze(core, REPORT_ABORT, down->reason, out);
    } else if (task_is_orderly(core->reason) && core->text[0] == '\0') {
        CADRE_ASSERT(core->phase == TASK_FROZEN);
        /* It has reported already. The mesh goes, and the reason is kept for the program. */
        task_copy_text(core->text, sizeof(core->text), down->reason);
        task_copy_text(
            task_append(out, TASK_ACTION_ABORT_MESH)->text, LIMIT_TEXT_BYTES, down->reason);
        task_append(out, TASK_ACTION_CHANGED);
    }
}

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
    case TASK_DOWN_RESET:
        task_down_leave(
            core, TASK_ACTION_EXIT_VOID, "its state is void: a new incarnation takes over", out);
        break;
    case TASK_DOWN_GOODBYE:
        on_goodbye(core, down, out);
        break;
    case TASK_DOWN_SUPERSEDED:
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
        break; /* not the ledger's: the shell's */
    }
}
