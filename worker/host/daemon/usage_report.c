/* SPDX-License-Identifier: Apache-2.0
 * A thread of the pool reads the kernel's files, because some of them take long on a large host:
 * its work is a copy of what the loop has of the tasks that run. The report travels in a heartbeat,
 * as that of fetches does. A child answers for GPUs (gpu_use.c): by its newest answer. */
#include "worker/host/daemon/usage_report.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/gpu_use.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/task_files.h"
#include "worker/host/probe/slot_gpus.h"

#define PAUSE_MIN_US (500 * CADRE_US_PER_MS) /* a shorter time has too few ticks of a clock */
#define PAUSE_TIMES  100                     /* of what a reading took: at most 1% of a CPU */
#define PROC         "/proc"

/* One task's, for the thread. */
struct usage_sample {
    struct task_ref task;
    pid_t pid;
    struct task_cgroup group;
    struct gpus_range gpus; /* of this host's */
    struct usage_reading reading;
};

struct usage_report {
    struct daemon *daemon;
    uv_timer_t timer;
    struct file_work work;
    struct usage_account host;
    struct gpu_use *gpu_use;
    uint64_t cost_us;
    /* The thread's while `work` runs. */
    struct usage_sample *samples; /* NULL: there was no memory */
    struct usage_session *sessions;
    size_t count;
    struct usage_reading host_reading;
    uint64_t took_us;
};

/* ---- in the thread ---- */

static uint64_t thread_cpu_us(void)
{
    struct timespec time = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * CADRE_US_PER_S + (uint64_t)time.tv_nsec / 1000;
}

static const struct usage_session *find_session(
    const struct usage_session *sessions, size_t count, pid_t leader)
{
    size_t low = 0;
    for (size_t high = count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (sessions[middle].leader < leader) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && sessions[low].leader == leader && sessions[low].processes > 0
               ? &sessions[low]
               : NULL;
}

/* Fills in what a task's group does not tell. */
static void add_session(const struct usage_session *session, struct usage_reading *reading)
{
    if (!reading->has_cpu) {
        reading->has_cpu = true;
        reading->cpu_us = session->cpu_us;
    }
    if (!reading->has_memory) {
        reading->has_memory = true;
        reading->memory_bytes = session->memory_bytes;
    }
}

static void read_sessions(struct usage_report *report)
{
    size_t count = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct usage_sample *sample = &report->samples[i];
        if (!sample->reading.has_cpu || !sample->reading.has_memory) {
            report->sessions[count++] = (struct usage_session){.leader = sample->pid};
        }
    }
    if (count == 0 || !usage_read_sessions(PROC, report->sessions, count)) {
        return;
    }
    for (size_t i = 0; i < report->count; i++) {
        struct usage_sample *sample = &report->samples[i];
        const struct usage_session *session = find_session(report->sessions, count, sample->pid);
        if (session != NULL) {
            sample->reading.at_us = clock_monotonic_us();
            add_session(session, &sample->reading);
        }
    }
}

static void read_in_thread(void *user)
{
    struct usage_report *report = user;
    uint64_t begun_us = thread_cpu_us();
    for (size_t i = 0; i < report->count; i++) {
        struct usage_sample *sample = &report->samples[i];
        sample->reading = (struct usage_reading){.at_us = clock_monotonic_us()};
        usage_read_group(&sample->group, &sample->reading);
    }
    read_sessions(report);
    report->host_reading = (struct usage_reading){.at_us = clock_monotonic_us()};
    usage_read_host(PROC, &report->host_reading);
    report->took_us = thread_cpu_us() - begun_us;
}

/* ---- on the loop ---- */

/* The most is the kernel's where it keeps it, else the most that was read. */
static void account_add(struct usage_account *account, struct usage_reading reading)
{
    const struct usage_reading *before = &account->reading;
    if (!reading.has_memory_peak && reading.has_memory) {
        reading.has_memory_peak = true;
        reading.memory_peak_bytes = before->memory_peak_bytes > reading.memory_bytes
                                        ? before->memory_peak_bytes
                                        : reading.memory_bytes;
    }
    account->usage = usage_between(before, &reading);
    account->reading = reading;
}

