/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator_core/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct core_options options = {
    .limits = {.workers_max = 4, .jobs_max = 4, .tasks_max = 12},
    .seed = 99,
    .lease_us = 10 * SECOND,
    .rewind_us = 25 * SECOND,
    .grace_us = 5 * SECOND,
    .collect_us = 8 * SECOND,
    .form_us = 20 * SECOND,
    .report_us = 2 * SECOND,
    .wait_us = 40 * SECOND,
    .stall_us = 60 * SECOND,
    .slow_factor = 10,
    .slow_us = 3 * SECOND};

struct stage_kept {
    struct stage stage;
    struct watch watch;
    uint8_t memory[];
};

void stage_init(struct stage *stage)
{
    stage->core = core_init(stage->memory, &options);
    memset(stage->watch, 0, sizeof(*stage->watch));
    stage->now_us = 0;
    stage->calls = 0;
    stage->link_last = 0;
    stage->job_last = 0;
    stage->steps = 0;
    for (int i = 0; i < WORKERS; i++) {
        stage->links[i] = 0;
        stage->boots[i] = 100 + (uint64_t)i;
    }
}

void stage_open(struct stage *stage)
{
    *stage = (struct stage){.memory = malloc(core_bytes(&options.limits)),
        .watch = malloc(sizeof(struct watch)),
        .whole = true};
    stage->actions.capacity = CORE_ACTIONS_PER_STEP_MAX;
    stage->actions.items = malloc(sizeof(struct core_action) * CORE_ACTIONS_PER_STEP_MAX);
    assert_true(stage->memory != NULL && stage->watch != NULL && stage->actions.items != NULL);
    stage_init(stage);
}

void stage_keep(struct stage *stage)
{
    size_t size = core_bytes(&options.limits);
    if (stage->kept == NULL) {
        stage->kept = malloc(sizeof(*stage->kept) + size);
        assert_non_null(stage->kept);
    }
    stage->kept->stage = *stage;
    stage->kept->watch = *stage->watch;
    memcpy(stage->kept->memory, stage->memory, size);
}

void stage_return(struct stage *stage)
{
    /* What the core and the watch point to is where it was. */
    *stage = stage->kept->stage;
    *stage->watch = stage->kept->watch;
    memcpy(stage->memory, stage->kept->memory, core_bytes(&options.limits));
}

void stage_close(struct stage *stage)
{
    free(stage->kept);
    free(stage->actions.items);
    free(stage->watch);
    free(stage->memory);
}

static void step_once(struct stage *stage, struct core_event event)
{
    event.now_us = stage->now_us;
    watch_event(stage->watch, stage->core, &event);
    stage->actions.count = 0;
    core_step(stage->core, &event, &stage->actions);
    watch_actions(stage->watch, stage->core, &event, &stage->actions);
    const char *broken = core_invariant(stage->core, stage->whole);
    if (broken != NULL) {
        fail_msg("step %llu: %s", (unsigned long long)stage->steps, broken);
    }
    stage->steps++;
    for (size_t i = 0; i < stage->actions.count; i++) {
        const struct core_action *action = &stage->actions.items[i];
        for (int w = 0; w < WORKERS && action->type == CORE_ACTION_REFUSE; w++) {
            if (stage->links[w] == action->refuse.link.n) {
                stage->links[w] = 0; /* the shell ends its stream */
            }
        }
    }
}

void stage_step(struct stage *stage, struct core_event event)
{
    step_once(stage, event);
    for (int i = 0; core_wake_us(stage->core) <= stage->now_us; i++) {
        assert_true(i < 100);
        step_once(stage, (struct core_event){.type = CORE_EVENT_TICK});
    }
}

void stage_up(struct stage *stage, uint64_t link, const struct agent_up *message)
{
    stage_step(stage,
        (struct core_event){.type = CORE_EVENT_AGENT_UP, .agent = {.link = {link}, .up = message}});
}

void stage_pass_time(struct stage *stage, uint64_t us)
{
    stage->now_us += us;
    stage_step(stage, (struct core_event){.type = CORE_EVENT_TICK});
}

void stage_hello(struct stage *stage, uint32_t w, uint32_t slots, const struct task_ref *tasks,
    size_t task_count)
{
    static const char *const names[WORKERS] = {"a", "b", "c"};
    stage->links[w] = ++stage->link_last;
    stage_up(stage, stage->links[w],
        &(struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                .name = names[w],
                .boot_nonce = stage->boots[w],
                .slots = slots,
                .tasks = tasks,
                .task_count = task_count}});
}

void stage_submit(struct stage *stage, const struct core_job_spec *spec)
{
    stage->job_last++;
    stage_step(stage, (struct core_event){.type = CORE_EVENT_SUBMIT,
                          .submit = {.call = {++stage->calls}, .spec = *spec}});
}

void stage_cancel(struct stage *stage, uint64_t job)
{
    stage_step(stage, (struct core_event){.type = CORE_EVENT_CANCEL,
                          .cancel = {.call = {++stage->calls}, .job = {job}}});
}

void stage_drain(struct stage *stage, const char *worker)
{
    bool ends = core_drain_of(stage->core, worker) != NULL;
    struct core_event event = {
        .type = CORE_EVENT_DRAIN, .drain = {.call = {++stage->calls}, .ends = ends}};
    (void)snprintf(event.drain.drained.worker, sizeof(event.drain.drained.worker), "%s", worker);
    stage_step(stage, event);
}

