/* SPDX-License-Identifier: Apache-2.0
 * The pages of --http: /metrics and /healthz. They only read. */

#include <inttypes.h>
#include <stdio.h>

#include "common/base/files.h"
#include "common/http/exposition.h"
#include "common/http/server.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/task_files.h"

#define TASKS_SHOWN 256 /* by name, of those that run */

#define DISK_FULL ((uint64_t)8 * 1024 * 1024) /* free bytes below which no task can start */

static void show_tasks(const struct daemon *daemon, struct exposition *out)
{
    uint64_t preparing = 0;
    uint64_t running = 0;
    uint64_t collecting = 0;
    uint64_t unsent = 0;
    for (const struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        collecting += task->collecting || task->failed;
        running += task->ready && !task->collecting && !task->failed;
        preparing += !task->ready && !task->collecting && !task->failed;
        unsent += task->log.bytes - task->log_acked;
    }
    exposition_family(out, "cadre_worker_tasks", EXPOSITION_GAUGE,
        "Tasks that are here, by phase; collecting: it ended, its log and outputs are being sent.");
    exposition_count_by(out, "phase", "preparing", preparing);
    exposition_count_by(out, "phase", "running", running);
    exposition_count_by(out, "phase", "collecting", collecting);
    exposition_one_count(out, "cadre_worker_slots", EXPOSITION_GAUGE,
        "Tasks that may run here at one time.", daemon->options.slots);
    exposition_one_count(out, "cadre_worker_tasks_started_total", EXPOSITION_COUNTER,
        "Tasks whose process was started.", daemon->counts.tasks_started);
    exposition_family(out, "cadre_worker_tasks_ended_total", EXPOSITION_COUNTER,
        "Tasks that ended, by how; failed: another status than 0 or preempted, or it did not "
        "start.");
    exposition_count_by(out, "how", "done", daemon->counts.tasks_done);
    exposition_count_by(out, "how", "failed", daemon->counts.tasks_failed);
    exposition_count_by(out, "how", "killed", daemon->counts.tasks_killed);
    exposition_one_count(out, "cadre_worker_log_unsent_bytes", EXPOSITION_GAUGE,
        "Output of tasks that the coordinator has not acknowledged.", unsent);
}

static void show_counts(const struct daemon *daemon, struct exposition *out)
{
    const struct worker_counts *counts = &daemon->counts;
    exposition_one_count(out, "cadre_worker_log_read_bytes_total", EXPOSITION_COUNTER,
        "What tasks wrote to their outputs.", counts->log_read_bytes);
    exposition_one_count(out, "cadre_worker_log_sent_bytes_total", EXPOSITION_COUNTER,
        "What of it was sent; after a broken stream some is sent again.", counts->log_sent_bytes);
    exposition_one_count(out, "cadre_worker_log_dropped_bytes_total", EXPOSITION_COUNTER,
        "What of it was dropped, because the coordinator did not take it in time.",
        counts->log_dropped_bytes);
    exposition_one_count(out, "cadre_worker_link_up", EXPOSITION_GAUGE,
        "1 while this worker is joined to the coordinator, else 0.", daemon->linked ? 1 : 0);
    exposition_one_count(out, "cadre_worker_links_lost_total", EXPOSITION_COUNTER,
        "Streams to the coordinator that broke.", counts->links_lost);
    exposition_one_count(out, "cadre_worker_draining", EXPOSITION_GAUGE,
        "1 while the daemon takes no more tasks because it is to end.", daemon->draining ? 1 : 0);
    exposition_one_count(out, "cadre_worker_cache_bytes", EXPOSITION_GAUGE,
        "Programs and files that are kept for the next job.", daemon->cache_bytes);
    exposition_one_count(out, "cadre_worker_cache_limit_bytes", EXPOSITION_GAUGE,
        "The bound of that, --cache-limit; 0: none.", daemon->options.cache_limit_bytes);
    exposition_one_count(out, "cadre_worker_cache_hits_total", EXPOSITION_COUNTER,
        "Contents that were here when a task needed them.", counts->cache_hits);
    exposition_one_count(out, "cadre_worker_cache_fetched_bytes_total", EXPOSITION_COUNTER,
        "Contents that came from the coordinator.", counts->fetched_bytes);
    exposition_one_count(out, "cadre_worker_cache_evicted_bytes_total", EXPOSITION_COUNTER,
        "Contents that were removed because of --cache-limit.", counts->cache_evicted_bytes);
    exposition_one_count(out, "cadre_worker_cache_damaged_total", EXPOSITION_COUNTER,
        "Contents that were removed because their bytes did not have their hash.",
        counts->cache_damaged);
    exposition_one_count(out, "cadre_worker_object_cache_bytes", EXPOSITION_GAUGE,
        "Blocks of objects that tasks keep here, at the last look.", daemon->objects.bytes);
    exposition_one_count(out, "cadre_worker_object_cache_limit_bytes", EXPOSITION_GAUGE,
        "The bound of that; 0: there are none.", daemon->objects.limit_bytes);
    uint64_t free_bytes = 0;
    if (disk_free_bytes(daemon->options.state_dir, &free_bytes)) {
        exposition_one_count(out, "cadre_worker_disk_free_bytes", EXPOSITION_GAUGE,
            "Free on the disk of the state directory.", free_bytes);
    }
}

