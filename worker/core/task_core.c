/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/core/task_core.h"

#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/text.h"

/* A plan beyond it is refused, so that position + window never wraps around. */
#define POSITION_MAX (UINT64_MAX / 2)

static struct task_action *append(struct task_actions *out, enum task_action_type type)
{
    CADRE_ASSERT(out->count < TASK_ACTIONS_PER_STEP_MAX);
    struct task_action *action = &out->items[out->count++];
    action->type = type;
    memset(&action->up, 0, sizeof(action->up));
    action->text[0] = '\0';
    return action;
}

static void copy_text(char *to, size_t size, const char *from)
{
    struct text text = text_begin(to, size);
    text_add(&text, from == NULL ? "" : from);
}

static bool is_orderly(enum report_reason reason)
{
    return reason == REPORT_HALT || reason == REPORT_FINISHED;
}

/* ---- what it says ---- */

/* A task without a connection says nothing: what it would have said is in its next hello. */
static struct task_up *say(
    const struct task_core *core, struct task_actions *out, enum task_up_type type)
{
    if (!core->connected) {
        return NULL;
    }
    struct task_up *up = &append(out, TASK_ACTION_SEND)->up;
    up->type = type;
    return up;
}

static void say_hello(const struct task_core *core, struct task_actions *out)
{
    struct task_up *up = say(core, out, TASK_UP_HELLO);
    up->hello = (struct task_hello){
        .frame_version = TASK_FRAME_VERSION,
        .library_version = CADRE_VERSION,
        .pid = core->pid,
        .replicas = core->replicas,
        .mesh_address = core->mesh_address,
        .generation = core->generation,
        .position = core->position,
        .clean = core->clean,
        .released = core->released,
        .arrived = core->arrived,
        .frozen = core->phase == TASK_FROZEN,
        .reason = core->phase == TASK_FROZEN ? core->reason : 0,
    };
}

/* What may be told as applied beside the cursor that was claimed. */
static uint64_t tellable(const struct task_core *core)
{
    return core->position < core->cut ? core->position : core->cut;
}

static void say_arrive(struct task_core *core, struct task_actions *out)
{
    const uint64_t *digest = core->position < core->cut ? core->digest : core->cut_digest;
    core->told = tellable(core);
    struct task_up *up = say(core, out, TASK_UP_ARRIVE);
    if (up != NULL) {
        up->arrive = (struct task_arrive){
            .generation = core->generation,
            .up_to = core->arrived,
            .applied = core->told,
            .cursor = core->arrived_cursor,
            .digest = {digest[0], digest[1]},
        };
    }
}

static void say_part(const struct task_core *core, struct task_actions *out)
{
    struct task_up *up = say(core, out, TASK_UP_PART);
    if (up != NULL) {
        up->part = core->part;
        up->part.path = core->part_path;
    }
}

/* The applied steps that were not told yet go first, so that what is committed is whole when the
 * report is read. */
static void say_report(struct task_core *core, struct task_actions *out)
{
    core->report_due = false;
    if (tellable(core) > core->told) {
        say_arrive(core, out);
    }
    struct task_up *up = say(core, out, TASK_UP_REPORT);
    if (up != NULL) {
        up->report = (struct task_report){
            .generation = core->generation,
            .position = core->position,
            .clean = core->clean,
            .reason = core->reason,
            .text = core->text,
        };
    }
}

/* ---- arrivals ---- */

/* The end of the epoch that the program stands in, as far as it is known. */
static uint64_t epoch_end(const struct task_core *core)
{
    if (core->cursor.steps == 0 || core->cursor.steps > POSITION_MAX - core->cursor.first) {
        return POSITION_MAX;
    }
    return core->cursor.first + core->cursor.steps;
}

/* How far batches can be claimed now. Never less than was claimed: a watermark is not taken back.
 */
static uint64_t reachable(const struct task_core *core)
{
    uint64_t up_to = core->position + core->window_steps;
    if (up_to > core->ready) {
        up_to = core->ready;
    }
    if (up_to > epoch_end(core)) {
        up_to = epoch_end(core);
    }
    return up_to > core->arrived ? up_to : core->arrived;
}

