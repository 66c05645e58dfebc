/* SPDX-License-Identifier: Apache-2.0
 * Between the local tasks and the coordinator: frames up, messages down, and what a task last sent.
 * agent_core.c calls it. */
#include "worker/core/agent_table.h"

#include <string.h>

#include "common/pure/assert.h"

/* ---- up ---- */

static void agent_relay_refuse(struct agent_actions *out, struct task_ref ref, const char *why)
{
    CADRE_ASSERT(why[0] != '\0');
    struct agent_action *action = agent_append(out, AGENT_ACTION_REFUSE, ref);
    action->code = CADRE_FAILED_PRECONDITION;
    agent_copy_text(action->text, sizeof(action->text), why);
}

static void keep_hello(struct agent_resend *resend, const struct task_hello *hello)
{
    resend->hello = *hello;
    agent_copy_text(
        resend->library_version, sizeof(resend->library_version), hello->library_version);
    agent_copy_text(resend->mesh_address, sizeof(resend->mesh_address), hello->mesh_address);
    resend->hello.library_version = resend->library_version;
    resend->hello.mesh_address = resend->mesh_address;
    /* A task sends its join, report, part and notice again behind its hello, if it has any. */
    resend->has_join = false;
    resend->has_report = false;
    resend->has_part = false;
    resend->has_preempt = false;
    CADRE_ASSERT(resend->hello.mesh_address != hello->mesh_address); /* a copy: that one goes */
}

static void keep_report(struct agent_resend *resend, const struct task_report *report)
{
    resend->has_join = false;
    resend->has_report = true;
    resend->report = *report;
    agent_copy_text(resend->report_text, sizeof(resend->report_text), report->text);
    resend->report.text = resend->report_text;
    resend->hello.frozen = true;
    resend->hello.reason = report->reason;
    resend->hello.position = report->position;
    resend->hello.clean = report->clean;
    CADRE_ASSERT(resend->report.text != report->text);
}

/* A failure is final, in any generation. */
static bool has_failed(const struct agent_resend *resend)
{
    return resend->has_report && resend->report.reason == REPORT_FAILED;
}

void agent_resend_task(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out)
{
    if (!task->connected) {
        return; /* its hello follows */
    }
    const struct agent_resend *resend = agent_resend_of(core, task);
    CADRE_ASSERT(resend->hello.library_version == resend->library_version);
    CADRE_ASSERT(resend->hello.mesh_address == resend->mesh_address);
    struct task_up up = {.type = TASK_UP_HELLO, .hello = resend->hello};
    agent_send_relay(core, task->ref, &up, out);
    if (resend->has_join) {
        CADRE_ASSERT(resend->hello.generation.number == 0);
        up = (struct task_up){.type = TASK_UP_JOIN, .join = resend->join};
        agent_send_relay(core, task->ref, &up, out);
    }
    if (resend->has_preempt) {
        up = (struct task_up){.type = TASK_UP_PREEMPT, .preempt = resend->preempt};
        agent_send_relay(core, task->ref, &up, out);
    }
}

void agent_resend_report(
    struct agent_core *core, const struct agent_task *task, struct agent_actions *out)
{
    const struct agent_resend *resend = agent_resend_of(core, task);
    struct task_up up;
    if (!task->connected) {
        return;
    }
    if (resend->has_report) {
        CADRE_ASSERT(resend->hello.frozen);
        CADRE_ASSERT(resend->report.text == resend->report_text);
        agent_consumed_report(core, task, out);
        up = (struct task_up){.type = TASK_UP_REPORT, .report = resend->report};
        agent_send_relay(core, task->ref, &up, out);
    }
    if (resend->has_part) {
        CADRE_ASSERT(resend->part.part.path == resend->part.path);
        up = (struct task_up){.type = TASK_UP_PART, .part = resend->part.part};
        agent_send_relay(core, task->ref, &up, out);
    }
}

/* Of a task that has ended, because its exit does not report the program's failure. A coordinator
 * that has not received a hello of the task since its own start gets the hello first. */
void agent_send_failure(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out)
{
    const struct agent_resend *resend = agent_resend_of(core, task);
    CADRE_ASSERT(task->phase >= AGENT_TASK_GONE);
    if (!has_failed(resend)) {
        return;
    }
    struct task_up up = {.type = TASK_UP_HELLO, .hello = resend->hello};
    agent_send_relay(core, task->ref, &up, out);
    up = (struct task_up){.type = TASK_UP_REPORT, .report = resend->report};
    agent_send_relay(core, task->ref, &up, out);
}

