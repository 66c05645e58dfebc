/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent/stage.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "worker/host/agent/agent.h"

static struct played *played(struct stage *stage, struct task_ref task)
{
    assert_int_equal(task.job.n, 1);
    assert_in_range(task.incarnation, 1, ATTEMPTS_MAX);
    assert_int_equal(task.slot, (task.incarnation - 1) % SLOTS_MAX);
    return &stage->tasks[task.incarnation - 1];
}

/* ---- the front ---- */

static void on_agent_send(void *user, const struct agent_up *up)
{
    struct stage *stage = user;
    struct played *task = NULL;
    switch (up->type) {
    case AGENT_UP_HELLO:
        stage->hellos++;
        assert_string_equal(up->hello.name, "agent");
        stage->nonce = up->hello.boot_nonce;
        break;
    case AGENT_UP_ARRIVED:
        stage->arrivals++;
        stage->arrived_up_to = up->arrived.up_to;
        break;
    case AGENT_UP_TASK_STARTED:
        task = played(stage, up->started.task);
        task->started = true;
        task->pid = up->started.pid;
        break;
    case AGENT_UP_TASK_GONE:
        task = played(stage, up->gone.task);
        assert_false(task->gone);
        task->gone = true;
        task->exit = up->gone.exit;
        task->cause = up->gone.cause;
        break;
    case AGENT_UP_TASK_COLLECTED:
        task = played(stage, up->collected.task);
        assert_true(task->gone);
        task->collected = true;
        break;
    case AGENT_UP_RELAY:
        task = played(stage, up->relay_up.task);
        assert_true(task->relayed_count < RELAYED_MAX);
        task->relay_up[task->relayed_count++] = up->relay_up.up.type;
        if (up->relay_up.up.type == TASK_UP_PROGRESS) {
            task->relayed_epoch = up->relay_up.up.progress.epoch;
        } else if (up->relay_up.up.type == TASK_UP_PART) {
            task->relayed_parts++;
            task->relayed_position = up->relay_up.up.part.position;
        }
        break;
    case AGENT_UP_HEARTBEAT:
    case AGENT_UP_DRAINING:
    case AGENT_UP_LOG:
        break;
    }
}

void prepared(struct stage *stage, uint32_t attempt)
{
    char socket[TEST_PATH_BYTES];
    snprintf(socket, sizeof socket, "%s/%s%u", stage->folder,
        stage->socket_name != NULL ? stage->socket_name : "s", (unsigned)attempt);
    char work[TEST_PATH_BYTES];
    char keeper[TEST_PATH_BYTES];
    snprintf(keeper, sizeof keeper, "%s/k%u", stage->folder, (unsigned)attempt);
    test_path(work, stage->folder, "work");
    struct cadre_error error = {0};
    const char *program = stage->program != NULL ? stage->program : "./program";
    const char *folder = stage->work != NULL ? stage->work : work;
    int listener = -1;
    if (executable_check(folder, program, "program", &error) != CADRE_OK ||
        listener_make(socket, &stage->user, &listener, &error) != CADRE_OK) {
        agent_task_failed(stage->agent, task_of(attempt), 126, &error);
        return;
    }
    agent_task_prepared(stage->agent, task_of(attempt),
        &(struct agent_launch){.program = program,
            .folder = folder,
            .output = "/tmp/out",
            .socket = socket,
            .listener = listener,
            .restore = stage->tasks[attempt].restores ? stage->restore : NULL,
            .keeper = stage->keep_tasks ? keeper : NULL,
            .inherit_environment = stage->inherit_environment});
}

static void on_agent_prepare(void *user, const struct agent_start *start)
{
    struct stage *stage = user;
    struct played *task = played(stage, start->task);
    assert_string_equal(start->spec.program.name, "program");
    task->restores = start->restores;
    if (stage->fail_prepare) {
        struct cadre_error error;
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "the disk is full");
        agent_task_failed(stage->agent, start->task, 126, &error);
    } else if (!stage->delay_prepare) {
        prepared(stage, (uint32_t)start->task.incarnation - 1);
    }
}

static bool on_agent_adopted(void *user, const struct agent_start *start)
{
    struct stage *stage = user;
    assert_string_equal(start->spec.program.name, "program");
    played(stage, start->task)->adopted = true;
    return !stage->refuse_adopted;
}

static void on_agent_publish(void *user, struct task_ref ref, const struct task_part *part)
{
    struct stage *stage = user;
    struct played *task = played(stage, ref);
    task->publishes++;
    task->published_position = part->position;
    snprintf(task->published_path, sizeof task->published_path, "%s", part->path);
    if (!stage->delay_publish) {
        agent_task_published(stage->agent, ref, CADRE_OK, "");
    }
}

