/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/engine/stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void line(struct stage *stage, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof stage->transcript - stage->length;
    int length = vsnprintf(stage->transcript + stage->length, room, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && (size_t)length + 2 <= room);
    stage->length += (size_t)length;
    stage->transcript[stage->length++] = '\n';
    stage->transcript[stage->length] = '\0';
}

/* ---- the store ---- */

static struct watched_store *watched(const struct store *store)
{
    return (struct watched_store *)(uintptr_t)store;
}

static const char *record_name(enum core_record_type type)
{
    static const char *const names[] = {[CORE_RECORD_JOB] = "job",
        [CORE_RECORD_STARTED] = "started",
        [CORE_RECORD_PLAN] = "plan",
        [CORE_RECORD_WATERMARK] = "watermark",
        [CORE_RECORD_END_OF_DATA] = "end of data",
        [CORE_RECORD_CHECKPOINT] = "checkpoint",
        [CORE_RECORD_DONE] = "done",
        [CORE_RECORD_TASK_EXIT] = "task exit",
        [CORE_RECORD_ENDED] = "ended"};
    return names[type];
}

static cadre_status watched_commit(struct store *store, const struct store_record *records,
    size_t count, bool sync, struct cadre_error *error)
{
    struct watched_store *self = watched(store);
    char text[512] = "";
    for (size_t i = 0; i < count; i++) {
        const struct core_record *record = records[i].record;
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s %s %" PRIu64, i > 0 ? "," : "",
            record_name(record->type), record->job.n);
        assert_true(record->type != CORE_RECORD_JOB || records[i].spec_bytes > 0);
        assert_true(record->type != CORE_RECORD_PLAN || records[i].roster_bytes % 12 == 0);
        bool timed = record->type == CORE_RECORD_JOB || record->type == CORE_RECORD_STARTED ||
                     record->type == CORE_RECORD_ENDED;
        assert_true(timed == (records[i].wall_us != 0));
    }
    self->commits++;
    if (self->commits == self->failing_commit) {
        line(self->stage, "commit%s fails:%s", sync ? "!" : "", text);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "the disk is full");
    }
    line(self->stage, "commit%s:%s", sync ? "!" : "", text);
    return self->inner->ops->commit(self->inner, records, count, sync, error);
}

static cadre_status watched_load(struct store *store,
    cadre_status (*visit)(void *user, const struct store_job *job, struct cadre_error *error),
    void *user, struct cadre_error *error)
{
    struct store *inner = watched(store)->inner;
    return inner->ops->load(inner, visit, user, error);
}

static cadre_status watched_task_exits(struct store *store, struct job_id job,
    void (*visit)(void *user, const struct store_task_exit *exit), void *user,
    struct cadre_error *error)
{
    struct store *inner = watched(store)->inner;
    return inner->ops->task_exits(inner, job, visit, user, error);
}

static cadre_status watched_forget(
    struct store *store, struct job_id job, struct cadre_error *error)
{
    struct watched_store *self = watched(store);
    line(self->stage, "store forgets %" PRIu64, job.n);
    if (self->forget_fails) {
        return cadre_error_set(error, CADRE_DATA_LOSS, "the disk is gone");
    }
    return self->inner->ops->forget(self->inner, job, error);
}

static void watched_secret(const struct store *store, uint8_t ret_secret[STORE_SECRET_BYTES])
{
    memcpy(ret_secret, watched(store)->secret, STORE_SECRET_BYTES);
}

static uint64_t watched_job_id_max(const struct store *store)
{
    const struct store *inner = watched(store)->inner;
    return inner->ops->job_id_max(inner);
}

static void watched_close(struct store *store)
{
    line(watched(store)->stage, "store is closed");
}

static const struct store_ops watched_ops = {.name = "watched",
    .commit = watched_commit,
    .load = watched_load,
    .task_exits = watched_task_exits,
    .forget = watched_forget,
    .secret = watched_secret,
    .job_id_max = watched_job_id_max,
    .close = watched_close};

/* ---- the sink ---- */