/* A family of one value of each task that runs, of those that are known. */
static void show_each(const struct daemon *daemon, struct exposition *out, const char *name,
    enum exposition_type type, const char *help,
    bool (*value_of)(const struct usage_account *account, double *ret_value))
{
    unsigned shown = 0;
    const struct task_files *task = daemon->tasks;
    exposition_family(out, name, type, help);
    for (; task != NULL && shown < TASKS_SHOWN; task = task->next) {
        char job[24];
        char slot[16];
        double value = 0;
        if (!task->collecting && value_of(&task->usage, &value)) {
            snprintf(job, sizeof job, "%" PRIu64, task->ref.job.n);
            snprintf(slot, sizeof slot, "%" PRIu32, task->ref.slot);
            const struct exposition_label labels[] = {{"job", job}, {"task", slot}};
            exposition_sample(out, labels, 2, value);
            shown++;
        }
    }
}

static bool cpu_of(const struct usage_account *account, double *ret_value)
{
    *ret_value = (double)account->reading.cpu_us / 1e6;
    return account->reading.has_cpu;
}

static bool memory_of(const struct usage_account *account, double *ret_value)
{
    *ret_value = (double)account->reading.memory_bytes;
    return account->reading.has_memory;
}

static bool gpu_of(const struct usage_account *account, double *ret_value)
{
    *ret_value = account->usage.gpu_percent / 100.0;
    return account->usage.has_gpu;
}

static bool gpu_memory_of(const struct usage_account *account, double *ret_value)
{
    *ret_value = (double)account->usage.gpu_memory_bytes;
    return account->usage.has_gpu_memory;
}

/* Of all programs: none of it is a counter, because NVML has none. */
static void show_gpu_use(const struct daemon *daemon, struct exposition *out)
{
    const struct resource_usage *host = &usage_report_host(daemon->usage_report)->usage;
    show_each(daemon, out, "cadre_worker_task_gpu_busy_ratio", EXPOSITION_GAUGE,
        "How much of the time, 0 to 1, the GPUs of a task ran a kernel of whatever program: their "
        "mean.",
        gpu_of);
    show_each(daemon, out, "cadre_worker_task_gpu_memory_bytes", EXPOSITION_GAUGE,
        "Memory in use on the GPUs of a task, by whatever program.", gpu_memory_of);
    if (host->has_gpu) {
        exposition_one(out, "cadre_worker_host_gpu_busy_ratio", EXPOSITION_GAUGE,
            "The same of all GPUs that tasks get, while a task has one.",
            host->gpu_percent / 100.0);
    }
    if (host->has_gpu_memory) {
        exposition_one_count(out, "cadre_worker_host_gpu_memory_used_bytes", EXPOSITION_GAUGE,
            "Memory in use on all GPUs that tasks get, while a task has one.",
            host->gpu_memory_bytes);
    }
}

