/* SPDX-License-Identifier: Apache-2.0
 * The pages of --http: /metrics and /healthz, from the engine's and the daemon's counters. They
 * only read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/http/exposition.h"
#include "common/http/server.h"
#include "common/rpc/server.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/pages/pages.h"
#include "coordinator/daemon/server.h"
#include "coordinator/daemon/objects/objects.h"
#include "coordinator/daemon/shared/shared_ledger.h"
#include "coordinator/daemon/shared/shared_metrics.h"
#include "coordinator/daemon/contents/quota.h"

#define METHODS_MAX 64
#define CODES       (CADRE_UNAUTHENTICATED + 1)
#define JOBS_SHOWN  200 /* jobs that run and have samples of their own */

/* Calls that ended, by method; the last row is of those that named none of ours. */
struct rpc_counts {
    uint64_t ended[METHODS_MAX + 1][CODES];
};

void metrics_call_end(void *user, const char *path, cadre_status status)
{
    struct daemon *daemon = user;
    size_t method = 0;
    while (method < METHODS_MAX && server_method(method) != NULL && server_method(method) != path) {
        method++;
    }
    bool ours = method < METHODS_MAX && server_method(method) != NULL;
    size_t code = (size_t)status < CODES ? (size_t)status : CADRE_UNKNOWN;
    if (daemon->rpc_counts != NULL) {
        daemon->rpc_counts->ended[ours ? method : METHODS_MAX][code]++;
    }
}

static void show_calls(const struct daemon *daemon, struct exposition *out)
{
    exposition_family(out, "cadre_rpcs_total", EXPOSITION_COUNTER,
        "Calls that ended, by method and gRPC status; method other is none of ours.");
    for (size_t method = 0; method <= METHODS_MAX; method++) {
        const char *path = method < METHODS_MAX ? server_method(method) : "other";
        const char *name = path != NULL && path[0] == '/' ? path + 1 : path;
        for (size_t code = 0; path != NULL && code < CODES; code++) {
            const struct exposition_label labels[] = {
                {"method", name}, {"code", cadre_status_name((cadre_status)code)}};
            if (daemon->rpc_counts->ended[method][code] > 0) {
                exposition_count(out, labels, 2, daemon->rpc_counts->ended[method][code]);
            }
        }
    }
    exposition_one_count(out, "cadre_open_rpcs", EXPOSITION_GAUGE,
        "Calls that are open now, streams of workers and followers among them.",
        daemon->server != NULL ? rpc_server_call_count(daemon->server) : 0);
    exposition_one_count(out, "cadre_worker_streams", EXPOSITION_GAUGE,
        "Streams of worker daemons that are open now.", daemon->link_count);
}

/* ---- jobs ---- */

struct job_sums {
    uint64_t by_state[JOB_PREEMPTED + 1];
    uint64_t oldest_us; /* submitted, of those that wait; 0: none waits */
    uint64_t tasks;     /* that train */
    double samples_per_s;
    uint64_t running;
};

static void sum_jobs(struct daemon *daemon, struct job_sums *ret)
{
    struct engine_job_brief brief;
    struct job_info info;
    *ret = (struct job_sums){0};
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &brief); i++) {
        ret->by_state[brief.state]++;
        bool waits = brief.state == JOB_QUEUED;
        if (waits && (ret->oldest_us == 0 || brief.submitted_us < ret->oldest_us)) {
            ret->oldest_us = brief.submitted_us;
        }
        if (brief.state == JOB_RUNNING && engine_job_at(daemon->engine, i, &info)) {
            ret->running++;
            ret->tasks += info.roster;
            ret->samples_per_s += info.has_progress ? info.progress.samples_per_s : 0;
        }
    }
}

static void show_job_states(struct daemon *daemon, struct exposition *out)
{
    struct job_sums sums;
    uint64_t now_us = clock_wall_us();
    sum_jobs(daemon, &sums);
    exposition_family(out, "cadre_jobs", EXPOSITION_GAUGE,
        "Jobs that are known, by state; those that ended as long as they are kept.");
    for (int state = JOB_QUEUED; state <= JOB_PREEMPTED; state++) {
        exposition_count_by(
            out, "state", job_state_name((enum job_state)state), sums.by_state[state]);
    }
    exposition_one_count(out, "cadre_queue_length", EXPOSITION_GAUGE, "Jobs that wait for workers.",
        sums.by_state[JOB_QUEUED]);
    exposition_one(out, "cadre_queue_oldest_wait_seconds", EXPOSITION_GAUGE,
        "Since when the job that has waited longest is known; 0 when none waits.",
        sums.oldest_us != 0 && now_us > sums.oldest_us ? (double)(now_us - sums.oldest_us) / 1e6
                                                       : 0);
    exposition_one_count(out, "cadre_tasks_training", EXPOSITION_GAUGE,
        "Tasks that are in a generation now, of all jobs.", sums.tasks);
    exposition_one(out, "cadre_samples_per_second", EXPOSITION_GAUGE,
        "What the jobs that run last reported, together.", sums.samples_per_s);
    exposition_one_count(out, "cadre_jobs_without_samples", EXPOSITION_GAUGE,
        "Jobs that run and are left out of the families with a label job, which name 200 at most.",
        sums.running > JOBS_SHOWN ? sums.running - JOBS_SHOWN : 0);
}

