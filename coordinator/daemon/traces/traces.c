/* SPDX-License-Identifier: Apache-2.0
 * The traces under way. agents.c and job_trace.c call it. */
#include "coordinator/daemon/traces/traces.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/links.h"
#include "coordinator/daemon/traces/trace_tasks.h"

#define TRACES_MAX       16
#define TICK_MS          50
#define ASKED_OFTEN      8 /* orders at each tick, for good samples of the clocks; then */
#define ASK_EVERY_US     CADRE_US_PER_S
#define REPORT_EVERY_US  (CADRE_US_PER_S / 2)
#define LIMIT_DEFAULT_US (60 * CADRE_US_PER_S)
#define LEAD_NS          (UINT64_C(300) * 1000 * 1000) /* in which an order reaches all tasks */
#define LATE_US          (3 * CADRE_US_PER_S) /* behind the limit, for what is on its way */
#define TASKS_A_MESSAGE  LIMIT_TRACE_SPANS

struct trace {
    struct trace *next;
    struct daemon *daemon;
    struct rpc_call *call;
    uint64_t id;
    struct job_id job;
    bool any_steps; /* what the client asked for: the next `steps` ones */
    uint64_t steps;
    uint64_t first;
    uint64_t end;
    bool own_numbers; /* these are a plain program's own, */
    bool searches;    /* and which ones is not known yet */
    struct ps_job ps_job;
    uint64_t chief_ended_us; /* of a job with parameter servers; 0: not yet */
    uint64_t limit_us;
    uint64_t began_us;
    unsigned asked;
    uint64_t ask_at_us;
    uint64_t report_at_us;
    bool ending; /* nothing more is sent */
    struct trace_tasks tasks;
};

/* ---- to tasks ---- */

static void send_order(struct daemon *daemon, struct task_ref task, const struct trace_order *order)
{
    struct link_id link = engine_task_link(daemon->engine, task);
    const struct agent_down down = {.type = AGENT_DOWN_RELAY,
        .relay_down = {.job = task.job,
            .one = true,
            .task = task,
            .down = {.type = TASK_DOWN_TRACE, .trace = *order}}};
    if (link.n != 0) {
        links_down(daemon, link, &down);
    }
}

/* Of a job with parameter servers: its chief and its workers, whose steps are the chief's. */
static bool is_recorded(const struct trace *trace, uint32_t slot)
{
    enum role role = ps_job_role(&trace->ps_job, slot);
    return role == ROLE_NONE || role == ROLE_CHIEF || role == ROLE_WORKER;
}

/* Sends the task the order, with the time, if it is here. When the chief has ended its trace all
 * closures of these steps are done, which its workers cannot know: they end at once. */
static void order_task(struct trace *trace, const struct task_info *info)
{
    struct trace_order order = {.id = trace->id,
        .first = trace->first,
        .end = trace->end,
        .limit_us = trace->chief_ended_us != 0 ? 0 : trace->limit_us,
        .own_numbers = trace->own_numbers && !trace->searches};
    if (info->state != TASK_RUNNING || !info->uses_cadre || !is_recorded(trace, info->slot)) {
        return;
    }
    struct traced_task *task = trace_tasks_get(&trace->tasks, info);
    if (task != NULL) {
        task->here = true;
        order.asked_ns = clock_monotonic_ns();
        send_order(
            trace->daemon, (struct task_ref){trace->job, info->slot, info->incarnation}, &order);
    }
}

/* Looks at all of the job's tasks. */
static void order_tasks(struct trace *trace)
{
    struct job_info info = {0};
    trace_tasks_begin_look(&trace->tasks);
    (void)engine_job_info(trace->daemon->engine, trace->job, &info);
    for (size_t i = 0; i < info.task_count; i++) {
        order_task(trace, &info.tasks[i]);
    }
    trace_tasks_end_look(&trace->tasks);
    trace->asked++;
    trace->ask_at_us = clock_monotonic_us() + (trace->asked < ASKED_OFTEN ? 0 : ASK_EVERY_US);
}