static void on_agent_output(
    void *user, struct task_ref ref, enum agent_stream stream, const uint8_t *bytes, size_t size)
{
    struct played *task = played(user, ref);
    struct wire_buffer *output = &task->output[stream == AGENT_STDOUT ? 0 : 1];
    assert_false(task->gone); /* nothing comes after the end */
    assert_true(wire_buffer_reserve(output, size));
    memcpy(output->bytes + output->size, bytes, size);
    output->size += size;
}

static void on_agent_collect(void *user, struct task_ref task)
{
    struct stage *stage = user;
    if (!stage->delay_collect) {
        agent_task_collected(stage->agent, task, CADRE_OK, "");
    }
}

static void on_agent_forget(void *user, struct task_ref task)
{
    played(user, task)->forgotten = true;
}

static void on_agent_drained(void *user)
{
    struct stage *stage = user;
    stage->drained = true;
}

static void on_agent_notice(void *user, struct task_ref task, const char *text)
{
    struct stage *stage = user;
    (void)task;
    size_t at = strlen(stage->notices);
    snprintf(stage->notices + at, sizeof stage->notices - at, "%s\n", text);
}

static const struct agent_callbacks callbacks = {.send = on_agent_send,
    .prepare = on_agent_prepare,
    .adopted = on_agent_adopted,
    .output = on_agent_output,
    .publish = on_agent_publish,
    .collect = on_agent_collect,
    .forget = on_agent_forget,
    .drained = on_agent_drained,
    .notice = on_agent_notice};

/* ---- the stage ---- */

/* A folder for each, all in one: a program may have only so many of them. */
static void make_folder(struct stage *stage)
{
    static const char *all;
    static unsigned count;
    if (all == NULL) {
        all = test_temp_dir();
        assert_int_equal(chmod(all, 0711), 0);
    }
    snprintf(stage->folder, sizeof stage->folder, "%s/%d.%u", all, (int)getpid(), ++count);
    assert_int_equal(mkdir(stage->folder, 0711), 0);
}

static void copy_program(struct stage *stage)
{
    char *bytes = NULL;
    size_t size = 0;
    char path[TEST_PATH_BYTES];
    assert_int_equal(mkdir(test_path(path, stage->folder, "work"), 0755), 0);
    assert_ok(file_read(TEST_PROGRAM, 64U << 20, &bytes, &size, &stage->error), &stage->error);
    assert_ok(file_write_atomic(path_in(stage, "work/program"), bytes, size, 0755, &stage->error),
        &stage->error);
    assert_int_equal(chmod(path_in(stage, "work/program"), 0755), 0);
    free(bytes);
}

static void on_guard(uv_timer_t *timer)
{
    (void)timer;
}

struct stage *stage_open(void)
{
    return stage_open_as(false, 0, 0);
}

static struct stage *open_stage(const struct agent_setup *setup)
{
    struct stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    stage->user = (struct task_confinement){
        .change_user = setup->change_user, .uid = setup->uid, .gid = setup->gid};
    make_folder(stage);
    copy_program(stage);
    assert_int_equal(uv_loop_init(&stage->loop), 0);
    uv_timer_init(&stage->loop, &stage->guard);
    uv_timer_start(&stage->guard, on_guard, 2, 2);
    assert_ok(agent_open(setup, &stage->loop, &callbacks, stage, &stage->agent, &stage->error),
        &stage->error);
    return stage;
}

void stage_link(struct stage *stage)
{
    agent_link_up(stage->agent);
    assert_int_equal(stage->hellos, 1);
    agent_down(stage->agent, &(struct agent_down){.type = AGENT_DOWN_WELCOME,
                                 .welcome = {.worker = {1}, .lease_us = 600 * CADRE_US_PER_S}});
}

static struct stage *linked(struct stage *stage)
{
    stage_link(stage);
    return stage;
}

static struct agent_setup usual_setup(void)
{
    return (struct agent_setup){.core = {.slots = SLOTS_MAX,
                                    .heartbeat_us = 60 * CADRE_US_PER_S,
                                    .orphan_us = 60 * CADRE_US_PER_S,
                                    .grace_us = 100 * CADRE_US_PER_MS},
        .identity = {.name = "agent", .host = "host", .boot_nonce = 5},
        .mesh_host = "127.0.0.1",
        .mesh_ports = {.first = 47000, .last = 47099}};
}

struct stage *stage_open_away(uint64_t nonce)
{
    struct agent_setup setup = usual_setup();
    setup.identity.boot_nonce = nonce;
    return open_stage(&setup);
}

struct stage *stage_open_as(bool change_user, uid_t uid, gid_t gid)
{
    struct agent_setup setup = usual_setup();
    setup.change_user = change_user;
    setup.uid = uid;
    setup.gid = gid;
    return linked(open_stage(&setup));
}