/* What has arrived is of the epoch that the program stands in. */
static void claim(struct task_core *core)
{
    core->arrived_cursor = core->cursor;
    core->cut = POSITION_NONE;
}

/* Says how far it has come when that is worth a message: each half window, when nothing is left in
 * hand, at the end of what is ready; and at once when `asked`. So the control plane costs two
 * messages a window at most. */
static void arrive(struct task_core *core, bool asked, struct task_actions *out)
{
    if (core->phase != TASK_RUN) {
        return; /* rule 2: one that is not in step with its generation claims nothing */
    }
    uint64_t up_to = reachable(core);
    bool more = up_to > core->arrived;
    uint64_t half = core->window_steps > 2 ? core->window_steps / 2 : 1;
    bool untold = tellable(core) > core->told;
    bool due = untold && (core->position - core->told >= half ||
                             core->position == epoch_end(core) || core->position == core->ready);
    if ((more && (asked || core->arrived <= core->position)) || due) {
        if (more) {
            core->arrived = up_to;
            claim(core);
        }
        say_arrive(core, out);
    }
}

/* ---- freezing ---- */

/* An orderly freeze leaves the mesh open: a peer may still be inside its last collective (rule 17).
 */
static void freeze(
    struct task_core *core, enum report_reason reason, const char *text, struct task_actions *out)
{
    CADRE_ASSERT(core->phase == TASK_SYNC || core->phase == TASK_RUN);
    core->phase = TASK_FROZEN;
    core->reason = reason;
    copy_text(core->text, sizeof(core->text), text);
    if (!is_orderly(reason)) {
        copy_text(append(out, TASK_ACTION_ABORT_MESH)->text, LIMIT_TEXT_BYTES, text);
    }
    append(out, TASK_ACTION_CHANGED);
    if (core->applying) {
        core->report_due =
            true; /* a running apply is let end, and the report says where it ended */
    } else {
        say_report(core, out);
    }
}

/* Halts or finishes when it stands where that is due. */
static void settle(struct task_core *core, struct task_actions *out)
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
        freeze(core, REPORT_ABORT, text, out);
    } else if (core->position == core->halt_at) {
        freeze(core, REPORT_HALT, "", out);
    } else if (core->finished) {
        freeze(core, REPORT_FINISHED, "", out);
    }
}

static void leave(
    struct task_core *core, enum task_action_type how, const char *text, struct task_actions *out)
{
    core->phase = TASK_EXIT;
    core->report_due = false;
    if (how == TASK_ACTION_EXIT_VOID && core->generation.number != 0) {
        copy_text(append(out, TASK_ACTION_ABORT_MESH)->text, LIMIT_TEXT_BYTES, text);
    }
    copy_text(append(out, how)->text, LIMIT_TEXT_BYTES, text);
    append(out, TASK_ACTION_CHANGED);
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
        freeze(core, REPORT_ABORT, "a new generation was planned while this task was running", out);
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
    core->released = plan->resume;
    core->checkpoint_at = plan->checkpoint_at;
    core->snapshot_at = POSITION_NONE;
    core->halt_at = plan->halt_at;
    core->halt_kind = plan->halt_kind;
    core->text[0] = '\0';
    memset(&core->arrived_cursor, 0, sizeof(core->arrived_cursor));
    memset(&core->part, 0, sizeof(core->part));
    memset(core->digest, 0, sizeof(core->digest));
    core->cut = POSITION_NONE;
    append(out, TASK_ACTION_FORM);
    append(out, TASK_ACTION_CHANGED);
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
    append(out, TASK_ACTION_CHANGED);
    settle(core, out);
}

static void take_abort(
    struct task_core *core, const struct task_down *down, struct task_actions *out)
{
    if (core->phase == TASK_JOIN || !generation_equal(down->generation, core->generation)) {
        return;
    }
    if (core->phase == TASK_SYNC || core->phase == TASK_RUN) {
        freeze(core, REPORT_ABORT, down->reason, out);
    } else if (is_orderly(core->reason) && core->text[0] == '\0') {
        /* It has reported already. The mesh goes, and the reason is kept for the program. */
        copy_text(core->text, sizeof(core->text), down->reason);
        copy_text(append(out, TASK_ACTION_ABORT_MESH)->text, LIMIT_TEXT_BYTES, down->reason);
        append(out, TASK_ACTION_CHANGED);
    }
}

