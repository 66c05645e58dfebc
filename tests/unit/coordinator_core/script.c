/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator_core/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct script *script_open(const struct core_limits *limits)
{
    struct core_options options = {.limits = {.workers_max = 8, .jobs_max = 8, .tasks_max = 64},
        .seed = 7,
        .lease_us = 10 * SECOND,
        .rewind_us = 40 * SECOND,
        .grace_us = 5 * SECOND,
        .collect_us = 20 * SECOND,
        .form_us = 30 * SECOND,
        .report_us = 2 * SECOND,
        .wait_us = 60 * SECOND,
        .stall_us = 600 * SECOND,
        .slow_factor = 10,
        .slow_us = 5 * SECOND};
    struct script *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    if (limits != NULL) {
        options.limits = *limits;
    }
    s->memory = malloc(core_bytes(&options.limits));
    assert_non_null(s->memory);
    s->core = core_init(s->memory, &options);
    s->actions.capacity = CORE_ACTIONS_PER_STEP_MAX;
    s->actions.items = calloc(s->actions.capacity, sizeof(*s->actions.items));
    assert_non_null(s->actions.items);
    return s;
}

void script_close(struct script *s)
{
    free(s->actions.items);
    free(s->memory);
    free(s);
}

void script_expect(struct script *s, const char *expected, const char *file, int at)
{
    if (strcmp(s->transcript, expected) != 0) {
        print_error("--- said\n%s--- expected\n%s---\n", s->transcript, expected);
        _fail(file, at);
    }
    script_skip(s);
}

void script_skip(struct script *s)
{
    s->length = 0;
    s->transcript[0] = '\0';
}

void step_once(struct script *s, const struct core_event *event)
{
    struct core_event timed = *event;
    timed.now_us = s->now_us;
    s->actions.count = 0;
    core_step(s->core, &timed, &s->actions);
    for (size_t i = 0; i < s->actions.count; i++) {
        script_show(s, &s->actions.items[i]);
    }
    const char *broken = core_invariant(s->core, true);
    if (broken != NULL) {
        fail_msg("invariant: %s", broken);
    }
    assert_null(core_invariant(s->core, false));
}

void step(struct script *s, const struct core_event *event)
{
    const struct core_event tick = {.type = CORE_EVENT_TICK};
    step_once(s, event);
    while (core_wake_us(s->core) <= s->now_us) {
        step_once(s, &tick);
    }
}

void wait_us(struct script *s, uint64_t for_us)
{
    const struct core_event tick = {.type = CORE_EVENT_TICK};
    uint64_t until_us = s->now_us + for_us;
    while (core_wake_us(s->core) <= until_us) {
        uint64_t wake_us = core_wake_us(s->core);
        s->now_us = wake_us > s->now_us ? wake_us : s->now_us;
        step_once(s, &tick);
    }
    s->now_us = until_us;
}

void submit(struct script *s, uint64_t call, uint32_t tasks, int32_t priority)
{
    submit_spec(
        s, call, &(struct core_job_spec){.tasks = tasks, .tasks_min = tasks, .priority = priority});
}

void submit_spec(struct script *s, uint64_t call, const struct core_job_spec *spec)
{
    step(s,
        &(struct core_event){.type = CORE_EVENT_SUBMIT, .submit = {.call = {call}, .spec = *spec}});
}

void drain(struct script *s, uint64_t call, const char *worker)
{
    struct core_event event = {.type = CORE_EVENT_DRAIN, .drain = {.call = {call}}};
    (void)snprintf(event.drain.drained.worker, sizeof(event.drain.drained.worker), "%s", worker);
    step(s, &event);
}

void cancel(struct script *s, uint64_t call, uint64_t job)
{
    step(s,
        &(struct core_event){.type = CORE_EVENT_CANCEL, .cancel = {.call = {call}, .job = {job}}});
}

static void up(struct script *s, uint64_t link, const struct agent_up *message)
{
    step(s, &(struct core_event){
                .type = CORE_EVENT_AGENT_UP, .agent = {.link = {link}, .up = message}});
}

static void hello_as(struct script *s, uint64_t link, const char *name, uint64_t nonce,
    uint32_t slots, bool draining, const struct task_ref *tasks, size_t task_count)
{
    up(s, link,
        &(struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                .library_version = "0.2.0",
                .name = name,
                .host = "host",
                .boot_nonce = nonce,
                .slots = slots,
                .draining = draining,
                .tasks = tasks,
                .task_count = task_count,
                .gpus = {.usable = s->gpus}}});
}

