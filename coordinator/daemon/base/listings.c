/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/base/listings.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/daemon/base/daemon.h"

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for the list");
}

/* ---- jobs ---- */

cadre_status listing_job(
    struct engine *engine, struct job_id job, struct job_info *ret_info, struct cadre_error *error)
{
    if (!engine_job_info(engine, job, ret_info)) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "there is no job %" PRIu64 ": see `cadre jobs`", job.n);
    }
    return CADRE_OK;
}

static bool is_listed(const struct jobs_listing *listing, const struct engine_job_brief *job)
{
    return (listing->before.n == 0 || job->id.n < listing->before.n) &&
           (!listing->live || !job_state_is_final(job->state)) &&
           (!listing->one_state || job->state == listing->state);
}

/* The index of the next listed job from `*at` on; false: there is none. */
static bool find_listed(struct engine *engine, const struct jobs_listing *listing, uint32_t *at)
{
    struct engine_job_brief job;
    while (engine_job_brief_at(engine, *at, &job)) {
        if (is_listed(listing, &job)) {
            return true;
        }
        ++*at;
    }
    return false;
}

cadre_status listing_jobs(struct engine *engine, const struct jobs_listing *listing,
    struct job_info **ret_jobs, struct list_jobs_response *ret_response, struct cadre_error *error)
{
    struct job_info *jobs = calloc(listing->limit + 1U, sizeof *jobs);
    if (jobs == NULL) {
        return no_memory(error);
    }
    uint32_t count = 0;
    uint32_t at = 0;
    bool more = find_listed(engine, listing, &at);
    while (more && count < listing->limit && engine_job_at(engine, at, &jobs[count])) {
        count++;
        at++;
        more = find_listed(engine, listing, &at);
    }
    *ret_jobs = jobs;
    *ret_response = (struct list_jobs_response){.jobs = jobs, .count = count, .more = more};
    return CADRE_OK;
}

/* ---- workers ---- */

static bool find_worker(struct daemon *daemon, const char *name, uint32_t *cursor)
{
    struct worker_info worker;
    while (engine_worker_next(daemon->engine, cursor, &worker)) {
        if (strcmp(worker.name, name) == 0) {
            return true;
        }
    }
    return false;
}

static cadre_status no_worker(const char *name, struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_NOT_FOUND, "no worker is named %.200s: `cadre workers` lists them", name);
}

cadre_status listing_workers(struct daemon *daemon, const struct workers_listing *listing,
    struct worker_info **ret_workers, struct list_workers_response *ret_response, bool *ret_more,
    struct cadre_error *error)
{
    uint32_t cursor = 0;
    uint32_t count = 0;
    if (listing->after[0] != '\0' && !find_worker(daemon, listing->after, &cursor)) {
        return no_worker(listing->after, error);
    }
    struct worker_info *workers = calloc(listing->limit + 1, sizeof *workers);
    if (workers == NULL) {
        return no_memory(error);
    }
    while (
        count <= listing->limit && engine_worker_next(daemon->engine, &cursor, &workers[count])) {
        bool asked = listing->name[0] == '\0' || strcmp(workers[count].name, listing->name) == 0;
        count += asked ? 1U : 0U;
    }
    if (count == 0 && listing->name[0] != '\0') {
        free(workers);
        return no_worker(listing->name, error);
    }
    *ret_more = count > listing->limit;
    count -= *ret_more ? 1U : 0U;
    engine_shorten_workers(workers, count);
    *ret_workers = workers;
    *ret_response = (struct list_workers_response){.workers = workers, .count = count};
    return CADRE_OK;
}

/* ---- all ---- */

void listing_version(
    const struct daemon *daemon, struct engine *engine, struct version_response *ret_response)
{
    *ret_response = (struct version_response){.version = CADRE_VERSION,
        .agent_protocol = AGENT_PROTOCOL_VERSION,
        .task_frame = TASK_FRAME_VERSION,
        .started_us = daemon->started_us,
        .request_ids = true,
        .objects = true};
    struct engine_job_brief job;
    for (uint32_t i = 0; engine_job_brief_at(engine, i, &job); i++) {
        ret_response->jobs_live += job_state_is_final(job.state) ? 0 : 1;
    }
    struct worker_info worker;
    uint32_t cursor = 0;
    while (engine_worker_next(engine, &cursor, &worker)) {
        ret_response->workers += worker.connected ? 1 : 0;
    }
}

void listing_leader(struct daemon *daemon, struct leader_response *ret_response)
{
    *ret_response = (struct leader_response){.self = {.name = daemon->name,
                                                 .addresses = daemon->addresses,
                                                 .state = COORDINATOR_LEADING,
                                                 .text = "",
                                                 .leads = true,
                                                 .term = engine_term(daemon->engine),
                                                 .since_us = daemon->started_us,
                                                 .version = CADRE_VERSION},
        .leader = daemon->name,
        .leader_addresses = daemon->addresses};
}