static void take_bye(struct task_core *core, const struct task_down *down, struct task_actions *out)
{
    bool done = core->phase == TASK_FROZEN && is_orderly(core->reason);
    if (done && generation_equal(down->generation, core->generation)) {
        leave(core, TASK_ACTION_EXIT_OK, "", out);
    }
}

static void take_down(
    struct task_core *core, const struct task_down *down, struct task_actions *out)
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

/* ---- what the program does ---- */

static void connect(struct task_core *core, struct task_actions *out)
{
    core->connected = true;
    say_hello(core, out);
    bool in_generation = core->phase == TASK_RUN || core->phase == TASK_FROZEN;
    if (in_generation && (core->arrived > core->resume || core->position > core->resume)) {
        say_arrive(core, out);
    }
    if (in_generation && core->part.path != NULL) {
        say_part(core, out); /* rule 19; one that is known already does no harm */
    }
    if (core->phase == TASK_FROZEN && !core->report_due) {
        say_report(core, out);
    }
}

static void become_synced(struct task_core *core, struct task_actions *out)
{
    if (core->phase != TASK_SYNC) {
        return; /* aborted while it formed */
    }
    core->phase = TASK_RUN;
    core->position = core->resume;
    core->clean = true;
    append(out, TASK_ACTION_CHANGED);
    settle(core, out);
    arrive(core, true, out);
}

static void apply(struct task_core *core, uint64_t position)
{
    CADRE_ASSERT(!core->applying);
    if (core->phase != TASK_RUN) {
        return;
    }
    CADRE_ASSERT(position == core->position);
    CADRE_ASSERT(core->released > position);
    core->applying = true;
    core->clean = false;
}

static void applied(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    if (core->phase == TASK_EXIT) {
        core->applying = false;
        return;
    }
    CADRE_ASSERT(core->applying);
    CADRE_ASSERT(event->position == core->position);
    core->applying = false;
    core->clean = true;
    core->position++;
    core->digest[0] += event->digest[0];
    core->digest[1] += event->digest[1];
    if (core->report_due) {
        say_report(core, out);
        return;
    }
    settle(core, out);
    arrive(core, false, out);
}

/* A stall at the first step of an epoch or generation cannot be helped: nothing could be asked for
 * earlier. */
static void stalled(struct task_core *core, uint64_t position, struct task_actions *out)
{
    bool avoidable = position > core->resume && position > core->cursor.first;
    if (core->phase == TASK_RUN && avoidable && core->window_steps < LIMIT_WINDOW_STEPS) {
        core->window_steps *= 2;
    }
    arrive(core, true, out);
}

static void peer_error(struct task_core *core, const char *text, struct task_actions *out)
{
    core->applying = false; /* when it was: torn, and clean stays false */
    if (core->phase == TASK_SYNC || core->phase == TASK_RUN) {
        freeze(core, REPORT_PEER_ERROR, text, out);
    } else if (core->report_due) {
        say_report(core, out);
    }
}

static void keep_part(
    struct task_core *core, const struct task_part *part, struct task_actions *out)
{
    if (core->phase != TASK_RUN && core->phase != TASK_FROZEN) {
        return;
    }
    core->part = *part;
    core->part.generation = core->generation;
    copy_text(core->part_path, sizeof(core->part_path), part->path);
    core->part.path = core->part_path;
    core->snapshot_at = part->position;
    say_part(core, out);
    append(out, TASK_ACTION_CHANGED);
}

static bool covers(const struct cursor *cursor, uint64_t position)
{
    return cursor->first <= position &&
           (cursor->steps == 0 || position - cursor->first < cursor->steps);
}

/* A program that left an epoch early has claimed steps of it that belong to the next one. They are
 * claimed anew before anything of the next one is told as applied: both cannot be true of one
 * position. */
