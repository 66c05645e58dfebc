/* SPDX-License-Identifier: Apache-2.0
 * The list of a step's actions, and functions for the short ones: answers, refusals, stops. */
#include "coordinator/core/state/actions.h"

struct core_action *action_add(struct core *core, enum core_action_type type)
{
    struct core_actions *out = core->out;
    CADRE_ASSERT(core->out != NULL);
    CADRE_ASSERT(type >= CORE_ACTION_RECORD && type <= CORE_ACTION_FORGET_JOB);
    CADRE_ASSERT(out->count < core->out_end);
    struct core_action *action = &out->items[out->count++];
    memset(action, 0, sizeof(*action));
    action->type = type;
    return action;
}

struct core_record *record_add(
    struct core *core, const struct job *job, enum core_record_type type, bool sync)
{
    struct core_record *record = &action_add(core, CORE_ACTION_RECORD)->record;
    CADRE_ASSERT(job->id.n != 0);
    CADRE_ASSERT(type != CORE_RECORD_DRAINED && type != CORE_RECORD_UNDRAINED);
    CADRE_ASSERT(type != CORE_RECORD_CULPRIT);
    record->type = type;
    record->sync = sync;
    record->job = job->id;
    return record;
}

size_t actions_left(const struct core *core)
{
    CADRE_ASSERT(core->out != NULL);
    CADRE_ASSERT(core->out->count <= core->out_end);
    return core->out_end - core->out->count;
}

void call_answer(struct core *core, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *sentence)
{
    CADRE_ASSERT(code == CADRE_OK || sentence[0] != '\0');
    if (call.n == 0) {
        return;
    }
    struct core_action *action = action_add(core, CORE_ACTION_ANSWER);
    struct text text = text_begin(action->answer.text, sizeof(action->answer.text));
    action->answer.call = call;
    action->answer.code = code;
    action->answer.job = job;
    action->answer.queued_before = queued_before;
    text_add(&text, sentence);
}

void stream_refuse(struct core *core, struct link_id link, cadre_status code, const char *sentence)
{
    struct core_action *action = action_add(core, CORE_ACTION_REFUSE);
    struct text text = text_begin(action->refuse.text, sizeof(action->refuse.text));
    CADRE_ASSERT(link.n != 0);
    CADRE_ASSERT(code != CADRE_OK);
    CADRE_ASSERT(sentence[0] != '\0');
    action->refuse.link = link;
    action->refuse.code = code;
    text_add(&text, sentence);
}

void task_stop(struct core *core, uint32_t worker, struct task_ref task)
{
    struct core_action *action = action_add(core, CORE_ACTION_STOP_TASK);
    CADRE_ASSERT(worker < core->options.limits.workers_max);
    CADRE_ASSERT(core->workers[worker].state == WORKER_CONNECTED);
    action->stop_task.link = core->workers[worker].link;
    action->stop_task.task = task;
}

void stray_add(struct core *core, struct link_id link, struct task_ref task)
{
    CADRE_ASSERT(link.n != 0);
    CADRE_ASSERT(core->stray_count < STRAYS_MAX);
    uint32_t at = (core->stray_first + core->stray_count) % STRAYS_MAX;
    core->strays[at] = (struct stray){.link = link, .task = task};
    core->stray_count++;
}