static void show_usage(const struct daemon *daemon, struct exposition *out)
{
    const struct usage_reading *host = &usage_report_host(daemon->usage_report)->reading;
    show_each(daemon, out, "cadre_worker_task_cpu_seconds_total", EXPOSITION_COUNTER,
        "CPU time of all processes of a task that runs.", cpu_of);
    show_each(daemon, out, "cadre_worker_task_memory_bytes", EXPOSITION_GAUGE,
        "Memory that all processes of a task hold.", memory_of);
    if (host->has_cpu) {
        exposition_one(out, "cadre_worker_host_cpu_seconds_total", EXPOSITION_COUNTER,
            "Time in which CPUs of the host were busy, since it was started.",
            (double)host->cpu_us / 1e6);
    }
    if (host->has_memory) {
        exposition_one_count(out, "cadre_worker_host_memory_used_bytes", EXPOSITION_GAUGE,
            "Memory of the host that programs cannot have.", host->memory_bytes);
    }
    show_gpu_use(daemon, out);
    exposition_one(out, "cadre_worker_measuring_cpu_seconds_total", EXPOSITION_COUNTER,
        "CPU time that measuring all this took, but for the child that is asked about GPUs.",
        (double)usage_report_cost_us(daemon->usage_report) / 1e6);
}

/* NULL: the daemon has none. */
static const struct tls_material *tls_of(const struct daemon *daemon)
{
    return daemon->tls != NULL ? rpc_tls_material(daemon->tls) : NULL;
}

static void show_metrics(void *user, struct http_request *request)
{
    struct exposition out = {0};
    const struct daemon *daemon = user;
    show_tasks(daemon, &out);
    show_counts(daemon, &out);
    show_usage(daemon, &out);
    process_metrics(&out, "cadre-worker", tls_of(daemon));
    http_answer(request, http_response_exposition(200, HTTP_TYPE_METRICS, &out));
}

static unsigned write_health(const struct daemon *daemon, struct exposition *out)
{
    if (daemon->draining) {
        exposition_text(out, "The worker drains: it takes no more tasks.\n");
        return 503;
    }
    if (!daemon->linked) {
        exposition_text(
            out, "The worker has not joined the coordinator %s.\n", daemon->options.coordinator);
        return 503;
    }
    uint64_t free_bytes = 0;
    if (disk_free_bytes(daemon->options.state_dir, &free_bytes) && free_bytes < DISK_FULL) {
        exposition_text(
            out, "The disk of %s is full: no task can start.\n", daemon->options.state_dir);
        return 503;
    }
    exposition_text(out, "ok\n");
    return 200;
}

static void show_health(void *user, struct http_request *request)
{
    struct exposition out = {0};
    unsigned status = write_health(user, &out);
    http_answer(request, http_response_exposition(status, HTTP_TYPE_TEXT, &out));
}

cadre_status metrics_open(struct daemon *daemon, struct cadre_error *error)
{
    static const struct http_page pages[] = {
        {.path = "/metrics", .summary = "for Prometheus", .serve = show_metrics},
        {.path = "/healthz",
            .summary = "200 when it serves, else 503 and why",
            .serve = show_health}};
    if (daemon->options.http == NULL) {
        return CADRE_OK;
    }
    const struct http_options options = {.address = daemon->options.http,
        .program = "cadre-worker " CADRE_VERSION,
        .pages = pages,
        .page_count = sizeof pages / sizeof pages[0],
        .user = daemon,
        .tls = tls_of(daemon),
        .refused_uri = "spiffe://cadre/worker/"};
    return http_server_open(rpc_loop_uv(daemon->loop), &options, &daemon->http, NULL, error);
}

void metrics_on_tls_event(enum rpc_tls_event event, const char *text, void *user)
{
    struct daemon *daemon = user;
    rpc_tls_log(event, text, NULL);
    if (event == RPC_TLS_RELOADED) {
        http_server_reload_tls(&daemon->http, rpc_tls_material(daemon->tls));
    }
}

void metrics_close(struct daemon *daemon)
{
    http_server_close(daemon->http);
    daemon->http = NULL;
}
