/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/engine/stage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/roster_tree.h"
#include "common/pure/assert.h"

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
        [CORE_RECORD_TASK] = "task",
        [CORE_RECORD_PLAN] = "plan",
        [CORE_RECORD_CONTROL] = "control",
        [CORE_RECORD_WATERMARK] = "watermark",
        [CORE_RECORD_CONSUMED] = "feed",
        [CORE_RECORD_STREAM] = "stream",
        [CORE_RECORD_END_OF_DATA] = "end of data",
        [CORE_RECORD_CHECKPOINT] = "checkpoint",
        [CORE_RECORD_CHECKPOINT_LOST] = "checkpoint lost",
        [CORE_RECORD_ORIGIN] = "origin",
        [CORE_RECORD_DONE] = "done",
        [CORE_RECORD_TASK_EXIT] = "task exit",
        [CORE_RECORD_ENDING] = "ending",
        [CORE_RECORD_ENDED] = "ended",
        [CORE_RECORD_BACKED] = "backed",
        [CORE_RECORD_PUBLISHED] = "published",
        [CORE_RECORD_DIVERGED] = "diverged",
        [CORE_RECORD_CULPRIT] = "culprit",
        [CORE_RECORD_DRAINED] = "drained",
        [CORE_RECORD_UNDRAINED] = "undrained",
        [CORE_RECORD_VERIFIED] = "verified",
        [CORE_RECORD_CHECKPOINT_DROPPED] = "checkpoint dropped",
        [CORE_RECORD_FORGOTTEN] = "forgotten",
        [CORE_RECORD_TERM] = "term"};
    return names[type];
}

struct described {
    char text[512];
    size_t events; /* they come after the records */
    size_t terms;  /* one at most, before all others, in an engine's first commit: not shown */
    bool removals; /* what is not kept any more comes last */
};

static struct described describe(const struct store_record *records, size_t count)
{
    struct described described = {0};
    for (size_t i = 0; i < count; i++) {
        const struct core_record *record = records[i].record;
        if (record == NULL) {
            assert_true(records[i].event->time_us > 0);
            assert_false(described.removals);
            described.events++;
            continue;
        }
        if (record->type == CORE_RECORD_TERM) {
            assert_int_equal(i, 0);
            described.terms++;
            continue;
        }
        described.removals |=
            record->type == CORE_RECORD_CHECKPOINT_DROPPED || record->type == CORE_RECORD_FORGOTTEN;
        assert_true(described.events == 0 || described.removals);
        size_t at = strlen(described.text);
        snprintf(described.text + at, sizeof described.text - at, "%s %s %" PRIu64,
            at > 0 ? "," : "", record_name(record->type), record->job.n);
        assert_true(record->type != CORE_RECORD_JOB || records[i].spec_bytes > 0);
        bool placed = record->type == CORE_RECORD_STARTED || record->type == CORE_RECORD_PLAN;
        bool timed = placed || record->type == CORE_RECORD_JOB || record->type == CORE_RECORD_ENDED;
        assert_true(timed == (records[i].wall_us != 0));
        assert_true(placed == (records[i].placements != NULL));
    }
    return described;
}

static cadre_status watched_commit(struct store *store, const struct store_record *records,
    size_t count, bool sync, struct cadre_error *error)
{
    struct watched_store *self = watched(store);
    const struct described described = describe(records, count);
    size_t unshown = described.events + described.terms;
    if (unshown > 0 && unshown == count && !self->full && self->commit_is == CADRE_OK) {
        assert_true(!sync || described.terms > 0); /* events wait for the next one */
        return self->inner->ops->commit(self->inner, records, count, sync, error);
    }
    self->commits++;
    if (self->full || (described.removals && self->removals_full) ||
        self->commits == self->failing_commit) {
        line(self->stage, "commit%s fails:%s", sync ? "!" : "", described.text);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "the disk is full");
    }
    if (self->commit_is != CADRE_OK) {
        return cadre_error_set(error, self->commit_is, "the disk is gone");
    }
    line(self->stage, "commit%s:%s", sync ? "!" : "", described.text);
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

