/* SPDX-License-Identifier: Apache-2.0
 * What the log says of a job's life: each state and each generation once, with job=N, so that a job
 * can be followed from here to its workers. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/daemon/daemon.h"
#include "coordinator/daemon/job_log.h"

/* What was said last of a job that lives. */
struct told_job {
    struct job_id id;
    enum job_state state;
    uint64_t generation;
};

/* Where the job is among those that were told of, in the order of their ids, or where it would be.
 */
static size_t place_of(const struct daemon *daemon, struct job_id job)
{
    size_t low = 0;
    size_t high = daemon->told_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (daemon->told_jobs[middle].id.n < job.n) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct told_job *find(const struct daemon *daemon, struct job_id job)
{
    size_t at = place_of(daemon, job);
    bool found = at < daemon->told_count && daemon->told_jobs[at].id.n == job.n;
    return found ? &daemon->told_jobs[at] : NULL;
}

/* NULL: no memory. */
static struct told_job *add(struct daemon *daemon, struct told_job told)
{
    if (daemon->told_count == daemon->told_capacity) {
        size_t capacity = daemon->told_capacity > 0 ? daemon->told_capacity * 2 : 64;
        struct told_job *grown = realloc(daemon->told_jobs, capacity * sizeof *grown);
        if (grown == NULL) {
            return NULL;
        }
        daemon->told_jobs = grown;
        daemon->told_capacity = capacity;
    }
    struct told_job *made = &daemon->told_jobs[place_of(daemon, told.id)];
    memmove(made + 1, made, (size_t)(daemon->told_jobs + daemon->told_count - made) * sizeof *made);
    daemon->told_count++;
    *made = told;
    return made;
}

static void forget(struct daemon *daemon, struct told_job *told)
{
    daemon->told_count--;
    memmove(told, told + 1, (size_t)(daemon->told_jobs + daemon->told_count - told) * sizeof *told);
}

static void say_end(const struct job_info *info)
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
    struct told_job *told = find(daemon, job);
    if (!engine_job_basics(daemon->engine, job, &info)) {
        return;
    }
    if (told == NULL && job_state_is_final(info.state)) {
        return; /* it was said, or there was no memory */
    }
    if (told == NULL && (told = add(daemon, (struct told_job){.id = job})) != NULL) {
        log_event(LOG_LEVEL_INFO, "jobs", "a job was submitted", LOG_U64("job", job.n),
            LOG_STR("name", info.name), LOG_STR("program", info.program),
            LOG_U64("tasks", info.workers), LOG_I64("priority", info.priority));
    }
    if (told == NULL) {
        return;
    }
    if (info.generation != told->generation) {
        log_event(LOG_LEVEL_INFO, "jobs", "a generation is formed", LOG_U64("job", job.n),
            LOG_U64("generation", info.generation), LOG_U64("tasks", info.roster),
            LOG_U64("position", info.position), LOG_STR("reason", info.message));
        told->generation = info.generation;
    }
    if (job_state_is_final(info.state)) {
        say_end(&info);
        forget(daemon, told);
    } else if (info.state != told->state) {
        log_event(LOG_LEVEL_INFO, "jobs", "a job changes its state", LOG_U64("job", job.n),
            LOG_STR("state", job_state_name(info.state)));
        told->state = info.state;
    }
}

void job_log_known(struct daemon *daemon, const struct job_info *info)
{
    (void)add(daemon,
        (struct told_job){.id = info->id, .state = info->state, .generation = info->generation});
}

void job_log_close(struct daemon *daemon)
{
    free(daemon->told_jobs);
    daemon->told_jobs = NULL;
    daemon->told_count = 0;
    daemon->told_capacity = 0;
}
