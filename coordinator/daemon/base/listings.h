/* SPDX-License-Identifier: Apache-2.0
 * What the coordinator has, as lists and counts: for the methods of cadre.v1.Jobs and for the
 * pages of --http. What is listed is valid until the next event or flush of the engine. */
#ifndef CADRE_COORDINATOR_DAEMON_BASE_LISTINGS_H
#define CADRE_COORDINATOR_DAEMON_BASE_LISTINGS_H

#include "common/model/client_message.h"
#include "common/model/coordinator_message.h"
#include "coordinator/engine/engine.h"

struct daemon;

/* A job with its tasks. NOT_FOUND: there is none of this number. */
cadre_status listing_job(
    struct engine *engine, struct job_id job, struct job_info *ret_info, struct cadre_error *error);

struct jobs_listing {
    uint32_t limit;       /* at most LIMIT_JOBS_LISTED */
    struct job_id before; /* older ones than this only; 0: from the newest */
    bool live;            /* those that have not ended only */
    bool one_state;       /* those in this state only: */
    enum job_state state;
};

/* The jobs, newest first; *ret_jobs is to be freed. RESOURCE_EXHAUSTED: no memory. */
cadre_status listing_jobs(struct engine *engine, const struct jobs_listing *listing,
    struct job_info **ret_jobs, struct list_jobs_response *ret_response, struct cadre_error *error);

struct workers_listing {
    size_t limit;
    const char *after; /* those behind it only; "": from the first */
    const char *name;  /* this one only; "": any */
};

/* The workers, in the order in which they joined; *ret_workers is to be freed. NOT_FOUND: none has
 * the name; RESOURCE_EXHAUSTED: no memory. *ret_more: there are more behind them. */
cadre_status listing_workers(struct daemon *daemon, const struct workers_listing *listing,
    struct worker_info **ret_workers, struct list_workers_response *ret_response, bool *ret_more,
    struct cadre_error *error);

/* Its version, since when it runs, how much it has. */
void listing_version(
    const struct daemon *daemon, struct engine *engine, struct version_response *ret_response);

/* This coordinator, which leads: it shares its ledger with no other. The texts are the daemon's. */
void listing_leader(struct daemon *daemon, struct leader_response *ret_response);

#endif