static void report_usages(struct usage_report *report)
{
    struct daemon *daemon = report->daemon;
    struct agent_usage usages[LIMIT_SLOTS_PER_WORKER];
    size_t count = 0;
    for (size_t i = 0; i < report->count; i++) {
        struct task_files *task = tasks_find(daemon, report->samples[i].task);
        if (task != NULL) {
            account_add(&task->usage, report->samples[i].reading);
            gpu_use_add(report->gpu_use, report->samples[i].gpus, &task->usage.usage);
            usages[count++] = (struct agent_usage){.task = task->ref, .usage = task->usage.usage};
        }
    }
    account_add(&report->host, report->host_reading);
    report->host.usage.has_memory_peak = false; /* since this daemon was started: of no use */
    report->host.usage.memory_peak_bytes = 0;
    const struct gpus_range all = {.first = 0, .end = daemon->gpus->host.usable};
    gpu_use_add(report->gpu_use, all, &report->host.usage);
    if (daemon->linked) {
        link_send(daemon,
            &(struct agent_up){.type = AGENT_UP_HEARTBEAT,
                .heartbeat = {.usages = usages, .usage_count = count, .host = report->host.usage}});
    }
}

static void on_usage_timer(uv_timer_t *timer);

static void arm(struct usage_report *report)
{
    uint64_t pause_us = report->daemon->options.heartbeat_us;
    pause_us = pause_us > PAUSE_MIN_US ? pause_us : PAUSE_MIN_US;
    pause_us = pause_us > report->took_us * PAUSE_TIMES ? pause_us : report->took_us * PAUSE_TIMES;
    if (!report->daemon->closes) {
        uv_timer_start(&report->timer, on_usage_timer, pause_us / CADRE_US_PER_MS, 0);
    }
}

static void after_reading(void *user)
{
    struct usage_report *report = user;
    report->cost_us += report->took_us;
    report_usages(report);
    free(report->samples);
    free(report->sessions);
    report->samples = NULL;
    report->sessions = NULL;
    report->count = 0;
    arm(report);
}

/* Those of a task's slot; none where it has none. */
static struct gpus_range usage_report_gpus(const struct daemon *daemon, int32_t slot)
{
    uint32_t slots = (uint32_t)daemon->options.slots;
    return slot >= 0 && (uint32_t)slot < slots
               ? gpus_of_slot(daemon->gpus->host.usable, slots, (uint32_t)slot)
               : (struct gpus_range){.first = 0};
}

/* Copies what the thread reads of the tasks that run. True: one of them has a GPU. */
static bool take_tasks(struct usage_report *report)
{
    bool gpus = false;
    size_t room = agent_task_count(report->daemon->agent);
    room = room < LIMIT_SLOTS_PER_WORKER ? room : LIMIT_SLOTS_PER_WORKER;
    report->samples = calloc(room + 1, sizeof *report->samples);
    report->sessions = calloc(room + 1, sizeof *report->sessions);
    const struct task_files *task = report->daemon->tasks;
    bool memory = report->samples != NULL && report->sessions != NULL;
    for (; memory && task != NULL && report->count < room; task = task->next) {
        struct agent_process process;
        if (agent_task_process(report->daemon->agent, task->ref, &process)) {
            struct gpus_range range = usage_report_gpus(report->daemon, process.gpu_slot);
            gpus = gpus || range.first < range.end;
            report->samples[report->count++] = (struct usage_sample){
                .task = task->ref, .pid = process.pid, .group = *process.group, .gpus = range};
        }
    }
    return gpus;
}

static void on_usage_timer(uv_timer_t *timer)
{
    struct usage_report *report = timer->data;
    if (!report->daemon->closes && report->daemon->agent != NULL) {
        gpu_use_turn(report->gpu_use, take_tasks(report));
        file_work_start(
            &report->work, &report->daemon->file_pool, read_in_thread, after_reading, report);
    }
}

cadre_status usage_report_open(struct daemon *daemon, struct cadre_error *error)
{
    struct usage_report *report = calloc(1, sizeof *report);
    if (report == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to measure what tasks use");
    }
    cadre_status status = gpu_use_open(daemon, &report->gpu_use, error);
    if (status != CADRE_OK) {
        free(report);
        return status;
    }
    report->daemon = daemon;
    uv_timer_init(rpc_loop_uv(daemon->loop), &report->timer);
    report->timer.data = report;
    daemon->usage_report = report;
    arm(report);
    return CADRE_OK;
}

void usage_report_close(struct daemon *daemon)
{
    if (daemon->usage_report != NULL) {
        gpu_use_close(daemon->usage_report->gpu_use);
        uv_close((uv_handle_t *)&daemon->usage_report->timer, NULL);
    }
}

void usage_report_free(struct usage_report *report)
{
    if (report != NULL) {
        free(report->samples);
        free(report->sessions);
        gpu_use_free(report->gpu_use);
        free(report);
    }
}

const struct usage_account *usage_report_host(const struct usage_report *report)
{
    return &report->host;
}

uint64_t usage_report_cost_us(const struct usage_report *report)
{
    return report->cost_us;
}