struct stage *stage_open_with_gpus(char *const *shares, const char *reason)
{
    struct agent_setup setup = usual_setup();
    setup.gpu_shares = shares;
    setup.identity.gpus.reason = reason;
    return linked(open_stage(&setup));
}

static void on_closed(void *user)
{
    struct stage *stage = user;
    stage->closed = true;
}

static bool is_closed(struct stage *stage)
{
    return stage->closed;
}

void stage_close(struct stage *stage)
{
    agent_close(stage->agent, on_closed, stage);
    until(stage, is_closed);
    for (uint32_t attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        struct played *task = &stage->tasks[attempt];
        assert_true(task->pid == 0 || is_process_gone(task->pid));
        wire_buffer_free(&task->output[0]);
        wire_buffer_free(&task->output[1]);
    }
    uv_close((uv_handle_t *)&stage->guard, NULL);
    uv_run(&stage->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&stage->loop), 0);
    free(stage);
}

void until(struct stage *stage, bool (*condition)(struct stage *stage))
{
    uint64_t end_us = clock_monotonic_us() + DEADLINE_US;
    while (!condition(stage)) {
        if (clock_monotonic_us() > end_us) {
            fail_msg("it did not happen in time; notices: %s", stage->notices);
        }
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
}

void linger(struct stage *stage)
{
    for (int i = 0; i < 20; i++) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
}

static uint32_t wanted_attempt;
static const char *wanted_text;

static bool is_started(struct stage *stage)
{
    return stage->tasks[wanted_attempt].started;
}

static bool is_gone(struct stage *stage)
{
    return stage->tasks[wanted_attempt].gone;
}

static bool is_collected(struct stage *stage)
{
    return stage->tasks[wanted_attempt].collected;
}

static bool is_printed(struct stage *stage)
{
    return strstr(printed(&stage->tasks[wanted_attempt]), wanted_text) != NULL;
}

void until_started(struct stage *stage, uint32_t attempt)
{
    wanted_attempt = attempt;
    until(stage, is_started);
}

void until_gone(struct stage *stage, uint32_t attempt)
{
    wanted_attempt = attempt;
    until(stage, is_gone);
}

void until_collected(struct stage *stage, uint32_t attempt)
{
    wanted_attempt = attempt;
    until(stage, is_collected);
}

void until_printed(struct stage *stage, uint32_t attempt, const char *part)
{
    wanted_attempt = attempt;
    wanted_text = part;
    until(stage, is_printed);
}

struct task_ref task_of(uint32_t attempt)
{
    return (struct task_ref){.job = {1}, .slot = attempt % SLOTS_MAX, .incarnation = attempt + 1};
}

void start_spec(struct stage *stage, uint32_t attempt, const struct job_spec *spec)
{
    agent_down(stage->agent,
        &(struct agent_down){.type = AGENT_DOWN_START,
            .start = {.task = task_of(attempt), .task_count = SLOTS_MAX, .spec = *spec}});
}

void start(struct stage *stage, uint32_t attempt, const char *verb, const char *argument)
{
    const char *const arguments[] = {verb, argument};
    start_spec(stage, attempt,
        &(struct job_spec){.name = "a job",
            .program = {.name = "program", .executable = true},
            .arguments = arguments,
            .argument_count = argument != NULL ? 2 : 1,
            .workers = SLOTS_MAX,
            .strategy = ""});
}

void stop(struct stage *stage, uint32_t attempt, uint64_t grace_us)
{
    agent_down(stage->agent,
        &(struct agent_down){.type = AGENT_DOWN_STOP,
            .stop = {.job = {1}, .one = true, .task = task_of(attempt), .grace_us = grace_us}});
}

struct played *play(struct stage *stage, const char *verb, const char *argument)
{
    start(stage, 0, verb, argument);
    until_collected(stage, 0);
    return &stage->tasks[0];
}

const char *printed(struct played *task)
{
    struct wire_buffer *output = &task->output[0];
    assert_true(wire_buffer_reserve(output, 1));
    output->bytes[output->size] = '\0';
    return (const char *)output->bytes;
}

long number_after(struct played *task, const char *what, unsigned n)
{
    const char *at = strstr(printed(task), what);
    while (at != NULL && n-- > 0) {
        at = strstr(at + 1, what);
    }
    if (at == NULL) {
        fail_msg("no \"%s\" in: %s", what, printed(task));
    }
    return strtol(at + strlen(what), NULL, 10);
}

bool is_process_gone(long pid)
{
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

const char *path_in(struct stage *stage, const char *name)
{
    static char path[TEST_PATH_BYTES];
    return test_path(path, stage->folder, name);
}