static void show_tell(struct stage *stage, struct link_id link, const struct agent_tell *tell)
{
    char to[64];
    if (tell->one) {
        snprintf(to, sizeof to, "task %" PRIu64 "/%" PRIu32, tell->task.job.n, tell->task.slot);
    } else {
        snprintf(to, sizeof to, "job %" PRIu64, tell->job.n);
    }
    const struct task_down *down = &tell->down;
    switch (down->type) {
    case TASK_DOWN_PLAN:
        memcpy(stage->key, down->plan.key, sizeof stage->key);
        stage->generation = down->plan.generation;
        line(stage, "link %" PRIu64 " %s: plan g%" PRIu64 " of %zu from %" PRIu64, link.n, to,
            down->plan.generation.number, down->plan.roster_count, down->plan.resume);
        break;
    case TASK_DOWN_RELEASE:
        line(stage, "link %" PRIu64 " %s: release g%" PRIu64 " to %" PRIu64, link.n, to,
            down->release.generation.number, down->release.up_to);
        break;
    case TASK_DOWN_ABORT:
        line(stage, "link %" PRIu64 " %s: abort g%" PRIu64 ": %s", link.n, to,
            down->generation.number, down->reason);
        break;
    case TASK_DOWN_BYE:
        line(stage, "link %" PRIu64 " %s: bye g%" PRIu64, link.n, to, down->generation.number);
        break;
    case TASK_DOWN_RESET:
    case TASK_DOWN_SUPERSEDED:
    case TASK_DOWN_REFUSED:
        line(stage, "link %" PRIu64 " %s: type %d", link.n, to, (int)down->type);
        break;
    }
}

static void sink_down(void *user, struct link_id link, const struct agent_down *down)
{
    struct stage *stage = user;
    switch (down->type) {
    case AGENT_DOWN_WELCOME:
        line(stage, "link %" PRIu64 ": welcome worker %" PRIu64, link.n, down->welcome.worker.n);
        assert_int_equal(down->welcome.lease_us, stage->options.core.lease_us);
        break;
    case AGENT_DOWN_START:
        line(stage, "link %" PRIu64 ": start %" PRIu64 "/%" PRIu32 "#%" PRIu64 " of %" PRIu32 " %s",
            link.n, down->start.task.job.n, down->start.task.slot, down->start.task.incarnation,
            down->start.task_count, down->start.spec.program.name);
        break;
    case AGENT_DOWN_STOP:
        line(stage, "link %" PRIu64 ": stop job %" PRIu64 "%s", link.n, down->stop.job.n,
            down->stop.one ? ", one task" : "");
        break;
    case AGENT_DOWN_TELL:
        show_tell(stage, link, &down->tell);
        break;
    case AGENT_DOWN_REFUSED:
    case AGENT_DOWN_LOG_ACK:
        fail_msg("the engine does not send type %d", (int)down->type);
    }
}

static void sink_refuse(void *user, struct link_id link, cadre_status code, const char *text)
{
    line(user, "refuse link %" PRIu64 ": %s: %s", link.n, cadre_status_name(code), text);
}

static void sink_answer(void *user, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *text)
{
    if (code == CADRE_OK) {
        line(user, "answer %" PRIu64 ": job %" PRIu64 ", %" PRIu32 " before", call.n, job.n,
            queued_before);
    } else {
        line(user, "answer %" PRIu64 ": %s: %s", call.n, cadre_status_name(code), text);
    }
}

static void sink_job_changed(void *user, struct job_id job)
{
    struct stage *stage = user;
    struct job_info info;
    assert_true(engine_job_info(stage->engine, job, &info)); /* readers are allowed here */
    line(stage, "changed %" PRIu64 ": %s", job.n, job_state_name(info.state));
}

static void sink_job_forgotten(void *user, struct job_id job)
{
    struct stage *stage = user;
    struct job_info info;
    assert_false(engine_job_info(stage->engine, job, &info));
    line(stage, "forgotten %" PRIu64, job.n);
}

static const struct engine_sink sink = {.down = sink_down,
    .refuse = sink_refuse,
    .answer = sink_answer,
    .job_changed = sink_job_changed,
    .job_forgotten = sink_job_forgotten};

/* ---- the stage ---- */

static void open_engine(struct stage *stage)
{
    assert_ok(engine_open(&stage->options, &stage->store.base, &sink, stage, stage->now_us,
                  &stage->engine, &stage->error),
        &stage->error);
}

struct stage *stage_open(void)
{
    struct stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    stage->options = (struct engine_options){
        .core = {.limits = {.workers_max = 4, .jobs_max = 3, .tasks_max = 8},
            .seed = 7,
            .lease_us = 10 * SECOND,
            .grace_us = 5 * SECOND,
            .collect_us = 20 * SECOND,
            .form_us = 30 * SECOND},
        .keep_jobs = 2};
    stage->now_us = SECOND;
    stage->store = (struct watched_store){.base.ops = &watched_ops, .stage = stage};
    assert_ok(store_memory_open(&stage->store.inner, &stage->error), &stage->error);
    stage->store.inner->ops->secret(stage->store.inner, stage->store.secret);
    open_engine(stage);
    return stage;
}