static cadre_status watched_ledger(struct store *store, struct job_id job,
    const struct store_walk *walk, struct cadre_error *error)
{
    struct store *inner = watched(store)->inner;
    return inner->ops->ledger(inner, job, walk, error);
}

static cadre_status watched_history(struct store *store, struct job_id job, uint64_t after,
    size_t max, void (*visit)(void *user, const struct history_event *event), void *user,
    uint64_t *ret_last, struct cadre_error *error)
{
    struct store *inner = watched(store)->inner;
    return inner->ops->history(inner, job, after, max, visit, user, ret_last, error);
}

static cadre_status watched_checkpoints(struct store *store, struct job_id job,
    void (*visit)(void *user, const struct core_checkpoint *checkpoint), void *user,
    struct cadre_error *error)
{
    struct store *inner = watched(store)->inner;
    return inner->ops->checkpoints(inner, job, visit, user, error);
}

static cadre_status watched_drains(struct store *store,
    void (*visit)(void *user, const struct core_drained *drained), void *user,
    struct cadre_error *error)
{
    struct store *inner = watched(store)->inner;
    return inner->ops->drains(inner, visit, user, error);
}

static cadre_status watched_culprits(struct store *store,
    void (*visit)(void *user, const struct core_culprit *culprit), void *user,
    struct cadre_error *error)
{
    struct store *inner = watched(store)->inner;
    return inner->ops->culprits(inner, visit, user, error);
}

static void watched_secret(const struct store *store, uint8_t ret_secret[STORE_SECRET_BYTES])
{
    memcpy(ret_secret, watched(store)->secret, STORE_SECRET_BYTES);
}

static struct term watched_term(const struct store *store)
{
    const struct store *inner = watched(store)->inner;
    return inner->ops->term(inner);
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
    .ledger = watched_ledger,
    .history = watched_history,
    .checkpoints = watched_checkpoints,
    .drains = watched_drains,
    .culprits = watched_culprits,
    .secret = watched_secret,
    .term = watched_term,
    .job_id_max = watched_job_id_max,
    .close = watched_close};

/* ---- the sink ---- */

/* "; halt 1 at 7 of 2", or "" */
static const char *halt_text(
    enum halt_kind kind, uint64_t at, uint32_t stream, char *text, size_t size)
{
    text[0] = '\0';
    if (kind != HALT_NONE) {
        snprintf(
            text, size, "; halt %d at %" PRIu64 " of %" PRId32, (int)kind, at, (int32_t)stream);
    }
    return text;
}

static void show_plan(
    struct stage *stage, struct link_id link, const char *to, const struct task_plan *plan)
{
    char source[32] = "no task";
    char halt[64];
    memcpy(stage->key, plan->key, sizeof stage->key);
    stage->generation = plan->generation;
    if (plan->source != SOURCE_NONE) {
        snprintf(source, sizeof source, "rank %" PRIu32, plan->source);
    }
    line(stage,
        "link %" PRIu64 " %s: plan g%" PRIu64 " of %" PRIu32 " from %" PRIu64 ", state of %s%s",
        link.n, to, plan->generation.number, plan_member_count(plan), plan->resume, source,
        halt_text(plan->halt_kind, plan->halt_at, plan->halt_stream, halt, sizeof halt));
    char part[128] = "";
    for (size_t i = 0; i < plan->roster_count; i++) {
        const struct roster_entry *entry = &plan->roster[i];
        uint32_t rank = plan_rank(plan, i);
        size_t length = strlen(part);
        assert_true(entry->incarnation > 0 && rank < CADRE_COUNT_OF(stage->roster));
        stage->roster[rank] = entry->incarnation;
        assert_string_equal(entry->mesh_address, "127.0.0.1:9");
        snprintf(part + length, sizeof part - length, " %" PRIu32 "=%" PRIu32, rank, entry->slot);
    }
    if (plan->members > 0) {
        line(stage, "  part:%s", part);
    }
}

static void show_release(
    struct stage *stage, struct link_id link, const char *to, const struct task_release *release)
{
    char halt[64];
    char published[64] = "";
    if (release->published != POSITION_NONE) {
        snprintf(published, sizeof published, ", published %" PRIu64, release->published);
    }
    line(stage, "link %" PRIu64 " %s: release g%" PRIu64 " to %" PRIu64 "%s%s", link.n, to,
        release->generation.number, release->up_to, published,
        halt_text(release->halt_kind, release->halt_at, release->halt_stream, halt, sizeof halt));
}