void hello(struct script *s, uint64_t link, const char *name, uint64_t nonce, uint32_t slots,
    const struct task_ref *tasks, size_t task_count)
{
    hello_as(s, link, name, nonce, slots, false, tasks, task_count);
}

void join_draining(struct script *s, uint64_t link, const char *name, uint32_t slots)
{
    hello_as(s, link, name, 1000 + link, slots, true, NULL, 0);
}

void join(struct script *s, uint64_t link, const char *name, uint32_t slots)
{
    hello(s, link, name, 1000 + link, slots, NULL, 0);
}

void link_down(struct script *s, uint64_t link)
{
    step(s, &(struct core_event){.type = CORE_EVENT_LINK_DOWN, .link_down = {link}});
}

void heartbeat(struct script *s, uint64_t link)
{
    up(s, link, &(struct agent_up){.type = AGENT_UP_HEARTBEAT});
}

void draining(struct script *s, uint64_t link)
{
    up(s, link, &(struct agent_up){.type = AGENT_UP_DRAINING});
}

struct task_ref ref(const struct script *s, uint64_t job, uint32_t slot)
{
    struct core_job_view job_now;
    struct core_task_view task = {.incarnation = slot + 1};
    if (core_job(s->core, (struct job_id){job}, &job_now)) {
        core_job_task(s->core, (struct job_id){job}, slot, &task);
    }
    return (struct task_ref){.job = {job}, .slot = slot, .incarnation = task.incarnation};
}

struct core_job_view job_view(const struct script *s, uint64_t job)
{
    struct core_job_view view;
    assert_true(core_job(s->core, (struct job_id){job}, &view));
    return view;
}

const char *script_job_text(struct script *s, uint64_t job)
{
    assert_true(core_job_text(s->core, (struct job_id){job}, s->job_text));
    return s->job_text;
}

struct core_task_view task_view(const struct script *s, uint32_t slot)
{
    struct core_task_view view;
    core_job_task(s->core, (struct job_id){1}, slot, &view);
    return view;
}

uint64_t link_of(const struct script *s, uint32_t slot)
{
    return task_view(s, slot).link.n;
}

struct generation generation_of(const struct script *s, uint64_t job)
{
    struct core_job_view view = {.generation = {0}};
    (void)core_job(s->core, (struct job_id){job}, &view);
    return view.generation;
}

void started(struct script *s, uint64_t link, uint64_t job, uint32_t slot)
{
    up(s, link,
        &(struct agent_up){.type = AGENT_UP_TASK_STARTED,
            .started = {.task = ref(s, job, slot), .pid = 100 + slot}});
}

static void end_task(struct script *s, uint64_t link, struct agent_task_gone gone, const char *text)
{
    struct agent_up message = {.type = AGENT_UP_TASK_GONE, .gone = gone};
    (void)snprintf(message.gone.exit.text, sizeof(message.gone.exit.text), "%s", text);
    up(s, link, &message);
}

void gone(struct script *s, uint64_t link, uint64_t job, uint32_t slot, int32_t code,
    int32_t signal, const char *text)
{
    end_task(s, link,
        (struct agent_task_gone){
            .task = ref(s, job, slot), .exit = {.code = code, .signal = signal}},
        text);
}

void not_started(struct script *s, uint64_t link, uint64_t job, uint32_t slot, cadre_status cause,
    const char *text)
{
    end_task(s, link,
        (struct agent_task_gone){.task = ref(s, job, slot), .exit = {.code = 126}, .cause = cause},
        text);
}

void collected(struct script *s, uint64_t link, uint64_t job, uint32_t slot)
{
    up(s, link,
        &(struct agent_up){.type = AGENT_UP_TASK_COLLECTED,
            .collected = {.task = ref(s, job, slot), .code = CADRE_OK, .text = ""}});
}

void not_collected(struct script *s, uint64_t link, uint64_t job, uint32_t slot, const char *text)
{
    up(s, link,
        &(struct agent_up){.type = AGENT_UP_TASK_COLLECTED,
            .collected = {
                .task = ref(s, job, slot), .code = CADRE_RESOURCE_EXHAUSTED, .text = text}});
}