static void on_task_hello(struct agent_core *core, struct agent_task *task,
    const struct task_up *up, struct agent_actions *out)
{
    CADRE_ASSERT(task->phase >= AGENT_TASK_RUNNING && task->phase <= AGENT_TASK_KILLED);
    CADRE_ASSERT(!task->adopted || !task->connected);
    if (task->connected) {
        agent_relay_refuse(out, task->ref, "the task sent hello twice on one connection");
        task->connected = false;
        return;
    }
    if (up->hello.frame_version != TASK_FRAME_VERSION) {
        agent_relay_refuse(out, task->ref,
            "the program's libcadre has another protocol version than this worker: rebuild it");
        return;
    }
    task->connected = true;
    keep_hello(agent_resend_of(core, task), &up->hello);
    if (task->adopted && task->group == GROUP_NONE && !task->is_ps_task &&
        up->hello.generation.number > 0) {
        agent_group_rejoin(core, task, up->hello.generation);
    }
    task->adopted = false;
    agent_send_relay(core, task->ref, up, out);
}

/* A task that has received a plan since is no joiner any more. */
static void on_task_join(struct agent_core *core, const struct agent_task *task,
    const struct task_up *up, struct agent_actions *out)
{
    CADRE_ASSERT(task->connected);
    struct agent_resend *resend = agent_resend_of(core, task);
    if (resend->hello.generation.number == 0 && !resend->has_report) {
        resend->has_join = true;
        resend->join = up->join;
        agent_send_relay(core, task->ref, up, out);
    }
}

void agent_on_task_up(struct agent_core *core, struct task_ref ref, const struct task_up *up,
    struct agent_actions *out)
{
    struct agent_task *task = agent_find(core, ref);
    if (task == NULL || task->phase < AGENT_TASK_RUNNING) {
        agent_relay_refuse(out, ref, "no such task runs on this worker");
        return;
    }
    if (task->phase >= AGENT_TASK_GONE) {
        return; /* left in its socket; its end is sent already */
    }
    if (up->type != TASK_UP_HELLO && !task->connected) {
        agent_relay_refuse(out, ref, "the task must send hello first");
        return;
    }
    CADRE_ASSERT(task->connected || up->type == TASK_UP_HELLO);
    struct agent_resend *resend = agent_resend_of(core, task);
    switch (up->type) {
    case TASK_UP_HELLO:
        on_task_hello(core, task, up, out);
        break;
    case TASK_UP_ARRIVE:
        if (agent_is_current(core, task, up->arrive.generation)) {
            resend->hello.position = up->arrive.applied;
            resend->hello.clean = true;
            resend->hello.arrived = up->arrive.up_to;
            agent_arrive(core, task, &up->arrive, out);
        }
        break;
    case TASK_UP_REPORT:
        if (agent_is_current(core, task, up->report.generation) ||
            up->report.reason == REPORT_FAILED) { /* which is final, in whatever generation */
            keep_report(resend, &up->report);
            agent_consumed_report(core, task, out);
            agent_send_relay(core, ref, up, out);
        }
        break;
    case TASK_UP_PART:
        if (agent_is_current(core, task, up->part.generation)) {
            agent_on_part(core, task, &up->part, out);
        }
        break;
    case TASK_UP_PREEMPT:
        resend->has_preempt = true;
        resend->preempt = up->preempt;
        agent_send_relay(core, ref, up, out);
        break;
    case TASK_UP_PROGRESS:
    case TASK_UP_SHARDS:
    case TASK_UP_SPANS:
    case TASK_UP_BACKED: /* these two are sent until they are acknowledged: no copy is kept */
    case TASK_UP_VALUES:
        agent_send_relay(core, ref, up, out);
        break;
    case TASK_UP_JOIN:
        on_task_join(core, task, up, out);
        break;
    case TASK_UP_STREAM:
        agent_keep_stream(core, ref.job, &up->stream);
        agent_send_relay(core, ref, up, out);
        break;
    case TASK_UP_STALL:
        if (agent_is_current(core, task, up->stall.generation)) {
            agent_send_relay(core, ref, up, out);
        }
        break;
    }
}

/* ---- down ---- */

static bool agent_relay_accepts(const struct agent_task *task)
{
    CADRE_ASSERT(!task->connected || task->phase >= AGENT_TASK_RUNNING);
    return task->connected &&
           (task->phase == AGENT_TASK_RUNNING || task->phase == AGENT_TASK_TERMINATING);
}

static void pass_on(const struct agent_task *task, struct agent_actions *out)
{
    if (agent_relay_accepts(task)) {
        agent_append(out, AGENT_ACTION_DELIVER, task->ref);
    }
    CADRE_ASSERT(!task->connected || !task->adopted);
}