static void show_warm(
    struct stage *stage, struct link_id link, const char *to, const struct task_warm *warm)
{
    line(stage, "link %" PRIu64 " %s: warm, %" PRIu32 " train", link.n, to, warm->tasks);
    for (size_t i = 0; i < warm->stream_count; i++) {
        const struct stream_position *stream = &warm->streams[i];
        line(stage, "  stream %" PRIu32 " epoch %" PRIu64 " steps %" PRIu64 " applied %" PRIu64,
            stream->stream, stream->epoch, stream->steps, stream->applied);
    }
}

/* "0#1* 3#4" has who is here with a star. */
static void show_members(
    struct stage *stage, struct link_id link, const char *to, const struct task_members *members)
{
    char list[256] = "";
    size_t length = 0;
    for (size_t i = 0; i < members->member_count; i++) {
        const struct task_member *member = &members->members[i];
        length += (size_t)snprintf(list + length, sizeof list - length,
            " %" PRIu32 "#%" PRIu64 "%s%s", member->slot, member->incarnation,
            member->attempts > 1 ? " again" : "", member->here ? "*" : "");
        assert_true(length < sizeof list);
    }
    line(stage, "link %" PRIu64 " %s: members%s g%" PRIu64 ":%s", link.n, to,
        members->changes ? " changed" : "", members->generation.number, list);
    memcpy(stage->key, members->key, sizeof stage->key);
}

static void show_notify_job(
    struct stage *stage, struct link_id link, const struct agent_relay_down *relay_down)
{
    char to[64];
    if (relay_down->one) {
        snprintf(to, sizeof to, "task %" PRIu64 "/%" PRIu32, relay_down->task.job.n,
            relay_down->task.slot);
    } else {
        snprintf(to, sizeof to, "job %" PRIu64, relay_down->job.n);
    }
    const struct task_down *down = &relay_down->down;
    switch (down->type) {
    case TASK_DOWN_PLAN:
        show_plan(stage, link, to, &down->plan);
        break;
    case TASK_DOWN_RELEASE:
        show_release(stage, link, to, &down->release);
        break;
    case TASK_DOWN_WARM:
        show_warm(stage, link, to, &down->warm);
        break;
    case TASK_DOWN_VALUES_KEPT:
    case TASK_DOWN_TRACE:
        line(stage, "link %" PRIu64 " %s: values kept up to %" PRIu64, link.n, to,
            down->values_kept);
        break;
    case TASK_DOWN_MEMBERS:
        show_members(stage, link, to, &down->members);
        break;
    case TASK_DOWN_ABORT:
        line(stage, "link %" PRIu64 " %s: abort g%" PRIu64 ": %s", link.n, to,
            down->generation.number, down->reason);
        break;
    case TASK_DOWN_GOODBYE:
        line(stage, "link %" PRIu64 " %s: bye g%" PRIu64, link.n, to, down->generation.number);
        break;
    case TASK_DOWN_RESET:
    case TASK_DOWN_SUPERSEDED:
    case TASK_DOWN_REFUSED:
        line(stage, "link %" PRIu64 " %s: type %d", link.n, to, (int)down->type);
        break;
    }
}

static void show_start(struct stage *stage, struct link_id link, const struct agent_start *start)
{
    char from[160] = "";
    if (start->restores) {
        snprintf(from, sizeof from, " from step %" PRIu64 " (%.64s, %" PRIu64 " bytes, %02x%s)",
            start->checkpoint.position, start->checkpoint.path, start->checkpoint.manifest_bytes,
            start->checkpoint.manifest_sha256[0], start->checkpoint.shared ? ", shared" : "");
    }
    line(stage, "link %" PRIu64 ": start %" PRIu64 "/%" PRIu32 "#%" PRIu64 " of %" PRIu32 " %s%s",
        link.n, start->task.job.n, start->task.slot, start->task.incarnation, start->task_count,
        start->spec.program.name, from);
}