static void stop_tasks(struct trace *trace)
{
    static const struct trace_order none;
    for (size_t i = 0; i < trace->tasks.count; i++) {
        const struct trace_task *task = &trace->tasks.items[i].view;
        if (task->state < TRACE_TASK_ENDED) {
            send_order(
                trace->daemon, (struct task_ref){trace->job, task->slot, task->incarnation}, &none);
        }
    }
}

/* ---- to the client ---- */

/* False: the client does not read as fast as that. Any other failure ends the call. */
static bool send_response(struct trace *trace, struct trace_response *response)
{
    struct daemon *daemon = trace->daemon;
    struct cadre_error error = {0};
    response->own_numbers = trace->own_numbers;
    response->first = trace->first;
    response->end = trace->end;
    response->clock_ns = clock_monotonic_ns();
    response->wall_us = clock_wall_us();
    response->text = response->text != NULL ? response->text : "";
    wire_buffer_clear(&daemon->packed);
    cadre_status status = wire_pack_trace_response(response, &daemon->packed, &error);
    if (status == CADRE_OK) {
        status = rpc_call_send(trace->call, daemon->packed.bytes, daemon->packed.size, &error);
    }
    if (status != CADRE_OK && status != CADRE_RESOURCE_EXHAUSTED && status != CADRE_CANCELLED) {
        rpc_call_abort(trace->call, status, error.text);
    }
    return status == CADRE_OK;
}

/* Also without news: so the client knows that it is still there, and the steps at the beginning. */
static void report_tasks(struct trace *trace, bool all)
{
    size_t cursor = 0;
    size_t count = 0;
    struct trace_task *items = calloc(TASKS_A_MESSAGE, sizeof *items);
    do {
        count = items == NULL ? 0
                              : trace_tasks_changed(&trace->tasks, clock_monotonic_ns(), all,
                                    &cursor, items, TASKS_A_MESSAGE);
        struct trace_response response = {.tasks = items, .task_count = count};
        (void)send_response(trace, &response);
    } while (count == TASKS_A_MESSAGE);
    free(items);
    trace->report_at_us = clock_monotonic_us() + REPORT_EVERY_US;
}

static void trace_finish(struct trace *trace, const char *text)
{
    struct trace_response last = {.ended = true, .text = text};
    if (trace->ending) {
        return;
    }
    trace->ending = true;
    report_tasks(trace, true);
    (void)send_response(trace, &last);
    rpc_call_finish(trace->call, CADRE_OK, "");
}

/* Whether the chief of a job with parameter servers has ended its trace. */
static bool chief_has_ended(const struct trace *trace)
{
    for (size_t i = 0; ps_job_is_set(&trace->ps_job) && i < trace->tasks.count; i++) {
        const struct traced_task *task = &trace->tasks.items[i];
        if (task->here && task->view.state == TRACE_TASK_ENDED &&
            ps_job_role(&trace->ps_job, task->view.slot) == ROLE_CHIEF) {
            return true;
        }
    }
    return false;
}

/* All tasks are done with it, or their job is. */
static void finish_if_done(struct trace *trace)
{
    struct job_info info;
    char text[LIMIT_TEXT_BYTES] = "";
    bool known = engine_job_basics(trace->daemon->engine, trace->job, &info);
    uint64_t position = trace_tasks_position(&trace->tasks);
    bool early = position < trace->end;
    if (known && trace->chief_ended_us == 0 && chief_has_ended(trace)) {
        trace->chief_ended_us = clock_monotonic_us();
        order_tasks(trace);
    }
    if (!known || job_state_is_final(info.state)) {
        snprintf(text, sizeof text, "job %" PRIu64 " has ended%s", trace->job.n,
            early ? " before all of these steps were done" : "");
        trace_finish(trace, early ? text : "");
    } else if (!trace->searches && trace_tasks_are_done(&trace->tasks)) {
        bool late = clock_monotonic_us() - trace->began_us >= trace->limit_us;
        if (early) {
            snprintf(text, sizeof text, "%s before all of these steps were done",
                late ? "the time was over" : "the program has ended");
        }
        trace_finish(trace, text);
    }
}