void stage_link_down(struct stage *stage, uint32_t w)
{
    uint64_t link = stage->links[w];
    stage->links[w] = 0;
    stage_step(stage, (struct core_event){.type = CORE_EVENT_LINK_DOWN, .link_down = {link}});
}

/* Members of the job's roster on that worker. */
static uint32_t members_on(
    const struct stage *stage, const struct core_job_view *view, struct worker_id worker)
{
    for (uint32_t i = 0; i < view->workers; i++) {
        struct worker_id here;
        struct link_id link;
        uint32_t members;
        core_job_worker(stage->core, view->job, i, &here, &link, &members);
        if (here.n == worker.n) {
            return members;
        }
    }
    return 0;
}

static uint64_t digest_of(const struct stage *stage, uint32_t slot)
{
    return stage->compares == 0 ? 0 : 7 + slot % stage->compares;
}

static struct task_report report_of(const struct stage *stage, const struct core_job_view *view,
    uint32_t slot, enum task_event what)
{
    return (struct task_report){.generation = view->generation,
        .position = view->released,
        .clean = what != DIRTY,
        .begun = what == FREEZES,
        .stream = 1,
        .digest = digest_of(stage, slot),
        .divergence = {.position = view->released,
            .verified = view->resume,
            .culprits = {slot},
            .culprit_count = slot % 2},
        .reason = what == FINISHED                  ? REPORT_FINISHED
                  : what == DIVERGES                ? REPORT_DIVERGED
                  : what == PEER_ERROR              ? REPORT_PEER_ERROR
                  : view->halt_kind == HALT_REGROUP ? REPORT_HALT
                                                    : REPORT_ABORT,
        .text = "x"};
}

/* A message of the task's worker about it; none when the task is not placed or its worker is away.
 */
void stage_task_event(struct stage *stage, uint64_t job, uint32_t slot, enum task_event what)
{
    struct core_job_view view;
    struct core_task_view task;
    if (!core_job(stage->core, (struct job_id){job}, &view) || slot >= view.tasks) {
        return;
    }
    core_job_task(stage->core, view.job, slot, &task);
    if (task.link.n == 0) {
        return;
    }
    struct task_ref ref = {.job = {job}, .slot = slot, .incarnation = task.incarnation};
    struct agent_up message = {.type = AGENT_UP_RELAY, .relay_up = {.task = ref}};
    struct task_up *relay_up = &message.relay_up.up;
    switch (what) {
    case STARTED:
        message =
            (struct agent_up){.type = AGENT_UP_TASK_STARTED, .started = {.task = ref, .pid = 5}};
        break;
    case HELLO:
        relay_up->type = TASK_UP_HELLO;
        relay_up->hello = (struct task_hello){.frame_version = TASK_FRAME_VERSION,
            .replicas = 1,
            .pid = 5,
            .mesh_address = "x",
            .plain = stage->plain,
            .generation = task.rank == UINT32_MAX ? (struct generation){0} : view.generation};
        break;
    case FINISHED:
    case PEER_ERROR:
    case DIVERGES:
    case FREEZES:
    case DIRTY:
        relay_up->type = TASK_UP_REPORT;
        relay_up->report = report_of(stage, &view, slot, what);
        break;
    case JOINS:
        relay_up->type = TASK_UP_JOIN;
        relay_up->join.stream = 1;
        break;
    case STALLS:
        relay_up->type = TASK_UP_STALL;
        relay_up->stall = (struct task_stall){.generation = view.generation,
            .position = view.committed,
            .slot = (slot + 1) % view.tasks};
        if ((view.committed + slot) % 3 == 0) { /* for one of its own replicas */
            relay_up->stall.slot = slot;
            relay_up->stall.hang = (struct task_hang){.at = HANG_RETURN, .replica = slot};
        }
        break;
    case WANTS: /* the step behind those that are released */
        message = (struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = view.job,
                .generation = view.generation,
                .tasks = members_on(stage, &view, task.worker),
                .wanted = view.released + 1,
                .wanted_slot = slot}};
        break;
    case PART:
        relay_up->type = TASK_UP_PART;
        relay_up->part = (struct task_part){.generation = view.generation,
            .position = view.released,
            .path = "p",
            .digest = digest_of(stage, slot)};
        break;
    case EXIT_0:
    case EXIT_1:
        message = (struct agent_up){
            .type = AGENT_UP_TASK_GONE, .gone = {.task = ref, .exit = {.code = what == EXIT_1}}};
        break;
    case COLLECTED:
        message = (struct agent_up){
            .type = AGENT_UP_TASK_COLLECTED, .collected = {.task = ref, .text = ""}};
        break;
    }
    stage_up(stage, task.link.n, &message);
}

/* The i-th worker of the job arrives `ahead` beyond the release. */
void stage_arrive(struct stage *stage, uint64_t job, uint32_t i, uint64_t ahead, uint32_t stream)
{
    struct core_job_view view;
    if (!core_job(stage->core, (struct job_id){job}, &view) || view.workers == 0) {
        return;
    }
    struct worker_id worker;
    struct link_id link;
    uint32_t members;
    core_job_worker(stage->core, view.job, i % view.workers, &worker, &link, &members);
    if (link.n == 0) {
        return;
    }
    stage_up(stage, link.n,
        &(struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = {job},
                .generation = view.generation,
                .tasks = members,
                .up_to = view.released + ahead,
                .applied = view.released,
                .cursor = {.stream = stream},
                .verified = {.position = stage->compares > 0 ? view.released : 0,
                    .digest = digest_of(stage, 0)}}});
}