void relay_up(
    struct script *s, uint64_t link, uint64_t job, uint32_t slot, const struct task_up *message)
{
    up(s, link,
        &(struct agent_up){
            .type = AGENT_UP_RELAY, .relay_up = {.task = ref(s, job, slot), .up = *message}});
}

void task_hello(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t generation)
{
    struct task_up message = {.type = TASK_UP_HELLO,
        .hello = {.frame_version = TASK_FRAME_VERSION,
            .library_version = "0.2.0",
            .pid = 100 + slot,
            .replicas = 1,
            .mesh_address = "127.0.0.1:9",
            .clean = true}};
    if (generation != 0) {
        message.hello.generation = generation_of(s, job);
        message.hello.generation.number = generation;
    }
    relay_up(s, link, job, slot, &message);
}

void report(
    struct script *s, uint64_t link, uint64_t job, uint32_t slot, const struct task_report *report)
{
    struct task_up up = {.type = TASK_UP_REPORT, .report = *report};
    up.report.generation = generation_of(s, job);
    up.report.text = report->text == NULL ? "" : report->text;
    relay_up(s, link, job, slot, &up);
}

void finished(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position)
{
    report(s, link, job, slot,
        &(struct task_report){.position = position, .clean = true, .reason = REPORT_FINISHED});
}

void peer_error(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position)
{
    report(s, link, job, slot,
        &(struct task_report){.position = position,
            .clean = true,
            .reason = REPORT_PEER_ERROR,
            .text = "connection reset by rank 1",
            .begun = true,
            .stream = 1});
}

void frozen(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    uint32_t stream)
{
    report(s, link, job, slot,
        &(struct task_report){.position = position,
            .clean = true,
            .reason = REPORT_ABORT,
            .begun = true,
            .stream = stream});
}

void halted(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    uint32_t stream)
{
    report(s, link, job, slot,
        &(struct task_report){.position = position,
            .clean = true,
            .reason = REPORT_HALT,
            .begun = true,
            .stream = stream});
}

void joins(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint32_t stream)
{
    relay_up(
        s, link, job, slot, &(struct task_up){.type = TASK_UP_JOIN, .join = {.stream = stream}});
}

void finished_as(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    uint64_t digest)
{
    report(s, link, job, slot,
        &(struct task_report){
            .position = position, .clean = true, .reason = REPORT_FINISHED, .digest = digest});
}

void halted_as(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    uint64_t digest)
{
    report(s, link, job, slot,
        &(struct task_report){.position = position,
            .clean = true,
            .reason = REPORT_HALT,
            .begun = true,
            .stream = 1,
            .digest = digest});
}

void diverged(struct script *s, uint64_t link, uint64_t job, uint32_t slot,
    struct divergence divergence, const char *text)
{
    report(s, link, job, slot,
        &(struct task_report){.position = divergence.position,
            .clean = true,
            .reason = REPORT_DIVERGED,
            .begun = true,
            .stream = 1,
            .divergence = divergence,
            .text = text});
}

static void send_part(
    struct script *s, uint64_t link, uint64_t job, uint32_t slot, struct task_part part)
{
    part.generation = generation_of(s, job);
    part.size_bytes = 5;
    relay_up(s, link, job, slot, &(struct task_up){.type = TASK_UP_PART, .part = part});
}

void part_of(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    const char *path, uint64_t digest)
{
    send_part(s, link, job, slot,
        (struct task_part){.position = position, .path = path, .digest = digest});
}

void part_agreed(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    const char *path, uint64_t digest)
{
    send_part(s, link, job, slot,
        (struct task_part){.position = position, .path = path, .digest = digest, .compared = true});
}

void part(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    const char *path)
{
    part_of(s, link, job, slot, position, path, 0);
}

void compared(struct script *s, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to,
    uint64_t applied, struct verified verified)
{
    up(s, link,
        &(struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = {job},
                .generation = generation_of(s, job),
                .tasks = tasks,
                .up_to = up_to,
                .applied = applied,
                .cursor = {.stream = 1},
                .verified = verified}});
}

void arrived_at(struct script *s, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to,
    uint64_t applied, struct cursor cursor)
{
    up(s, link,
        &(struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = {job},
                .generation = generation_of(s, job),
                .tasks = tasks,
                .up_to = up_to,
                .applied = applied,
                .cursor = cursor}});
}