/* ---- plain programs ---- */

/* Numbers of another start of the coordinator are lower. */
static uint64_t new_id(struct daemon *daemon)
{
    uint64_t wall_us = clock_wall_us();
    daemon->trace_last = wall_us > daemon->trace_last ? wall_us : daemon->trace_last + 1;
    return daemon->trace_last;
}

/* The tasks number their steps themselves, which is known from their first answer. */
static void search_number(struct trace *trace)
{
    if (!trace->any_steps) {
        rpc_call_finish(trace->call, CADRE_FAILED_PRECONDITION,
            "the steps of a plain program are its collectives, which have no numbers before they "
            "are traced: ask for +N, the next ones");
        trace->ending = true;
        return;
    }
    trace->own_numbers = true;
    trace->searches = true;
}

/* All begin with the same one, so it has to be ahead of all. */
static void set_number(struct trace *trace)
{
    uint64_t first = 0;
    if (trace_tasks_next_number(&trace->tasks, LEAD_NS, &first)) {
        trace->searches = false;
        trace->first = first;
        trace->end = first + trace->steps;
        trace->id = new_id(trace->daemon);
        order_tasks(trace);
        report_tasks(trace, true);
    }
}

/* ---- time ---- */

static void trace_tick(struct trace *trace, uint64_t now_us)
{
    if (trace->ending) {
        return;
    }
    if (trace->searches) {
        set_number(trace);
    }
    if (now_us >= trace->ask_at_us) {
        order_tasks(trace);
    }
    if (now_us >= trace->report_at_us) {
        report_tasks(trace, false);
    }
    finish_if_done(trace);
    bool late = now_us - trace->began_us >= trace->limit_us + LATE_US ||
                (trace->chief_ended_us != 0 && now_us - trace->chief_ended_us >= LATE_US);
    if (!trace->ending && late) {
        trace_finish(trace, "the time was over, and not all tasks have sent what they recorded");
    }
}

static void on_trace_timer(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    uint64_t now_us = clock_monotonic_us();
    for (struct trace *trace = daemon->traces; trace != NULL; trace = trace->next) {
        trace_tick(trace, now_us);
    }
}

/* ---- calls ---- */

/* The step that the trace begins with; or why there is none. */
static cadre_status find_first(struct daemon *daemon, const struct trace_request *request,
    uint64_t *ret_first, struct cadre_error *error)
{
    uint64_t next = 0;
    unsigned long long job = request->id.n;
    if (!engine_job_next_step(daemon->engine, request->id, &next)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "job %llu has ended: only steps to come are traced", job);
    }
    if (!request->next && request->first < next) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "step %llu of job %llu may have begun: %llu is the first to come; ask for +%llu, the "
            "next ones",
            (unsigned long long)request->first, job, (unsigned long long)next,
            (unsigned long long)request->steps);
    }
    *ret_first = request->next ? next : request->first;
    return CADRE_OK;
}

static cadre_status traces_check(struct daemon *daemon, const struct trace_request *request,
    struct job_info *ret_info, struct cadre_error *error)
{
    unsigned count = 0;
    unsigned long long job = request->id.n;
    if (!engine_job_basics(daemon->engine, request->id, ret_info)) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "there is no job %llu: see `cadre jobs`", job);
    }
    for (const struct trace *trace = daemon->traces; trace != NULL; trace = trace->next) {
        count++;
        if (trace->job.n == request->id.n && !trace->ending) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "job %llu is traced already, steps %llu:%llu: wait for the end of that trace", job,
                (unsigned long long)trace->first, (unsigned long long)trace->end);
        }
    }
    if (count >= TRACES_MAX) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%u jobs are traced now, as many as may be: ask again when one is done", count);
    }
    return CADRE_OK;
}

