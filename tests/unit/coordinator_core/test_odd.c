/* SPDX-License-Identifier: Apache-2.0
 * What a faulty program or daemon may send: messages that are well formed, of the generation that
 * runs, from tasks that are there, and untrue. Whatever they send, the core's invariants and the
 * rules of watch.h hold: it refuses what cannot be, or the job fails with a sentence. Half of the
 * runs begin as after a start of the coordinator, when no watermark is known yet. */
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/rounds.h"
#include "tests/unit/coordinator_core/stage.h"

#define EVENTS 400

/* A task that is placed on a worker that is connected, and its job. */
struct sender {
    struct core_job_view job;
    struct core_task_view task;
    struct task_ref ref;
};

static bool draw_sender(const struct stage *stage, struct prng *prng, struct sender *ret_sender)
{
    struct job_id id = {1 + prng_uniform(prng, stage->job_last)};
    if (!core_job(stage->core, id, &ret_sender->job)) {
        return false;
    }
    uint32_t slot = (uint32_t)prng_uniform(prng, ret_sender->job.tasks);
    core_job_task(stage->core, id, slot, &ret_sender->task);
    ret_sender->ref =
        (struct task_ref){.job = id, .slot = slot, .incarnation = ret_sender->task.incarnation};
    return ret_sender->task.link.n != 0;
}

/* Beside something that matters, or far beyond. */
static uint64_t draw_position(struct prng *prng, const struct core_job_view *job)
{
    uint64_t beside = prng_uniform(prng, 4);
    switch (prng_uniform(prng, 8)) {
    case 0:
        return prng_uniform(prng, 3);
    case 1:
        return job->halt_kind != HALT_NONE && job->halt_at <= LIMIT_POSITION ? job->halt_at + beside
                                                                             : beside;
    case 2:
        return job->committed + beside;
    case 3:
        return job->released > beside ? job->released - beside : 0;
    case 4:
        return prng_chance(prng, 1, 8) ? LIMIT_POSITION : job->released + LIMIT_WINDOW_STEPS;
    default:
        return job->released + (prng_chance(prng, 1, 2) ? 0 : beside);
    }
}

static uint32_t draw_stream(struct prng *prng)
{
    static const uint32_t streams[] = {0, 1, 1, 1, 2, LIMIT_STREAMS, LIMIT_STREAMS + 1, UINT32_MAX};
    return streams[prng_uniform(prng, sizeof(streams) / sizeof(streams[0]))];
}

static struct cursor draw_cursor(struct prng *prng, const struct core_job_view *job)
{
    struct cursor cursor = {.stream = prng_chance(prng, 3, 4) ? 1 : draw_stream(prng)};
    if (prng_chance(prng, 1, 3)) {
        cursor.begin = draw_position(prng, job);
        cursor.first = prng_chance(prng, 1, 2) ? cursor.begin : draw_position(prng, job);
        cursor.epoch = prng_uniform(prng, 2);
        cursor.steps = prng_uniform(prng, 12);
    }
    return cursor;
}

static void odd_hello(struct prng *prng, const struct sender *who, struct task_up *up)
{
    up->type = TASK_UP_HELLO;
    up->hello = (struct task_hello){.frame_version = TASK_FRAME_VERSION,
        .replicas = 1,
        .pid = 5,
        .mesh_address = "x",
        .generation = prng_chance(prng, 1, 6) ? (struct generation){0} : who->job.generation};
    up->hello.position = draw_position(prng, &who->job);
    up->hello.released = draw_position(prng, &who->job);
    up->hello.arrived = draw_position(prng, &who->job);
    up->hello.clean = prng_chance(prng, 3, 4);
    up->hello.frozen = prng_chance(prng, 1, 8);
    up->hello.reason = (enum report_reason)(REPORT_HALT + prng_uniform(prng, REPORT_FAILED));
}

static void odd_report(struct prng *prng, const struct sender *who, struct task_up *up)
{
    up->type = TASK_UP_REPORT;
    up->report = (struct task_report){.generation = who->job.generation, .text = "x"};
    up->report.position = draw_position(prng, &who->job);
    up->report.clean = prng_chance(prng, 5, 6);
    up->report.reason = (enum report_reason)(REPORT_HALT + prng_uniform(prng, REPORT_FAILED));
    if (up->report.reason == REPORT_FAILED && prng_chance(prng, 3, 4)) {
        up->report.reason = REPORT_ABORT;
    }
    up->report.begun = prng_chance(prng, 2, 3);
    up->report.stream = draw_stream(prng);
}

