/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/coordinator_core/script.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct script *script_open(const struct core_limits *limits)
{
    struct core_options options = {.limits = {.workers_max = 8, .jobs_max = 8, .tasks_max = 64},
        .seed = 7,
        .lease_us = 10 * SECOND,
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

__attribute__((format(printf, 2, 3))) static void line(struct script *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof(s->transcript) - s->length;
    int length = vsnprintf(s->transcript + s->length, room, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && (size_t)length + 2 <= room);
    s->length += (size_t)length;
    s->transcript[s->length++] = '\n';
    s->transcript[s->length] = '\0';
}

/* " of 0 2": the slots of the generation's members by rank, when it is not the first. */
static const char *members(const struct script *s, const struct core_record *r)
{
    static char text[128];
    struct core_job_view view;
    text[0] = '\0';
    if (r->plan.generation.number == 1 || !core_job(s->core, r->job, &view)) {
        return text;
    }
    int length = snprintf(text, sizeof(text), " of");
    for (uint32_t rank = 0; rank < view.roster; rank++) {
        length += snprintf(text + length, sizeof(text) - (size_t)length, " %u",
            core_job_member(s->core, r->job, rank));
    }
    if (view.source != SOURCE_NONE) {
        (void)snprintf(
            text + length, sizeof(text) - (size_t)length, ", source rank %u", view.source);
    }
    return text;
}

static void show_record(struct script *s, const struct core_record *r)
{
    char head[64];
    const struct cursor *c;
    (void)snprintf(head, sizeof(head), "record%s job %" PRIu64 ":", r->sync ? "!" : "", r->job.n);
    switch (r->type) {
    case CORE_RECORD_JOB:
        line(s, "%s submitted %u tasks", head, r->submitted.spec.tasks);
        break;
    case CORE_RECORD_STARTED:
        line(s, "%s started, incarnations to %" PRIu64, head, r->incarnation_max);
        break;
    case CORE_RECORD_TASK:
        line(s, "%s task %u#%" PRIu64 " on %s", head, r->task.slot, r->task.incarnation,
            r->task.worker);
        break;
    case CORE_RECORD_PLAN:
        line(s, "%s plan g%" PRIu64 " from %" PRIu64 "%s%s", head, r->plan.generation.number,
            r->plan.resume, r->plan.restarted ? ", anew" : "", members(s, r));
        assert_true(r->plan.generation.nonce != 0);
        break;
    case CORE_RECORD_CONTROL:
        if (r->control.halt_kind == HALT_NONE) {
            line(s, "%s no halt", head);
        } else if (r->control.halt_stream == STREAM_ANY) {
            line(s, "%s halt at %" PRIu64, head, r->control.halt_at);
        } else {
            line(s, "%s halt at %" PRIu64 " of stream %u", head, r->control.halt_at,
                r->control.halt_stream);
        }
        break;
    case CORE_RECORD_FEED:
        c = &r->feed.cursor;
        line(s, "%s stream %u epoch %" PRIu64 " fed %" PRIu64 " in %" PRIu64 " steps", head,
            c->stream, c->epoch, r->feed.feed.samples, r->feed.feed.steps);
        break;
    case CORE_RECORD_STREAM:
        line(s, "%s stream %u is %s of %" PRIu64, head, r->stream.stream, r->stream.name,
            r->stream.samples);
        break;
    case CORE_RECORD_WATERMARK:
        c = &r->watermark.cursor;
        line(s, "%s released to %" PRIu64 ", stream %u epoch %" PRIu64 " from %" PRIu64, head,
            r->watermark.up_to, c->stream, c->epoch, c->first);
        break;
    case CORE_RECORD_END_OF_DATA:
        c = &r->end_of_data;
        line(s, "%s stream %u epoch %" PRIu64 " has %" PRIu64 " steps", head, c->stream, c->epoch,
            c->steps);
        break;
    case CORE_RECORD_CHECKPOINT:
        line(s, "%s checkpoint at %" PRIu64 " in %s", head, r->checkpoint.position,
            r->checkpoint.path);
        break;
    case CORE_RECORD_DONE:
        line(s, "%s done at %" PRIu64, head, r->done.position);
        break;
    case CORE_RECORD_TASK_EXIT:
        line(s, "%s task %u %s %d/%d", head, r->task_exit.slot, task_state_name(r->task_exit.state),
            r->task_exit.exit.code, r->task_exit.exit.signal);
        break;
    case CORE_RECORD_ENDING:
        if (s->shows_endings) {
            line(s, "%s ending as %s", head, job_state_name(r->ended.state));
        }
        break;
    case CORE_RECORD_ENDED:
        line(s, "%s %s %s exit %d: %s", head, job_state_name(r->ended.state),
            cadre_status_name(r->ended.code), r->ended.exit_code, r->ended.text);
        break;
    }
}

static void show_tell(struct script *s, const struct core_action *action)
{
    static const char *const tells[] = {[CORE_TELL_PLAN] = "plan",
        [CORE_TELL_RELEASE] = "release",
        [CORE_TELL_ABORT] = "abort",
        [CORE_TELL_BYE] = "bye"};
    char to[64] = "";
    char what[32] = "";
    struct core_job_view view;
    if (action->tell_job.one) {
        (void)snprintf(to, sizeof(to), " task %u on link %" PRIu64, action->tell_job.slot,
            action->tell_job.link.n);
    }
    if (action->tell_job.tell == CORE_TELL_RELEASE &&
        core_job(s->core, action->tell_job.job, &view)) {
        (void)snprintf(what, sizeof(what), " to %" PRIu64 "%s", view.released,
            view.halt_kind == HALT_NONE ? "" : ", halt");
    }
    line(s, "tell job %" PRIu64 "%s: %s g%" PRIu64 "%s%s%s", action->tell_job.job.n, to,
        tells[action->tell_job.tell], action->tell_job.generation.number, what,
        action->tell_job.reason[0] == '\0' ? "" : ": ", action->tell_job.reason);
}

static void show_tell_task(struct script *s, const struct core_action *action)
{
    static const char *const types[] = {[TASK_DOWN_REFUSED] = "refused",
        [TASK_DOWN_SUPERSEDED] = "superseded",
        [TASK_DOWN_RESET] = "reset",
        [TASK_DOWN_WARM] = "warm"};
    const char *type = types[action->tell_task.type];
    if (action->tell_task.type == TASK_DOWN_WARM || action->tell_task.type == TASK_DOWN_RESET) {
        line(s, "tell task %" PRIu64 "/%u#%" PRIu64 " on link %" PRIu64 ": %s",
            action->tell_task.task.job.n, action->tell_task.task.slot,
            action->tell_task.task.incarnation, action->tell_task.link.n, type);
        return;
    }
    line(s, "tell task %" PRIu64 "/%u on link %" PRIu64 ": %s %s: %s", action->tell_task.task.job.n,
        action->tell_task.task.slot, action->tell_task.link.n, type,
        cadre_status_name(action->tell_task.code), action->tell_task.text);
}

static void show(struct script *s, const struct core_action *action)
{
    switch (action->type) {
    case CORE_ACTION_RECORD:
        show_record(s, &action->record);
        break;
    case CORE_ACTION_ANSWER:
        if (action->answer.code == CADRE_OK) {
            line(s, "answer %" PRIu64 ": job %" PRIu64 ", %u before", action->answer.call.n,
                action->answer.job.n, action->answer.queued_before);
        } else {
            line(s, "answer %" PRIu64 ": %s: %s", action->answer.call.n,
                cadre_status_name(action->answer.code), action->answer.text);
        }
        break;
    case CORE_ACTION_WELCOME:
        line(s, "welcome link %" PRIu64 ": worker %" PRIu64, action->welcome.link.n,
            action->welcome.worker.n);
        break;
    case CORE_ACTION_REFUSE:
        line(s, "refuse link %" PRIu64 ": %s: %s", action->refuse.link.n,
            cadre_status_name(action->refuse.code), action->refuse.text);
        break;
    case CORE_ACTION_START_JOB:
        line(s, "start job %" PRIu64, action->job.n);
        break;
    case CORE_ACTION_STOP_JOB:
        line(s, "stop job %" PRIu64, action->job.n);
        break;
    case CORE_ACTION_STOP_TASK:
        line(s, "stop task %" PRIu64 "/%u#%" PRIu64 " on link %" PRIu64,
            action->stop_task.task.job.n, action->stop_task.task.slot,
            action->stop_task.task.incarnation, action->stop_task.link.n);
        break;
    case CORE_ACTION_TELL_JOB:
        show_tell(s, action);
        break;
    case CORE_ACTION_TELL_TASK:
        show_tell_task(s, action);
        break;
    case CORE_ACTION_JOB_CHANGED:
        if (s->shows_changes) {
            line(s, "changed job %" PRIu64, action->job.n);
        }
        break;
    case CORE_ACTION_JOB_ENDED:
        line(s, "ended job %" PRIu64, action->job.n);
        break;
    case CORE_ACTION_START_AGAIN:
        line(s, "start again job %" PRIu64 " on link %" PRIu64, action->start_again.job.n,
            action->start_again.link.n);
        break;
    }
}

void script_says(struct script *s, const char *expected, const char *file, int at)
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

static void step_once(struct script *s, const struct core_event *event)
{
    struct core_event timed = *event;
    timed.now_us = s->now_us;
    s->actions.count = 0;
    core_step(s->core, &timed, &s->actions);
    for (size_t i = 0; i < s->actions.count; i++) {
        show(s, &s->actions.items[i]);
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
    (void)snprintf(event.drain.worker, sizeof(event.drain.worker), "%s", worker);
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
                .library_version = "0.1.0",
                .name = name,
                .host = "host",
                .boot_nonce = nonce,
                .slots = slots,
                .draining = draining,
                .tasks = tasks,
                .task_count = task_count}});
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

static struct generation generation_of(const struct script *s, uint64_t job)
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

void gone(struct script *s, uint64_t link, uint64_t job, uint32_t slot, int32_t code,
    int32_t signal, const char *text)
{
    struct agent_up message = {.type = AGENT_UP_TASK_GONE,
        .gone = {.task = ref(s, job, slot), .exit = {.code = code, .signal = signal}}};
    (void)snprintf(message.gone.exit.text, sizeof(message.gone.exit.text), "%s", text);
    up(s, link, &message);
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

void said(
    struct script *s, uint64_t link, uint64_t job, uint32_t slot, const struct task_up *message)
{
    up(s, link,
        &(struct agent_up){
            .type = AGENT_UP_SAID, .said = {.task = ref(s, job, slot), .up = *message}});
}

void task_hello(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t generation)
{
    struct task_up message = {.type = TASK_UP_HELLO,
        .hello = {.frame_version = TASK_FRAME_VERSION,
            .library_version = "0.1.0",
            .pid = 100 + slot,
            .replicas = 1,
            .mesh_address = "127.0.0.1:9",
            .clean = true}};
    if (generation != 0) {
        message.hello.generation = generation_of(s, job);
        message.hello.generation.number = generation;
    }
    said(s, link, job, slot, &message);
}

void report(
    struct script *s, uint64_t link, uint64_t job, uint32_t slot, const struct task_report *report)
{
    struct task_up up = {.type = TASK_UP_REPORT, .report = *report};
    up.report.generation = generation_of(s, job);
    up.report.text = report->text == NULL ? "" : report->text;
    said(s, link, job, slot, &up);
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
    said(s, link, job, slot, &(struct task_up){.type = TASK_UP_JOIN, .join = {.stream = stream}});
}

void part(struct script *s, uint64_t link, uint64_t job, uint32_t slot, uint64_t position,
    const char *path)
{
    said(s, link, job, slot,
        &(struct task_up){.type = TASK_UP_PART,
            .part = {.generation = generation_of(s, job),
                .position = position,
                .path = path,
                .size_bytes = 5}});
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
    up(s, link,
        &(struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = {job},
                .generation = generation_of(s, job),
                .tasks = 1,
                .wanted = steps,
                .wanted_slot = slot}});
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

void collect(struct script *s, uint64_t link, uint64_t job, uint32_t slot)
{
    gone(s, link, job, slot, 0, 9, "");
    collected(s, link, job, slot);
}
