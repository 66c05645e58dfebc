/* SPDX-License-Identifier: Apache-2.0
 * Logs each state and each generation of a job once, with job=N, so that a job can be followed from
 * here to its workers. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/jobs.h"

/* What was logged last of a job that has not ended. */
struct logged_job {
    struct job_id id;
    enum job_state state;
    uint64_t generation;
};

/* The job's index among the logged ones, which are sorted by id, or the index to insert it at. */
static size_t index_of(const struct daemon *daemon, struct job_id job)
{
    size_t low = 0;
    size_t high = daemon->logged_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (daemon->logged_jobs[middle].id.n < job.n) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct logged_job *job_log_find(const struct daemon *daemon, struct job_id job)
{
    size_t at = index_of(daemon, job);
    bool found = at < daemon->logged_count && daemon->logged_jobs[at].id.n == job.n;
    return found ? &daemon->logged_jobs[at] : NULL;
}

/* NULL: no memory. */
static struct logged_job *job_log_add(struct daemon *daemon, struct logged_job logged)
{
    if (daemon->logged_count == daemon->logged_capacity) {
        size_t capacity = daemon->logged_capacity > 0 ? daemon->logged_capacity * 2 : 64;
        struct logged_job *grown = realloc(daemon->logged_jobs, capacity * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        daemon->logged_jobs = grown;
        daemon->logged_capacity = capacity;
    }
    struct logged_job *made = &daemon->logged_jobs[index_of(daemon, logged.id)];
    memmove(
        made + 1, made, (size_t)(daemon->logged_jobs + daemon->logged_count - made) * sizeof *made);
    daemon->logged_count++;
    *made = logged;
    return made;
}

static void job_log_forget(struct daemon *daemon, struct logged_job *logged)
{
    daemon->logged_count--;
    memmove(logged, logged + 1,
        (size_t)(daemon->logged_jobs + daemon->logged_count - logged) * sizeof *logged);
}

static void log_end(const struct job_info *info)
{
    bool good = info->state == JOB_SUCCEEDED;
    log_event(good ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "jobs", "a job ended",
        LOG_U64("job", info->id.n), LOG_STR("state", job_state_name(info->state)),
        LOG_STR("code", cadre_status_name(info->code)), LOG_I64("exit", info->exit_code),
        LOG_U64("position", info->position), LOG_STR("reason", info->message));
}

void job_log_changed(struct daemon *daemon, struct job_id job)
{
    struct job_info info;
    struct logged_job *logged = job_log_find(daemon, job);
    if (!engine_job_basics(daemon->engine, job, &info)) {
        return;
    }
    if (logged == NULL && job_state_is_final(info.state)) {
        return; /* it was logged, or there was no memory */
    }
    if (logged == NULL && (logged = job_log_add(daemon, (struct logged_job){.id = job})) != NULL) {
        log_event(LOG_LEVEL_INFO, "jobs", "a job was submitted", LOG_U64("job", job.n),
            LOG_STR("name", info.name), LOG_STR("program", info.program),
            LOG_U64("tasks", info.workers), LOG_I64("priority", info.priority));
    }
    if (logged == NULL) {
        return;
    }
    if (info.generation != logged->generation) {
        log_event(LOG_LEVEL_INFO, "jobs", "a generation is formed", LOG_U64("job", job.n),
            LOG_U64("generation", info.generation), LOG_U64("tasks", info.roster),
            LOG_U64("position", info.position), LOG_STR("reason", info.message));
        logged->generation = info.generation;
    }
    if (job_state_is_final(info.state)) {
        log_end(&info);
        job_log_forget(daemon, logged);
    } else if (info.state != logged->state) {
        log_event(LOG_LEVEL_INFO, "jobs", "a job changes its state", LOG_U64("job", job.n),
            LOG_STR("state", job_state_name(info.state)));
        logged->state = info.state;
    }
}

void job_log_known(struct daemon *daemon, const struct job_info *info)
{
    (void)job_log_add(daemon,
        (struct logged_job){.id = info->id, .state = info->state, .generation = info->generation});
}

void job_log_close(struct daemon *daemon)
{
    free(daemon->logged_jobs);
    daemon->logged_jobs = NULL;
    daemon->logged_count = 0;
    daemon->logged_capacity = 0;
}