/* One family over the jobs that run, newest first. */
static void show_running(struct daemon *daemon, struct exposition *out, const char *name,
    const char *help, double (*value)(const struct job_info *info))
{
    struct engine_job_brief brief;
    struct job_info info;
    unsigned shown = 0;
    exposition_family(out, name, EXPOSITION_GAUGE, help);
    for (uint32_t i = 0; shown < JOBS_SHOWN && engine_job_brief_at(daemon->engine, i, &brief);
         i++) {
        char job[24];
        if (brief.state != JOB_RUNNING || !engine_job_at(daemon->engine, i, &info)) {
            continue;
        }
        snprintf(job, sizeof job, "%llu", (unsigned long long)info.id.n);
        const struct exposition_label labels[] = {{"job", job}, {"name", info.name}};
        exposition_sample(out, labels, 2, value(&info));
        shown++;
    }
}

static double position_of(const struct job_info *info)
{
    return (double)info->position;
}

static double roster_of(const struct job_info *info)
{
    return info->roster;
}

static double restarts_of(const struct job_info *info)
{
    return info->restarts;
}

static double speed_of(const struct job_info *info)
{
    return info->has_progress ? info->progress.samples_per_s : 0;
}

/* What programs reported last, of as many jobs, each with at most LIMIT_METRICS names. */
static void show_reported(struct daemon *daemon, struct exposition *out)
{
    struct engine_job_brief brief;
    struct job_info info;
    unsigned shown = 0;
    exposition_family(out, "cadre_job_metric", EXPOSITION_GAUGE,
        "What the program of a job that runs reported last, by the name of the metric.");
    for (uint32_t i = 0; shown < JOBS_SHOWN && engine_job_brief_at(daemon->engine, i, &brief);
         i++) {
        char job[24];
        if (brief.state != JOB_RUNNING || !engine_job_at(daemon->engine, i, &info)) {
            continue;
        }
        snprintf(job, sizeof job, "%llu", (unsigned long long)info.id.n);
        for (size_t at = 0; info.has_progress && at < info.progress.metric_count; at++) {
            const struct metric *metric = &info.progress.metrics[at];
            const struct exposition_label labels[] = {
                {"job", job}, {"name", info.name}, {"metric", metric->name}};
            exposition_sample(out, labels, 3, metric->value);
        }
        shown++;
    }
}

static void show_jobs(struct daemon *daemon, struct exposition *out)
{
    show_job_states(daemon, out);
    show_running(daemon, out, "cadre_job_position", "Steps that a job that runs has committed.",
        position_of);
    show_running(daemon, out, "cadre_job_tasks", "Tasks that train a job that runs.", roster_of);
    show_running(daemon, out, "cadre_job_restarts",
        "How often a job that runs went on after tasks failed.", restarts_of);
    show_running(daemon, out, "cadre_job_samples_per_second",
        "What the chief of a job that runs last reported.", speed_of);
    show_reported(daemon, out);
}

/* ---- workers ---- */

static void show_workers(struct daemon *daemon, struct exposition *out)
{
    struct worker_info worker;
    uint64_t ready = 0;
    uint64_t away = 0;
    uint64_t draining = 0;
    uint64_t slots = 0;
    uint64_t used = 0;
    uint64_t gpus = 0;
    uint32_t cursor = 0;
    while (engine_worker_next(daemon->engine, &cursor, &worker)) {
        away += !worker.connected;
        draining += worker.connected && worker.draining;
        ready += worker.connected && !worker.draining;
        slots += worker.connected ? worker.slots : 0;
        used += worker.connected ? worker.slots_used : 0;
        gpus += worker.connected ? worker.gpus.usable : 0;
    }
    exposition_family(out, "cadre_workers", EXPOSITION_GAUGE,
        "Worker daemons that are known, by state; away: not connected, and not lost yet.");
    exposition_count_by(out, "state", "ready", ready);
    exposition_count_by(out, "state", "draining", draining);
    exposition_count_by(out, "state", "away", away);
    exposition_one_count(
        out, "cadre_slots", EXPOSITION_GAUGE, "Slots of workers that are connected.", slots);
    exposition_one_count(out, "cadre_slots_used", EXPOSITION_GAUGE,
        "Slots that have a task, of workers that are connected.", used);
    exposition_one_count(out, "cadre_gpus", EXPOSITION_GAUGE,
        "GPUs that tasks can get, of workers that are connected.", gpus);
}

