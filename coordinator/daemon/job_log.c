/* SPDX-License-Identifier: Apache-2.0
 * What the log says of a job's life: each state and each generation once, with job=N, so that a job
 * can be followed from here to its workers. */
#include <stdlib.h>

#include "coordinator/daemon/daemon.h"

/* What was said last of a job that lives. */
struct told_job {
    struct told_job *next;
    struct job_id id;
    enum job_state state;
    uint64_t generation;
};

static struct told_job **find(struct daemon *daemon, struct job_id job)
{
    struct told_job **at = &daemon->told_jobs;
    while (*at != NULL && (*at)->id.n != job.n) {
        at = &(*at)->next;
    }
    return at;
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
    struct told_job **at = find(daemon, job);
    struct told_job *told = *at;
    if (!engine_job_basics(daemon->engine, job, &info)) {
        return;
    }
    if (told == NULL && job_state_is_final(info.state)) {
        return; /* it was said, or there was no memory */
    }
    if (told == NULL && (told = calloc(1, sizeof *told)) != NULL) {
        told->id = job;
        *at = told;
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
        *at = told->next;
        free(told);
    } else if (info.state != told->state) {
        log_event(LOG_LEVEL_INFO, "jobs", "a job changes its state", LOG_U64("job", job.n),
            LOG_STR("state", job_state_name(info.state)));
        told->state = info.state;
    }
}

void job_log_known(struct daemon *daemon, const struct job_info *info)
{
    struct told_job *told = calloc(1, sizeof *told);
    if (told != NULL) {
        *told = (struct told_job){.next = daemon->told_jobs,
            .id = info->id,
            .state = info->state,
            .generation = info->generation};
        daemon->told_jobs = told;
    }
}

void job_log_close(struct daemon *daemon)
{
    while (daemon->told_jobs != NULL) {
        struct told_job *next = daemon->told_jobs->next;
        free(daemon->told_jobs);
        daemon->told_jobs = next;
    }
}