void traces_begin(struct daemon *daemon, struct rpc_call *call, const struct trace_request *request)
{
    struct cadre_error error = {0};
    uint64_t first = 0;
    struct job_info info;
    cadre_status status = traces_check(daemon, request, &info, &error);
    status = status == CADRE_OK ? find_first(daemon, request, &first, &error) : status;
    struct trace *trace = status == CADRE_OK ? calloc(1, sizeof *trace) : NULL;
    if (status == CADRE_OK && trace == NULL) {
        status = cadre_error_set(
            &error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for another trace");
    }
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    *trace = (struct trace){.next = daemon->traces,
        .daemon = daemon,
        .call = call,
        .id = new_id(daemon),
        .job = request->id,
        .any_steps = request->next,
        .steps = request->steps,
        .first = first,
        .end = first + request->steps,
        .limit_us = request->limit_us > 0 ? request->limit_us : LIMIT_DEFAULT_US,
        .began_us = clock_monotonic_us(),
        .ps_job = info.ps_job,
        .tasks = {.own_clock = clock_monotonic_id(), .began_ns = clock_monotonic_ns()}};
    daemon->traces = trace;
    log_event(LOG_LEVEL_INFO, "traces", "a trace begins", LOG_U64("job", trace->job.n),
        LOG_U64("first", trace->first), LOG_U64("end", trace->end));
    order_tasks(trace);
    report_tasks(trace, true);
    uv_timer_start(&daemon->trace_timer, on_trace_timer, TICK_MS, TICK_MS);
}

void traces_closed(struct daemon *daemon, struct rpc_call *call)
{
    struct trace **at = &daemon->traces;
    while (*at != NULL && (*at)->call != call) {
        at = &(*at)->next;
    }
    struct trace *gone = *at;
    if (gone == NULL) {
        return; /* it was refused */
    }
    *at = gone->next;
    if (daemon->engine != NULL) {
        stop_tasks(gone);
    }
    trace_tasks_free(&gone->tasks);
    free(gone);
    if (daemon->traces == NULL) {
        uv_timer_stop(&daemon->trace_timer);
    }
}

/* ---- from tasks ---- */

static struct trace *traces_find(const struct daemon *daemon, uint64_t id, struct job_id job)
{
    struct trace *trace = daemon->traces;
    while (trace != NULL && (trace->id != id || trace->job.n != job.n)) {
        trace = trace->next;
    }
    return trace;
}

void traces_take(struct daemon *daemon, struct link_id link, struct task_ref task,
    const struct task_spans *spans)
{
    static const struct trace_order none;
    uint64_t now_ns = clock_monotonic_ns();
    if (!engine_task_on_link(daemon->engine, task, link)) {
        return; /* of a task that is in no job any more */
    }
    struct trace *trace = traces_find(daemon, spans->id, task.job);
    struct traced_task *traced =
        trace != NULL ? trace_tasks_find(&trace->tasks, task.slot, task.incarnation) : NULL;
    if (traced == NULL || trace->ending) {
        if (!spans->ended) {
            send_order(daemon, task, &none); /* its client, or coordinator, is gone */
        }
        return;
    }
    trace_tasks_take(&trace->tasks, traced, spans, now_ns);
    if (spans->own_numbers && !trace->own_numbers) {
        search_number(trace);
        return;
    }
    struct trace_response response = {.slot = task.slot,
        .incarnation = task.incarnation,
        .spans = spans->spans,
        .span_count = spans->span_count};
    if (spans->span_count > 0 && !send_response(trace, &response)) {
        traced->view.missing += spans->span_count;
        traced->view.spans -= spans->span_count;
    }
    if (spans->ended) {
        finish_if_done(trace);
    }
}

void traces_task_came(struct daemon *daemon, struct task_ref task)
{
    for (struct trace *trace = daemon->traces; trace != NULL; trace = trace->next) {
        struct job_info info = {0};
        if (trace->job.n == task.job.n && !trace->ending &&
            engine_job_info(daemon->engine, task.job, &info) && task.slot < info.task_count &&
            info.tasks[task.slot].incarnation == task.incarnation) {
            order_task(trace, &info.tasks[task.slot]);
        }
    }
}