/* ---- what was counted ---- */

static void show_endings(const struct engine_counts *counts, struct exposition *out)
{
    static const char *const reasons[ENGINE_FORMED_COUNT] = {[ENGINE_FORMED_STARTED] = "started",
        [ENGINE_FORMED_LOST] = "lost",
        [ENGINE_FORMED_FAILED] = "failed",
        [ENGINE_FORMED_JOINED] = "joined",
        [ENGINE_FORMED_DRAINED] = "drained"};
    exposition_one_count(out, "cadre_jobs_submitted_total", EXPOSITION_COUNTER,
        "Jobs that were taken.", counts->submitted);
    exposition_family(
        out, "cadre_jobs_ended_total", EXPOSITION_COUNTER, "Jobs that ended, by final state.");
    for (int state = JOB_SUCCEEDED; state <= JOB_PREEMPTED; state++) {
        exposition_count_by(
            out, "state", job_state_name((enum job_state)state), counts->ended[state]);
    }
    exposition_family(
        out, "cadre_tasks_ended_total", EXPOSITION_COUNTER, "Tasks that ended, by how.");
    exposition_count_by(out, "how", "done", counts->tasks_done);
    exposition_count_by(out, "how", "failed", counts->tasks_failed);
    exposition_count_by(out, "how", "lost", counts->tasks_lost);
    exposition_family(out, "cadre_generations_total", EXPOSITION_COUNTER,
        "Generations that were formed, by the reason for which the one before ended.");
    for (size_t i = 0; i < ENGINE_FORMED_COUNT; i++) {
        exposition_count_by(out, "reason", reasons[i], counts->formed[i]);
    }
}

static void show_counts(struct daemon *daemon, struct exposition *out)
{
    const struct engine_counts *counts = engine_counts(daemon->engine);
    show_endings(counts, out);
    exposition_one_count(out, "cadre_job_restarts_total", EXPOSITION_COUNTER,
        "How often jobs went on after tasks failed by themselves.", counts->restarts);
    exposition_one_count(out, "cadre_workers_lost_total", EXPOSITION_COUNTER,
        "Worker daemons that were lost because their lease expired.", counts->workers_lost);
    exposition_one_count(out, "cadre_steps_committed_total", EXPOSITION_COUNTER,
        "Steps that every task of a job applied; one that is done again is not counted again.",
        counts->steps);
    exposition_one_count(out, "cadre_releases_total", EXPOSITION_COUNTER,
        "Releases that were sent; one may admit several steps.", counts->releases);
    exposition_one_count(out, "cadre_checkpoints_published_total", EXPOSITION_COUNTER,
        "Checkpoints that can be read without the host that wrote them.", counts->checkpoints);
    exposition_family(out, "cadre_release_latency_seconds", EXPOSITION_HISTOGRAM,
        "From reading the first arrival of a turn to sending its releases, the commit included.");
    exposition_histogram(out, &counts->release);
    exposition_family(out, "cadre_ledger_commit_seconds", EXPOSITION_HISTOGRAM,
        "How long a commit of the ledger took.");
    exposition_histogram(out, &counts->commit);
}

/* ---- storage ---- */