void stage_reopen(struct stage *stage)
{
    engine_close(stage->engine);
    stage->engine = NULL;
    stage->now_us += SECOND;
    open_engine(stage);
}

void stage_close(struct stage *stage)
{
    engine_close(stage->engine);
    stage->store.inner->ops->close(stage->store.inner);
    free(stage);
}

void flush(struct stage *stage)
{
    assert_ok(engine_flush(stage->engine, stage->now_us, &stage->error), &stage->error);
}

void stage_skip(struct stage *stage)
{
    stage->length = 0;
    stage->transcript[0] = '\0';
}

void stage_says(struct stage *stage, const char *expected, const char *file, int at)
{
    if (strcmp(stage->transcript, expected) != 0) {
        print_error("--- said\n%s--- expected\n%s---\n", stage->transcript, expected);
        _fail(file, at);
    }
    stage_skip(stage);
}

void submit(struct stage *stage, uint64_t call, uint32_t tasks)
{
    struct job_spec spec = {.name = "a job",
        .program = {.name = "program", .executable = true},
        .workers = tasks,
        .strategy = ""};
    engine_submit(stage->engine, stage->now_us, (struct call_id){call}, &spec);
}

void cancel(struct stage *stage, uint64_t call, uint64_t job)
{
    engine_cancel(stage->engine, stage->now_us, (struct call_id){call}, (struct job_id){job});
}

static void up(struct stage *stage, uint64_t link, const struct agent_up *message)
{
    engine_agent_up(stage->engine, stage->now_us, (struct link_id){link}, message);
}

static struct task_ref ref(uint64_t job, uint32_t slot)
{
    return (struct task_ref){.job = {job}, .slot = slot, .incarnation = slot + 1};
}

void join(struct stage *stage, uint64_t link, const char *name, uint32_t slots)
{
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_HELLO,
            .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                .library_version = "1.2.3",
                .name = name,
                .host = "host",
                .boot_nonce = 1000 + link,
                .slots = slots,
                .cpus = 3,
                .memory_bytes = 4096}});
}

void started(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot)
{
    up(stage, link,
        &(struct agent_up){
            .type = AGENT_UP_TASK_STARTED, .started = {.task = ref(job, slot), .pid = 100 + slot}});
}

void gone(
    struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, int32_t code, const char *text)
{
    struct agent_up message = {
        .type = AGENT_UP_TASK_GONE, .gone = {.task = ref(job, slot), .exit.code = code}};
    snprintf(message.gone.exit.text, sizeof message.gone.exit.text, "%s", text);
    up(stage, link, &message);
}

void collected(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot)
{
    up(stage, link,
        &(struct agent_up){
            .type = AGENT_UP_TASK_COLLECTED, .collected = {.task = ref(job, slot), .text = ""}});
}

void task_hello(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot)
{
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_SAID,
            .said = {.task = ref(job, slot),
                .up = {.type = TASK_UP_HELLO,
                    .hello = {.frame_version = TASK_FRAME_VERSION,
                        .library_version = "1.2.3",
                        .pid = 100 + slot,
                        .replicas = 1,
                        .mesh_address = "127.0.0.1:9",
                        .clean = true}}}});
}

void progress(struct stage *stage, uint64_t link, uint64_t job, uint32_t slot, uint64_t epoch)
{
    const struct metric metrics[2] = {{.name = "loss", .value = 0.5}, {.name = "", .value = 1}};
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_SAID,
            .said = {.task = ref(job, slot),
                .up = {.type = TASK_UP_PROGRESS,
                    .progress = {.stream = "train",
                        .epoch = epoch,
                        .metrics = metrics,
                        .metric_count = 2}}}});
}

void arrived(struct stage *stage, uint64_t link, uint64_t job, uint32_t tasks, uint64_t up_to)
{
    up(stage, link,
        &(struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = {job},
                .generation = stage->generation,
                .tasks = tasks,
                .up_to = up_to,
                .applied = up_to - 1,
                .cursor = {.stream = 1, .first = 0, .steps = 0}}});
}

struct stage *stage_formed(void)
{
    struct stage *stage = stage_open();
    join(stage, 1, "one", 2);
    join(stage, 2, "two", 2);
    submit(stage, 1, 3);
    flush(stage);
    for (uint32_t slot = 0; slot < 3; slot++) {
        uint64_t link = slot < 2 ? 1 : 2;
        started(stage, link, 1, slot);
        task_hello(stage, link, 1, slot);
    }
    flush(stage);
    assert_int_equal(stage->generation.number, 1);
    stage_skip(stage);
    return stage;
}
