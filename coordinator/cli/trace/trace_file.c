/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/trace/trace_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "common/json/json_value.h"
#include "coordinator/cli/trace/trace_waits.h"

#define THREADS 4 /* numbers of threads for each replica */

const char *trace_kind_text(uint32_t kind, char room[24])
{
    static const char *const names[] = {[CADRE_TRACE_STEP] = "step",
        [CADRE_TRACE_INPUT] = "input",
        [CADRE_TRACE_FUNCTION] = "function",
        [CADRE_TRACE_RELEASE] = "release",
        [CADRE_TRACE_APPLY] = "apply",
        [CADRE_TRACE_CHECKPOINT] = "checkpoint",
        [CADRE_TRACE_REGROUP] = "regroup",
        [CADRE_TRACE_ALL_REDUCE] = "all_reduce",
        [CADRE_TRACE_REDUCE_SCATTER] = "reduce_scatter",
        [CADRE_TRACE_BROADCAST] = "broadcast",
        [CADRE_TRACE_ALL_GATHER] = "all_gather",
        [CADRE_TRACE_BARRIER] = "barrier",
        [CADRE_TRACE_PULL] = "pull",
        [CADRE_TRACE_PUSH] = "push",
        [CADRE_TRACE_SCHEDULE] = "schedule",
        [CADRE_TRACE_WAIT] = "wait"};
    if (kind < sizeof names / sizeof names[0] && names[kind] != NULL) {
        return names[kind];
    }
    snprintf(room, 24, "kind %" PRIu32, kind);
    return room;
}

static unsigned long long thread_number(const struct stored_span *span)
{
    unsigned long long thread = span->thread < THREADS ? span->thread : THREADS - 1;
    return 1 + (unsigned long long)span->replica * THREADS + thread;
}

/* A text of whatever origin as JSON; takes it over. */
static bool put_json(json_t *value, FILE *out)
{
    bool good = value != NULL && json_dumpf(value, out, JSON_ENCODE_ANY | JSON_COMPACT) == 0;
    json_decref(value);
    return good;
}

static bool put_text(const char *text, FILE *out)
{
    return put_json(json_text(text), out);
}

/* ---- names ---- */

static bool put_name(
    const char *what, size_t process, unsigned long long thread, const char *name, FILE *out)
{
    fprintf(out,
        ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%zu,\"tid\":%llu,\"args\":{\"name\":", what,
        process + 1, thread);
    bool good = put_text(name, out);
    fputs("}}", out);
    return good;
}

static bool put_process(const struct trace_store *store, size_t at, FILE *out)
{
    char name[256];
    const struct stored_process *process = &store->processes[at];
    snprintf(name, sizeof name, "task %" PRIu32 " on %s (pid %" PRIu32 ")", process->task.task,
        process->worker[0] != '\0' ? process->worker : "an unknown worker", process->task.pid);
    fprintf(out,
        ",\n{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":%zu,"
        "\"args\":{\"sort_index\":%zu}}",
        at + 1, at);
    return put_name("process_name", at, 0, name, out);
}

static bool put_thread(const struct stored_span *span, FILE *out)
{
    char name[64];
    if (span->thread == CADRE_TRACE_WRITER) {
        snprintf(name, sizeof name, "checkpoint writer");
    } else if (span->thread == CADRE_TRACE_COMMUNICATION) {
        snprintf(name, sizeof name, "replica %" PRIu32 ", communication", span->replica);
    } else if (span->thread == CADRE_TRACE_REPLICA) {
        snprintf(name, sizeof name, "replica %" PRIu32 "%s", span->replica,
            span->replica == 0 ? " (the program)" : "");
    } else {
        snprintf(name, sizeof name, "thread %" PRIu32 " of replica %" PRIu32, span->thread,
            span->replica);
    }
    return put_name("thread_name", span->process, thread_number(span), name, out);
}

/* ---- spans ---- */

static void put_event(const struct stored_span *span, const char *name, const char *category,
    uint64_t begin_ns, uint64_t end_ns, FILE *out)
{
    uint64_t time_ns = end_ns - begin_ns;
    fprintf(out,
        ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%" PRIu32
        ",\"tid\":%llu,\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64
        ".%03u,\"args\":{\"step\":%" PRIu64,
        name, category, span->process + 1, thread_number(span), begin_ns / 1000,
        (unsigned)(begin_ns % 1000), time_ns / 1000, (unsigned)(time_ns % 1000), span->step);
}

static void put_span(const struct trace_store *store, const struct stored_span *span, FILE *out)
{
    char room[24];
    char wait[48];
    bool collective = trace_is_collective(span->kind);
    const char *name = trace_kind_text(span->kind, room);
    put_event(span, name, collective ? "collective" : name, span->begin_ns, span->end_ns, out);
    if (collective || span->kind == CADRE_TRACE_PULL || span->kind == CADRE_TRACE_PUSH) {
        fprintf(out, ",\"bytes\":%" PRIu64, span->bytes);
    }
    fputs("}}", out);
    if (span->until_ns > span->begin_ns && span->waits_for != TRACE_NO_PROCESS) {
        snprintf(wait, sizeof wait, "wait for task %" PRIu32,
            store->processes[span->waits_for].task.task);
        put_event(span, wait, "wait", span->begin_ns, span->until_ns, out);
        fputs("}}", out);
    }
    if (collective && span->until_ns > span->begin_ns && span->end_ns > span->until_ns) {
        put_event(span, "transfer", "transfer", span->until_ns, span->end_ns, out);
        fputs("}}", out);
    }
}

/* ---- the file ---- */

static json_t *json_of_process(const struct stored_process *process)
{
    const cadre_trace_task *task = &process->task;
    bool measured = task->error_ns != UINT64_MAX;
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "task", json_number(task->task),
        "incarnation", json_number(task->incarnation), "worker", json_text(process->worker),
        "clock_error_us", measured ? json_real((double)task->error_ns / 1000) : json_null(),
        "spans", json_number(process->received), "lost", json_number(task->lost), "missing",
        json_number(task->missing), "whole", json_boolean(task->state == CADRE_TRACE_ENDED));
}

static bool put_about(
    const struct trace_store *store, uint64_t job, const char *conclusion, FILE *out)
{
    json_t *tasks = json_array();
    for (size_t i = 0; i < store->process_count; i++) {
        json_array_append_new(tasks, json_of_process(&store->processes[i]));
    }
    return put_json(
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "job", json_number(job), "first",
            json_number(store->first), "end", json_number(store->end), "began_us",
            json_number(store->began_wall_us), "conclusion", json_text(conclusion), "incomplete",
            json_text(store->message), "tasks", tasks),
        out);
}

static bool is_other_thread(const struct stored_span *a, const struct stored_span *b)
{
    return a->process != b->process || thread_number(a) != thread_number(b);
}

bool trace_file_write(
    const struct trace_store *store, uint64_t job, const char *conclusion, FILE *out)
{
    bool good = true;
    fputs("{\"displayTimeUnit\":\"ms\",\n\"otherData\":", out);
    good = put_about(store, job, conclusion, out);
    fputs(",\n\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"trace\",\"pid\":0,\"args\":{}}", out);
    for (size_t i = 0; i < store->process_count && good; i++) {
        good = put_process(store, i, out);
    }
    for (size_t i = 0; i < store->span_count && good; i++) {
        if (i == 0 || is_other_thread(&store->spans[i - 1], &store->spans[i])) {
            good = put_thread(&store->spans[i], out);
        }
        put_span(store, &store->spans[i], out);
    }
    fputs("\n]}\n", out);
    return good && ferror(out) == 0;
}