static void odd_word(struct prng *prng, const struct sender *who, struct task_up *up)
{
    switch (prng_uniform(prng, 10)) {
    case 0:
    case 1:
        odd_hello(prng, who, up);
        break;
    case 2:
    case 3:
    case 4:
        odd_report(prng, who, up);
        break;
    case 5:
        up->type = TASK_UP_PART;
        up->part = (struct task_part){.generation = who->job.generation, .path = "p"};
        up->part.position = draw_position(prng, &who->job);
        break;
    case 6:
        up->type = TASK_UP_JOIN;
        up->join.stream = draw_stream(prng);
        break;
    case 7:
        up->type = TASK_UP_STALL;
        up->stall = (struct task_stall){.generation = who->job.generation};
        up->stall.position = draw_position(prng, &who->job);
        up->stall.slot = (uint32_t)prng_uniform(prng, who->job.tasks + 1);
        up->stall.hang.at = (enum hang_at)prng_uniform(prng, HANG_RETURN + 1);
        break;
    case 8:
        up->type = TASK_UP_PREEMPT;
        up->preempt.stops = prng_chance(prng, 1, 3);
        break;
    default:
        up->type = TASK_UP_BACKED;
        up->backed.number = prng_uniform(prng, 4);
        up->backed.by = prng_uniform(prng, 6);
        break;
    }
}

/* For all members on the worker, or for another number of them. */
static void odd_arrival(struct stage *stage, struct prng *prng, const struct sender *who)
{
    struct agent_up message = {.type = AGENT_UP_ARRIVED,
        .arrived = {.job = who->ref.job, .generation = who->job.generation}};
    for (uint32_t i = 0; i < who->job.workers; i++) {
        struct worker_id worker;
        struct link_id link;
        uint32_t members;
        core_job_worker(stage->core, who->ref.job, i, &worker, &link, &members);
        message.arrived.tasks = worker.n == who->task.worker.n ? members : message.arrived.tasks;
    }
    message.arrived.tasks += prng_chance(prng, 1, 20);
    message.arrived.up_to = draw_position(prng, &who->job);
    message.arrived.applied =
        prng_chance(prng, 3, 4) ? who->job.committed : draw_position(prng, &who->job);
    message.arrived.wanted = prng_chance(prng, 1, 3) ? draw_position(prng, &who->job) : 0;
    message.arrived.wanted_slot = (uint32_t)prng_uniform(prng, who->job.tasks + 1);
    message.arrived.cursor = draw_cursor(prng, &who->job);
    message.arrived.consumption.steps = prng_uniform(prng, 6);
    stage_up(stage, who->task.link.n, &message);
}

static void odd_event(struct stage *stage, struct prng *prng)
{
    struct sender who;
    uint64_t dice = prng_uniform(prng, 100);
    stage->now_us += prng_uniform(prng, SECOND / 5);
    if (dice < 2) {
        uint32_t w = (uint32_t)prng_uniform(prng, WORKERS);
        if (stage->links[w] != 0) {
            stage_link_down(stage, w);
        } else {
            stage_hello(stage, w, 2, NULL, 0);
        }
    } else if (dice < 3) {
        stage_drain(stage, prng_chance(prng, 1, 2) ? "a" : "b");
    } else if (dice < 6) {
        stage_pass_time(stage, prng_uniform(prng, 20 * SECOND));
    } else if (!draw_sender(stage, prng, &who)) {
        return;
    } else if (dice < 30) {
        stage_arrive(stage, who.ref.job.n, who.ref.slot, 1 + prng_uniform(prng, 3), 1);
    } else if (dice < 40) {
        stage_task_event(stage, who.ref.job.n, who.ref.slot, STARTED);
        stage_task_event(stage, who.ref.job.n, who.ref.slot, HELLO);
    } else if (dice < 45) {
        stage_task_event(
            stage, who.ref.job.n, who.ref.slot, prng_chance(prng, 1, 2) ? JOINS : PART);
    } else if (dice < 48) {
        stage_task_event(
            stage, who.ref.job.n, who.ref.slot, prng_chance(prng, 1, 2) ? EXIT_0 : EXIT_1);
        stage_task_event(stage, who.ref.job.n, who.ref.slot, COLLECTED);
    } else if (dice < 65) {
        odd_arrival(stage, prng, &who);
    } else {
        struct agent_up message = {.type = AGENT_UP_RELAY, .relay_up = {.task = who.ref}};
        odd_word(prng, &who, &message.relay_up.up);
        stage_up(stage, who.task.link.n, &message);
    }
}

