/* SPDX-License-Identifier: Apache-2.0
 * Begins to lead a cluster: the engine over the ledger, then what jobs have on the disk. Once in
 * a process, at its start, or with --ha when it is this coordinator's turn. */
#include <openssl/rand.h>

#include "common/base/clock.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/base/links.h"
#include "coordinator/daemon/base/pending_calls.h"
#include "coordinator/daemon/contents/content_references.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/contents/quota.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/lead.h"
#include "coordinator/daemon/logs/log_copies.h"
#include "coordinator/daemon/logs/log_followers.h"
#include "coordinator/daemon/logs/logs.h"
#include "coordinator/daemon/moving/known_root.h"
#include "coordinator/daemon/pages/pages.h"
#include "coordinator/daemon/series/series_jobs.h"
#include "coordinator/daemon/state.h"

/* A write of the ledger for which there was no room is tried again after so long. */
#define LEDGER_RETRY_US CADRE_US_PER_S

/* The chief of 10,000 ps tasks receives their list, some 400 KB, five times a second at most. */
#define MEMBERS_US 20

static void on_job_changed(void *user, struct job_id job)
{
    ((struct daemon *)user)->references_added = true;
    job_log_changed(user, job);
    watch_job_changed(user, job);
    log_followers_job_changed(user, job);
}

static void on_job_forgotten(void *user, struct job_id job)
{
    struct daemon *daemon = user;
    logs_forget(daemon, job);
    log_copies_forget(daemon->log_copies, job);
    series_forget(daemon, job);
    api_forget(daemon);
    paths_remove_job(daemon, job);
    quota_forget_job(daemon->quota, job);
    daemon->references_dropped = true;
}

static void on_checkpoint_dropped(
    void *user, struct job_id job, const struct core_checkpoint *checkpoint)
{
    struct daemon *daemon = user;
    log_event(LOG_LEVEL_DEBUG, "jobs", "a checkpoint is not kept any more", LOG_U64("job", job.n),
        LOG_U64("step", checkpoint->position));
    daemon->references_dropped = true;
}

static struct engine_options engine_options_of(
    const struct daemon *daemon, const struct engine_log *log)
{
    const struct coordinator_options *options = &daemon->options;
    return (struct engine_options){.log = log,
        .core = {.limits = {.workers_max = (uint32_t)options->workers_max,
                     .jobs_max = (uint32_t)options->jobs_max,
                     .tasks_max = (uint32_t)options->tasks_max},
            .lease_us = options->lease_us,
            .rewind_us = options->rewind_us,
            .grace_us = options->grace_us,
            .collect_us = options->collect_us,
            .form_us = options->form_us,
            .report_us = options->report_us,
            .wait_us = options->wait_us,
            .stall_us = options->stall_us,
            .slow_factor = (uint32_t)options->slow_factor,
            .slow_us = options->slow_us,
            .members_us = MEMBERS_US},
        .keep_jobs = (uint32_t)options->keep_jobs,
        .sync_us = options->ledger_sync_us,
        .retry_us = LEDGER_RETRY_US};
}

static cadre_status open_engine(struct daemon *daemon, struct store *store,
    const struct engine_log *log, struct cadre_error *error)
{
    struct engine_options engine_options = engine_options_of(daemon, log);
    if (RAND_bytes((unsigned char *)&engine_options.core.seed, sizeof engine_options.core.seed) !=
        1) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "the system gives no random bytes");
    }
    static const struct engine_sink sink = {.down = links_down,
        .refuse = links_refuse,
        .answer = pending_answer,
        .job_changed = on_job_changed,
        .job_forgotten = on_job_forgotten,
        .checkpoint_dropped = on_checkpoint_dropped};
    return engine_open(
        &engine_options, store, &sink, daemon, clock_monotonic_us(), &daemon->engine, error);
}

cadre_status daemon_read(struct daemon *daemon, struct store *store, struct engine **ret_engine,
    struct cadre_error *error)
{
    const struct engine_options options = engine_options_of(daemon, NULL);
    return engine_open_reader(&options, store, clock_monotonic_us(), ret_engine, error);
}

/* Logs the jobs of before this start. */
static void load_known_jobs(struct daemon *daemon)
{
    struct job_info info;
    for (uint32_t i = 0; engine_job_at(daemon->engine, i, &info); i++) {
        if (engine_job_is_damaged(daemon->engine, info.id)) {
            log_event(LOG_LEVEL_ERROR, "ledger", "a job's record is damaged",
                LOG_U64("job", info.id.n), LOG_STR("name", info.name),
                LOG_STR("reason", info.message));
        }
        if (!job_state_is_final(info.state)) {
            job_log_known(daemon, &info);
            log_event(LOG_LEVEL_INFO, "jobs",
                info.started_us != 0 ? "goes on with a job that runs" : "a queued job waits again",
                LOG_U64("job", info.id.n), LOG_STR("name", info.name),
                LOG_U64("tasks", info.workers), LOG_U64("generation", info.generation));
        }
    }
}

static cadre_status open_contents(struct daemon *daemon, struct cadre_error *error)
{
    if (daemon->objects == NULL) {
        return contents_open(
            daemon->blob_dir, &daemon->write_pool, &daemon->leading, &daemon->contents, error);
    }
    CADRE_TRY(log_copies_open(daemon->objects, &daemon->leading, engine_term(daemon->engine).start,
        daemon->options.contents_cache_bytes, &daemon->log_copies, error));
    return contents_open_objects(daemon->objects, daemon->object_cache, &daemon->write_pool,
        &daemon->leading, &daemon->contents, error);
}

/* Whether an option needs the number of kept bytes: counting walks all files. */
static bool counts_storage(const struct coordinator_options *options)
{
    return options->storage_quota_bytes > 0 || options->job_quota_bytes > 0 ||
           options->keep_for_us > 0 || options->http != NULL;
}

cadre_status daemon_lead(struct daemon *daemon, struct store *store, const struct engine_log *log,
    struct cadre_error *error)
{
    CADRE_TRY(open_engine(daemon, store, log, error));
    load_known_jobs(daemon);
    CADRE_TRY(state_use_folder(daemon, error));
    if (log == NULL) { /* several have what etcd says of them */
        CADRE_TRY(known_root_check(daemon, error));
    }
    CADRE_TRY(open_contents(daemon, error));
    if (counts_storage(&daemon->options)) {
        CADRE_TRY(quota_open(daemon, error));
    }
    cadre_status status = content_references_refresh(daemon, error);
    if (status == CADRE_UNAVAILABLE && daemon->objects != NULL) {
        daemon->references_dropped =
            true; /* threads read the manifests; then it is counted again */
    } else {
        CADRE_TRY(status);
    }
    paths_resume_removal(daemon);
    return CADRE_OK;
}