/* It receives the plan: what it sent before was of an older generation, except a failure. */
static void move_on(struct agent_resend *resend, const struct task_plan *plan)
{
    struct task_hello *hello = &resend->hello;
    if (!generation_equal(hello->generation, plan->generation)) {
        hello->generation = plan->generation;
        hello->released = plan->resume;
        hello->arrived = plan->resume;
        hello->frozen = has_failed(resend);
        resend->has_join = false;
        resend->has_report = has_failed(resend);
        resend->has_part = false;
    }
    CADRE_ASSERT(generation_equal(hello->generation, plan->generation));
}

/* Whether the plan enlists the task, or already has; false: it is in a newer generation. */
static bool agent_relay_enlist(
    struct agent_core *core, struct agent_task *task, const struct task_plan *plan)
{
    CADRE_ASSERT(task->phase >= AGENT_TASK_RUNNING);
    if (agent_is_current(core, task, plan->generation)) {
        return true; /* the plan was sent twice, or to one member after the other */
    }
    if (task->group != GROUP_NONE &&
        agent_group_of(core, task)->generation.number >= plan->generation.number) {
        return false;
    }
    agent_group_remove(core, task);
    task->group = agent_group_join(core, task->ref.job, plan->generation);
    agent_group_reset(core, task->group);
    CADRE_ASSERT(agent_is_current(core, task, plan->generation));
    CADRE_ASSERT(!task->arrived);
    return true;
}

static bool is_in_roster(const struct task_plan *plan, struct task_ref ref)
{
    for (size_t i = 0; i < plan->roster_count; i++) {
        if (plan->roster[i].slot == ref.slot && plan->roster[i].incarnation == ref.incarnation) {
            return true;
        }
    }
    return false;
}

/* The tasks that the roster names here become members of the generation, also those that are not
 * connected now, because the others' arrivals do not count without theirs. A task that is not in
 * the roster is in no generation any more. */
static void relay_plan(struct agent_core *core, struct job_id job, const struct task_plan *plan,
    const struct task_ref *one, struct agent_actions *out)
{
    for (uint32_t i = 0; i < core->entries; i++) {
        struct agent_task *task = &core->tasks[i];
        if (task->phase < AGENT_TASK_RUNNING || task->ref.job.n != job.n) {
            continue;
        }
        task->adopted = false; /* the plan gives its generation */
        if (!is_in_roster(plan, task->ref)) {
            bool older = task->group != GROUP_NONE &&
                         agent_group_of(core, task)->generation.number < plan->generation.number;
            if (older) {
                agent_group_remove(core, task);
            }
        } else if (agent_relay_enlist(core, task, plan) && agent_relay_accepts(task) &&
                   (one == NULL || task_ref_equal(*one, task->ref))) {
            move_on(agent_resend_of(core, task), plan);
            agent_append(out, AGENT_ACTION_DELIVER, task->ref);
        }
    }
}

static bool is_for_generation(enum task_down_type type)
{
    return type == TASK_DOWN_RELEASE || type == TASK_DOWN_ABORT || type == TASK_DOWN_GOODBYE;
}

static struct generation generation_of(const struct task_down *down)
{
    CADRE_ASSERT(is_for_generation(down->type)); /* of others it is not set */
    return down->type == TASK_DOWN_RELEASE ? down->release.generation : down->generation;
}

static void notify_task(struct agent_core *core, struct agent_task *task,
    const struct task_down *down, struct agent_actions *out)
{
    CADRE_ASSERT(task->phase != AGENT_TASK_NONE);
    CADRE_ASSERT(down->type != TASK_DOWN_PLAN); /* it goes through the roster */
    if (is_for_generation(down->type) && !task->is_ps_task &&
        !agent_is_current(core, task, generation_of(down))) {
        return;
    }
    struct task_hello *hello = &agent_resend_of(core, task)->hello;
    if (down->type == TASK_DOWN_RELEASE && agent_relay_accepts(task) &&
        down->release.up_to > hello->released) {
        hello->released = down->release.up_to;
    }
    if (down->type == TASK_DOWN_RELEASE) {
        agent_note_published(core, task, &down->release);
    }
    pass_on(task, out);
}

void agent_relay_down(
    struct agent_core *core, const struct agent_relay_down *relay_down, struct agent_actions *out)
{
    CADRE_ASSERT(core->linked);
    if (relay_down->down.type == TASK_DOWN_PLAN) {
        relay_plan(core, relay_down->job, &relay_down->down.plan,
            relay_down->one ? &relay_down->task : NULL, out);
        return;
    }
    if (relay_down->one) {
        struct agent_task *task = agent_find(core, relay_down->task);
        if (task != NULL) {
            notify_task(core, task, &relay_down->down, out);
        }
        return;
    }
    for (uint32_t i = 0; i < core->entries; i++) {
        struct agent_task *task = &core->tasks[i];
        if (task->phase != AGENT_TASK_NONE && task->ref.job.n == relay_down->job.n &&
            !task->is_ps_task) {
            notify_task(core, task, &relay_down->down, out);
        }
    }
}