static void show_storage(struct daemon *daemon, struct exposition *out)
{
    struct quota_sizes sizes = quota_sizes(daemon);
    exposition_family(out, "cadre_storage_bytes", EXPOSITION_GAUGE,
        "What the state directory holds beside the ledger; blobs are programs, files and "
        "checkpoints.");
    exposition_count_by(out, "kind", "blobs", sizes.blobs_bytes);
    exposition_count_by(out, "kind", "logs", sizes.logs_bytes);
    exposition_count_by(out, "kind", "outputs", sizes.outputs_bytes);
    exposition_one_count(out, "cadre_storage_quota_bytes", EXPOSITION_GAUGE,
        "The bound of all of it, --storage-quota; 0: none.", daemon->options.storage_quota_bytes);
    exposition_one_count(out, "cadre_job_quota_bytes", EXPOSITION_GAUGE,
        "The bound of one job, --job-quota; 0: none.", daemon->options.job_quota_bytes);
    exposition_one_count(out, "cadre_disk_free_bytes", EXPOSITION_GAUGE,
        "Free on the disk of the state directory.", daemon->disk.free_bytes);
    exposition_one_count(out, "cadre_disk_full", EXPOSITION_GAUGE,
        "1 while the disk is too full for submissions, uploads, logs and outputs, else 0.",
        daemon->disk.low || daemon->disk.held ? 1 : 0);
    exposition_one_count(out, "cadre_contents_away", EXPOSITION_GAUGE,
        "1 while the object store of --contents does not answer or refuses the coordinator, else "
        "0.",
        daemon->disk.away ? 1 : 0);
    exposition_one_count(out, "cadre_ledger_held", EXPOSITION_GAUGE,
        "1 while the ledger cannot be written for want of room, and jobs wait, else 0.",
        daemon->disk.held ? 1 : 0);
    exposition_one_count(out, "cadre_jobs_forgotten_total", EXPOSITION_COUNTER,
        "Jobs that were forgotten to make room, or because of --keep-for.", sizes.forgotten);
    exposition_one_count(out, "cadre_storage_refusals_total", EXPOSITION_COUNTER,
        "Submissions, uploads, outputs and checkpoints that a quota refused.", sizes.refused);
}

/* ---- pages ---- */

/* NULL: the daemon has none. */
static const struct tls_material *tls_of(const struct daemon *daemon)
{
    return daemon->tls != NULL ? rpc_tls_material(daemon->tls) : NULL;
}

static void show_metrics(void *user, struct http_request *request)
{
    struct exposition out = {0};
    struct daemon *daemon = user;
    if (daemon->engine != NULL) {
        show_jobs(daemon, &out);
        show_workers(daemon, &out);
        show_counts(daemon, &out);
        show_storage(daemon, &out);
    }
    show_calls(daemon, &out);
    shared_metrics_show(daemon, &out);
    process_metrics(&out, "cadre-coordinator", tls_of(daemon));
    http_answer(request, http_response_exposition(200, HTTP_TYPE_METRICS, &out));
}

static unsigned write_health(struct daemon *daemon, struct exposition *out)
{
    if (daemon->failed != CADRE_OK) {
        exposition_text(out, "The coordinator stops: %s.\n", daemon->failure.text);
        return 503;
    }
    if (daemon->draining) {
        exposition_text(out, "The coordinator is shutting down.\n");
        return 503;
    }
    if (daemon->server == NULL) {
        exposition_text(out, "The coordinator does not serve yet.\n");
        return 503;
    }
    if (daemon->options.ha.address != NULL && shared_ledger_trouble(daemon)[0] != '\0') {
        exposition_text(out, "%s.\n", shared_ledger_trouble(daemon));
        return 503;
    }
    if (daemon->engine == NULL) {
        exposition_text(out, "ok: this coordinator follows, and does not lead\n");
        return 200;
    }
    struct cadre_error full = {0};
    if (disk_check_ledger(daemon, &full) != CADRE_OK) {
        exposition_text(out, "%s.\n", full.text);
        return 503;
    }
    if (daemon->objects != NULL && objects_are_away(daemon->objects, &full)) {
        exposition_text(out, "%s.\n", full.text);
        return 503;
    }
    if (daemon->disk.low) {
        exposition_text(out,
            "The disk of %s is nearly full: no submissions, uploads, logs and outputs are taken; "
            "free space there.\n",
            daemon->options.state_dir);
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
            .serve = show_health},
        {.path = "/", .summary = "the cluster in a browser", .serve = asset_serve_index},
        {.path = "/assets/", .serve = asset_serve},
        {.path = "/api/",
            .summary = "the same as JSON: version, cluster, jobs, workers",
            .serve = api_serve,
            .refuse = api_refuse,
            .own_only = true,
            .acts = true}};
    daemon->rpc_counts = calloc(1, sizeof *daemon->rpc_counts);
    if (daemon->rpc_counts == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to count calls");
    }
    if (daemon->options.http == NULL) {
        return CADRE_OK;
    }
    const struct http_options options = {.address = daemon->options.http,
        .program = "cadre-coordinator " CADRE_VERSION,
        .pages = pages,
        .page_count = sizeof pages / sizeof pages[0],
        .user = daemon,
        .tls = tls_of(daemon),
        .refused_uri = "spiffe://cadre/worker/"};
    return http_server_open(
        rpc_loop_uv(daemon->loop), &options, &daemon->http, &daemon->http_port, error);
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
    api_forget(daemon);
}