void arrived(
    struct script *s, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to, uint64_t applied)
{
    arrived_at(s, link, job, tasks, up_to, applied, (struct cursor){.stream = 1});
}

void wants(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t steps)
{
    wants_after(s, link, job, slot, 0, 0, steps);
}

static void wants_in(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t applied,
    uint64_t up_to, uint64_t steps, uint32_t stream)
{
    up(s, link,
        &(struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = {job},
                .generation = generation_of(s, job),
                .tasks = 1,
                .up_to = up_to,
                .applied = applied,
                .wanted = steps,
                .wanted_slot = slot,
                .cursor = {.stream = stream}}});
}

void wants_after(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t applied,
    uint64_t up_to, uint64_t steps)
{
    wants_in(s, link, job, slot, applied, up_to, steps, 0);
}

void begins(struct script *s, uint64_t link, uint64_t job, uint64_t applied, uint64_t up_to)
{
    wants_in(s, link, job, 0, applied, up_to, applied + 1, 1);
}

struct script *stage_started(void)
{
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    join(s, 2, "b", 1);
    submit(s, 0, 2, 0);
    script_skip(s);
    return s;
}

struct script *stage_joined(void)
{
    struct script *s = stage_started();
    started(s, 1, 1, 0);
    started(s, 2, 1, 1);
    task_hello(s, 1, 1, 0, 0);
    task_hello(s, 2, 1, 1, 0);
    script_skip(s);
    return s;
}

struct script *stage_released(uint64_t up_to)
{
    struct script *s = stage_joined();
    arrived(s, 1, 1, 1, up_to, 0);
    arrived(s, 2, 1, 1, up_to, 0);
    script_skip(s);
    return s;
}

struct script *stage_running(const struct core_job_spec *spec, uint32_t workers, uint64_t up_to)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct script *s = script_open(NULL);
    assert_true(workers <= 4);
    for (uint32_t w = 0; w < workers; w++) {
        join(s, w + 1, names[w], 1);
    }
    submit_spec(s, 0, spec);
    uint32_t placed = spec->tasks < workers ? spec->tasks : workers;
    for (uint32_t slot = 0; slot < placed; slot++) {
        task_hello(s, slot + 1, 1, slot, 0);
    }
    for (uint32_t slot = 0; slot < placed && up_to > 0; slot++) {
        arrived(s, slot + 1, 1, 1, up_to, 0);
    }
    script_skip(s);
    return s;
}

#define PS_JOB(has_backups)                                                                        \
    {                                                                                              \
        .tasks = 6, .tasks_min = 6, .max_restarts = 2, .ps_job = {                                 \
            .workers = 2,                                                                          \
            .servers = 2,                                                                          \
            .evaluators = 1,                                                                       \
            .backups = (has_backups)                                                               \
        }                                                                                          \
    }

const struct core_job_spec ps_job_spec = PS_JOB(false);
const struct core_job_spec ps_job_spec_backups = PS_JOB(true);

struct script *stage_ps_job_placed(const struct core_job_spec *spec)
{
    struct script *s = script_open(NULL);
    join(s, 1, "a", 2);
    join(s, 2, "b", 2);
    submit_spec(s, 1, spec);
    script_skip(s);
    assert_int_equal(job_view(s, 1).state, JOB_QUEUED); /* all at once, or none */
    join(s, 3, "c", 2);
    expect_output(s, "welcome link 3: worker 3\n"
                     "record! job 1: started, incarnations to 6\n"
                     "start job 1\n");
    for (uint32_t slot = 0; slot < 6; slot++) {
        assert_int_equal(link_of(s, slot), 1 + slot / 2);
        started(s, link_of(s, slot), 1, slot);
    }
    script_skip(s);
    return s;
}

struct script *stage_ps_job(const struct core_job_spec *spec)
{
    struct script *s = stage_ps_job_placed(spec);
    for (uint32_t slot = 6; slot-- > 0;) {
        task_hello(s, link_of(s, slot), 1, slot, 0);
    }
    script_skip(s);
    assert_int_equal(job_view(s, 1).roster, 1);
    return s;
}

void collect(struct script *s, uint64_t link, uint64_t job, uint32_t slot)
{
    gone(s, link, job, slot, 0, 9, "");
    collected(s, link, job, slot);
}
