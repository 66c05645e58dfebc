/* SPDX-License-Identifier: Apache-2.0
 * Answers of a job that take threads, or several turns of the loop. All who ask the same while one
 * is made get that one; a client that goes away meanwhile changes nothing. */
#ifndef CADRE_COORDINATOR_PAGES_API_DEFERRED_H
#define CADRE_COORDINATOR_PAGES_API_DEFERRED_H

#include "common/rpc/file_work.h"
#include "coordinator/daemon/pages/api.h"

/* The first member of what an answer is made with. */
struct api_deferred {
    struct api_deferred *next;
    struct daemon *daemon;
    struct job_id job;
    char key[ANSWER_KEY_BYTES];    /* "": no one else can ask the same */
    struct http_request **waiting; /* those who ask */
    size_t waiting_count;
    size_t waiting_capacity;
    uint64_t good_us_min; /* how long the answer may be kept: see api_good_us() */
    uint64_t good_us_max;
    struct file_work work;
    void (*make)(struct api_deferred *deferred);
    void (*after)(struct api_deferred *deferred);
    void (*release)(struct api_deferred *deferred); /* what follows this struct; NULL: nothing */
    /* The threads': */
    uint64_t made_us; /* time that they took */
    char *text;       /* the answer */
    struct cadre_error error;
};

/* `bytes` of zeroed memory that begin with an api_deferred, for the request of this job, which
 * waits for it from then on. NULL: the request was answered with the reason. */
void *api_deferred_new(const struct api_request *api, struct job_id job, size_t bytes,
    void (*release)(struct api_deferred *deferred));

/* Lets the request wait for the same answer as others do; false: it is not being made. */
bool api_deferred_join(const struct api_request *api);

/* make() in a thread, then after() on the loop; api_deferred_answer() may be it. */
void api_deferred_work(struct api_deferred *deferred, void (*make)(struct api_deferred *deferred),
    void (*after)(struct api_deferred *deferred));

/* In make(): the object, which it takes over, is the answer; NULL: no memory. */
void api_deferred_take(struct api_deferred *deferred, json_t *json);

/* Whether some client may still wait for it. */
bool api_deferred_is_wanted(const struct api_deferred *deferred);

/* Answers all who wait with the text, or with the error where that is set, and frees it. Where the
 * job is gone that is NOT_FOUND. */
void api_deferred_answer(struct api_deferred *deferred);

#endif