static void take_ready(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    core->ready = event->position < POSITION_MAX ? event->position : POSITION_MAX;
    core->cursor = event->cursor;
    arrive(core, true, out);
    bool stale = core->arrived > core->resume && core->arrived_cursor.first < core->cursor.first;
    if (core->phase != TASK_RUN || !stale) {
        return;
    }
    if (covers(&core->cursor, core->arrived - 1)) {
        claim(core);
        say_arrive(core, out);
    } else if (core->cut == POSITION_NONE) {
        core->cut = core->position;
        core->cut_digest[0] = core->digest[0];
        core->cut_digest[1] = core->digest[1];
    }
}

void task_core_step(
    struct task_core *core, const struct task_event *event, struct task_actions *out)
{
    out->count = 0;
    if (event->type == TASK_EVENT_DISCONNECTED) {
        core->connected = false;
        return;
    }
    if (core->phase == TASK_EXIT && event->type != TASK_EVENT_APPLIED) {
        return;
    }
    switch (event->type) {
    case TASK_EVENT_CONNECTED:
        connect(core, out);
        break;
    case TASK_EVENT_DISCONNECTED:
        break;
    case TASK_EVENT_DOWN:
        take_down(core, event->down, out);
        break;
    case TASK_EVENT_SYNCED:
        become_synced(core, out);
        break;
    case TASK_EVENT_SYNC_FAILED:
        if (core->phase == TASK_SYNC) {
            freeze(core, REPORT_PEER_ERROR, event->text, out);
        }
        break;
    case TASK_EVENT_READY:
        take_ready(core, event, out);
        break;
    case TASK_EVENT_APPLY:
        apply(core, event->position);
        break;
    case TASK_EVENT_APPLIED:
        applied(core, event, out);
        break;
    case TASK_EVENT_STALLED:
        stalled(core, event->position, out);
        break;
    case TASK_EVENT_PEER_ERROR:
        peer_error(core, event->text, out);
        break;
    case TASK_EVENT_PART:
        keep_part(core, event->part, out);
        break;
    case TASK_EVENT_FINISH:
        core->finished = true;
        settle(core, out);
        break;
    }
}

void task_core_init(struct task_core *core, uint32_t slot, uint64_t incarnation, uint32_t replicas,
    uint32_t pid, const char *mesh_address)
{
    memset(core, 0, sizeof(*core));
    core->phase = TASK_JOIN;
    core->slot = slot;
    core->incarnation = incarnation;
    core->replicas = replicas;
    core->pid = pid;
    core->checkpoint_at = POSITION_NONE;
    core->snapshot_at = POSITION_NONE;
    core->halt_at = POSITION_NONE;
    core->cut = POSITION_NONE;
    core->window_steps = TASK_WINDOW_START_STEPS;
    copy_text(core->mesh_address, sizeof(core->mesh_address), mesh_address);
}

bool task_core_may_enter(const struct task_core *core, uint64_t position)
{
    bool snapshot_due = core->checkpoint_at == position && core->snapshot_at != position;
    return core->phase == TASK_RUN && !core->applying && position == core->position &&
           core->released > position && position < core->halt_at && !snapshot_due;
}

const char *task_core_invariant(const struct task_core *core)
{
    if (core->window_steps < 1 || core->window_steps > LIMIT_WINDOW_STEPS) {
        return "the window is within its limits";
    }
    if (core->phase == TASK_EXIT) {
        return NULL;
    }
    if ((core->phase == TASK_JOIN) != (core->generation.number == 0)) {
        return "a task is in a generation unless it joins";
    }
    if (core->released > core->arrived) {
        return "nothing is released that has not arrived";
    }
    if (core->report_due && (core->phase != TASK_FROZEN || !core->applying)) {
        return "a report waits only for a running apply";
    }
    if (core->applying && core->clean) {
        return "a state that is being written is not clean";
    }
    if (core->phase != TASK_RUN) {
        return core->applying && !core->report_due
                   ? "nothing is applied outside a running generation"
                   : NULL;
    }
    if (core->position < core->resume || core->position > core->released) {
        return "applied steps were released in this generation";
    }
    if (core->told > core->position) {
        return "only applied steps are told as applied";
    }
    if (!core->clean && !core->applying) {
        return "a running task is clean between its steps";
    }
    if (!core->applying && (core->position >= core->halt_at || core->finished)) {
        return "who stands at the halt, or has finished, is frozen";
    }
    return NULL;
}
