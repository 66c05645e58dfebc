/* SPDX-License-Identifier: Apache-2.0
 * Inside pages/: a request below /api/ on its way through access, cache and route to its answer. */
#ifndef CADRE_COORDINATOR_PAGES_API_H
#define CADRE_COORDINATOR_PAGES_API_H

#include <jansson.h>

#include "common/base/clock.h"
#include "common/http/request.h"
#include "common/tls/identity.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/pages/answer_cache.h"

#define API_LISTED_MAX 200 /* jobs or workers of one answer */

struct api_request {
    struct daemon *daemon;
    struct http_request *request;
    struct tls_identity identity;   /* of the caller */
    char subject[LIMIT_NAME_BYTES]; /* the job or worker that the path names, or "" */
    uint64_t began_us;              /* when its answer began to be made */
    char key[ANSWER_KEY_BYTES];     /* of its answer in the cache; "": it is not kept */
};

/* ---- api_access.c ---- */

/* Who asks. Off loopback the certificate says so; on loopback everyone may ask if gRPC is as open
 * there, else a token is needed: UNAUTHENTICATED explains it. */
cadre_status api_identify(struct daemon *daemon, const struct http_request *request,
    struct tls_identity *ret_identity, struct cadre_error *error);

/* ---- api_answer.c ---- */

/* Each answers the request. */

/* With the object, which it takes over; NULL: there was no memory for it. */
void api_answer(const struct api_request *api, json_t *json);
/* With the error. */
void api_fail(const struct api_request *api, const struct cadre_error *error);

/* With the error and this status: the route, which acts or not, is not asked so. */
void api_refuse_use(
    const struct api_request *api, unsigned status, bool acts, const struct cadre_error *error);

/* The object as text, which it takes over; NULL: no memory. In any thread. */
char *api_text(json_t *json);
/* A response to those who poll, with the text, which it takes over and which may be NULL; NULL: no
 * memory. */
struct http_response *api_response(const struct daemon *daemon, char *text);

/* How long an answer is good that took so long to be made: whatever browsers ask for, and how many
 * they are, one and the same answer costs 1% of a core at most, as long as it may be that old. */
uint64_t api_good_us(uint64_t made_us, uint64_t max_us);
#define API_GOOD_US_MAX (10 * CADRE_US_PER_S)

/* Keeps the response, which may be NULL, for those who ask the same; a key of "": no one does. */
void api_keep(
    struct daemon *daemon, const char *key, struct http_response *response, uint64_t good_us);

/* ---- the routes ---- */

/* api_cluster.c */
void api_version(const struct api_request *api);
void api_cluster(const struct api_request *api);

/* api_jobs.c: the list. */
void api_jobs(const struct api_request *api);

/* api_job.c: a job, its shards; answered later where it has many tasks or files. */
void api_job(const struct api_request *api);
void api_shards(const struct api_request *api);

/* api_history.c: what happened to a job. */
void api_history(const struct api_request *api);

/* Each of a job, answered later: api_metrics.c, api_logs.c, api_verification.c. */
void api_metrics(const struct api_request *api);
void api_logs(const struct api_request *api);
void api_verification(const struct api_request *api);

/* api_workers.c: the list, one of them. */
void api_workers(const struct api_request *api);
void api_worker(const struct api_request *api);

/* api_actions.c: POST; each answers later. */
void api_cancel(const struct api_request *api);
void api_drain(const struct api_request *api);
void api_undrain(const struct api_request *api);

/* api_job.c: the job that the path names. INVALID_ARGUMENT: that is no number of a job. */
cadre_status api_job_id(
    const struct api_request *api, struct job_id *ret_job, struct cadre_error *error);

#endif