/* A job of two tasks ran when the coordinator ended; its watermark's tail may be lost. */
static void restore_first(struct stage *stage, struct prng *prng)
{
    static const struct core_restore_task both[] = {
        {.slot = 0, .incarnation = 1, .rank = 0, .worker = "a"},
        {.slot = 1, .incarnation = 2, .rank = 1, .worker = "b"},
    };
    struct core_restore_job job = {.job = {1},
        .spec = {.tasks = 3, .tasks_min = 1, .max_restarts = 3, .wait_us = 40 * SECOND},
        .started = true,
        .incarnation_max = 2,
        .generation = {.number = 2, .nonce = 77},
        .roster = 2,
        .resume = 4,
        .released = 4 + prng_uniform(prng, 4),
        .tasks = both,
        .task_count = 2};
    if (prng_chance(prng, 1, 2)) {
        job.has_checkpoint = true;
        job.checkpoint = (struct core_checkpoint){.position = prng_uniform(prng, job.released + 1),
            .generation = job.generation,
            .path = "p"};
    }
    if (prng_chance(prng, 1, 2)) {
        job.has_control = true;
        job.halt_kind = prng_chance(prng, 1, 2) ? HALT_STOP : HALT_REGROUP;
        job.halt_at = job.released + (job.halt_kind == HALT_STOP);
        job.halt_stream = job.halt_kind == HALT_STOP ? 0 : STREAM_ANY;
    }
    stage->watch->jobs[1] = (struct watched_job){.submitted = true,
        .started = true,
        .planned = true,
        .max_restarts = 3,
        .halt_at = job.has_control ? job.halt_at : POSITION_NONE,
        .generation = job.generation,
        .watermark = job.released};
    stage->watch->live = 1;
    stage->job_last = 1;
    stage_step(stage, (struct core_event){.type = CORE_EVENT_RESTORE_JOB, .restore = job});
    stage_step(stage,
        (struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done = {.job_max = 1}});
    for (uint32_t w = 0; w < 2; w++) {
        const struct task_ref held = {.job = {1}, .slot = w, .incarnation = w + 1};
        stage_hello(stage, w, 2, &held, 1);
    }
    stage_hello(stage, 2, 2, NULL, 0);
}

static void submit_first(struct stage *stage, struct prng *prng)
{
    bool ps_job = prng_chance(prng, 1, 4);
    uint32_t tasks = 1 + (uint32_t)prng_uniform(prng, 3);
    struct core_job_spec spec = {
        .tasks = tasks, .tasks_min = 1, .max_restarts = 3, .wait_us = 40 * SECOND};
    if (ps_job) {
        spec = (struct core_job_spec){.tasks = 4,
            .tasks_min = 4,
            .max_restarts = 3,
            .wait_us = 40 * SECOND,
            .ps_job = {.workers = 1, .servers = 2, .backups = true}};
    }
    for (uint32_t w = 0; w < WORKERS; w++) {
        stage_hello(stage, w, 2, NULL, 0);
    }
    stage_submit(stage, &spec);
    for (uint32_t slot = spec.tasks; slot-- > 0;) {
        stage_task_event(stage, 1, slot, STARTED);
        stage_task_event(stage, 1, slot, HELLO);
    }
}

static void whatever_is_sent_nothing_breaks(void **state)
{
    (void)state;
    struct stage stage;
    uint64_t ended = 0;
    stage_open(&stage);
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(3000); seed++) {
        struct prng prng = {.state = seed};
        stage_init(&stage);
        if (prng_chance(&prng, 1, 2)) {
            restore_first(&stage, &prng);
        } else {
            submit_first(&stage, &prng);
        }
        for (int i = 0; i < EVENTS && stage.watch->live > 0; i++) {
            odd_event(&stage, &prng);
        }
        ended += stage.watch->ended;
    }
    print_message("%llu jobs ended\n", (unsigned long long)ended);
    assert_true(ended > TEST_ROUNDS(300));
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_is_sent_nothing_breaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
