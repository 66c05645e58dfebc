/* SPDX-License-Identifier: Apache-2.0
 * What happened to a job, and when. */
#include "common/view/result.h"
#include "common/view/view.h"

#define KIND_IS(name)                                                                              \
    _Static_assert((int)CADRE_EVENT_##name == (int)HISTORY_##name, "kinds have the same numbers")
KIND_IS(SUBMITTED);
KIND_IS(STARTED);
KIND_IS(TASK_STARTED);
KIND_IS(TASK_ENDED);
KIND_IS(TASK_LOST);
KIND_IS(GENERATION);
KIND_IS(CHECKPOINT);
KIND_IS(CHECKPOINT_LOST);
KIND_IS(STALLED);
KIND_IS(WENT_ON);
KIND_IS(HALTED);
KIND_IS(DRAINED);
KIND_IS(PREEMPTED);
KIND_IS(DIVERGED);
KIND_IS(ENDING);
KIND_IS(ENDED);
KIND_IS(COORDINATOR_RESTARTED);

const char *cadre_event_kind_name(cadre_event_kind kind)
{
    return history_kind_name((enum history_kind)kind);
}

static void view_history_fill(const struct history_event *from, cadre_event *ret)
{
    bool of_task = from->slot != HISTORY_SLOT_NONE;
    *ret = (cadre_event){.number = from->number,
        .time_us = from->time_us,
        .kind = (cadre_event_kind)from->kind,
        .generation = from->generation,
        .position = from->position,
        .of_task = of_task,
        .task = of_task ? from->slot : 0,
        .incarnation = from->incarnation,
        .tasks = from->tasks,
        .undone = from->undone,
        .restarted = from->restarted,
        .waited_us = from->waited_us,
        .exit_code = from->exit_code,
        .exit_signal = from->exit_signal,
        .state = (cadre_job_state)from->state,
        .code = from->code,
        .worker = from->worker,
        .roster = from->roster,
        .text = from->text};
}

cadre_history *view_history_new(const struct history_response *response, struct wire_arena *arena)
{
    cadre_history *history = result_new(sizeof *history, arena);
    cadre_event *events =
        history != NULL ? result_array(history, 0, response->event_count, sizeof *events) : NULL;
    if (events == NULL) {
        result_discard(history);
        return NULL;
    }
    for (size_t i = 0; i < response->event_count; i++) {
        view_history_fill(&response->events[i], &events[i]);
    }
    *history = (cadre_history){.job = response->job.id.n,
        .name = response->job.name,
        .state = (cadre_job_state)response->job.state,
        .events = events,
        .count = response->event_count,
        .last = response->last,
        .dropped = response->dropped,
        .more = response->more};
    return history;
}