static void sink_down(void *user, struct link_id link, const struct agent_down *down)
{
    struct stage *stage = user;
    switch (down->type) {
    case AGENT_DOWN_WELCOME:
        line(stage, "link %" PRIu64 ": welcome worker %" PRIu64, link.n, down->welcome.worker.n);
        assert_int_equal(down->welcome.lease_us, stage->options.core.lease_us);
        assert_int_equal(down->welcome.protocol_version, AGENT_PROTOCOL_VERSION);
        break;
    case AGENT_DOWN_START:
        show_start(stage, link, &down->start);
        break;
    case AGENT_DOWN_STOP:
        line(stage, "link %" PRIu64 ": stop job %" PRIu64 "%s", link.n, down->stop.job.n,
            down->stop.one ? ", one task" : "");
        break;
    case AGENT_DOWN_RELAY:
        show_notify_job(stage, link, &down->relay_down);
        break;
    case AGENT_DOWN_FORGET:
        line(stage, "link %" PRIu64 ": forget job %" PRIu64, link.n, down->forget.n);
        break;
    case AGENT_DOWN_REFUSED:
    case AGENT_DOWN_LOG_ACK:
    case AGENT_DOWN_KEEPALIVE:
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
        line(user, "answer %" PRIu64 ": job %" PRIu64 ", %" PRIu32 " before%s%s", call.n, job.n,
            queued_before, text[0] == '\0' ? "" : "; ", text);
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

static void sink_checkpoint_dropped(
    void *user, struct job_id job, const struct core_checkpoint *checkpoint)
{
    line(user, "dropped checkpoint %" PRIu64 " of %" PRIu64 ": %s", checkpoint->position, job.n,
        checkpoint->path);
}

static const struct engine_sink sink = {.down = sink_down,
    .refuse = sink_refuse,
    .answer = sink_answer,
    .job_changed = sink_job_changed,
    .job_forgotten = sink_job_forgotten,
    .checkpoint_dropped = sink_checkpoint_dropped};

/* ---- a shared log ---- */

static cadre_status log_append(void *user, const struct store_record *records, size_t count,
    bool waits, struct cadre_error *error)
{
    struct stage *stage = user;
    const struct described described = describe(records, count);
    stage->appended++;
    stage->events += described.events;
    line(stage, "entry %u%s:%s", stage->appended, waits ? "!" : "", described.text);
    return stage->append_is == CADRE_OK
               ? CADRE_OK
               : cadre_error_set(error, stage->append_is, "the log is gone");
}

void stage_share(struct stage *stage)
{
    stage->log =
        (struct engine_log){.user = stage, .term = {.start = 7, .nonce = 8}, .append = log_append};
    stage->options.log = &stage->log;
    stage_reopen(stage);
}

void stored(struct stage *stage, uint64_t entry)
{
    engine_log_stored(stage->engine, entry);
    flush(stage);
}

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
            .form_us = 30 * SECOND,
            .report_us = 5 * SECOND,
            .wait_us = 100 * SECOND,
            .stall_us = 100 * SECOND,
            .slow_factor = 10,
            .slow_us = 5 * SECOND},
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

void stage_expect(struct stage *stage, const char *expected, const char *file, int at)
{
    if (strcmp(stage->transcript, expected) != 0) {
        print_error("--- said\n%s--- expected\n%s---\n", stage->transcript, expected);
        _fail(file, at);
    }
    stage_skip(stage);
}

struct job_spec spec_of(uint32_t tasks)
{
    return (struct job_spec){.name = "a job",
        .program = {.name = "program", .executable = true},
        .workers = tasks,
        .strategy = "",
        .checkpoint_folder = ""};
}

void submit_spec(struct stage *stage, uint64_t call, const struct job_spec *spec)
{
    engine_submit(stage->engine, stage->now_us, (struct call_id){call}, spec);
}

void submit(struct stage *stage, uint64_t call, uint32_t tasks)
{
    struct job_spec spec = spec_of(tasks);
    submit_spec(stage, call, &spec);
}

void cancel(struct stage *stage, uint64_t call, uint64_t job)
{
    engine_cancel(stage->engine, stage->now_us, (struct call_id){call}, (struct job_id){job});
}
