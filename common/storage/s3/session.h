/* SPDX-License-Identifier: Apache-2.0
 * What the requests to one store have in common: its address, the credentials, the connections, and
 * what was learned of it: the regions of buckets, its clock, how long reads take. */
#ifndef CADRE_STORAGE_S3_SESSION_H
#define CADRE_STORAGE_S3_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/storage/s3/address.h"
#include "common/storage/s3/credentials.h"
#include "common/storage/transport/http.h"
#include "common/storage/transport/latency.h"

#define S3_MOVED_MAX    8 /* buckets whose region is remembered */
#define S3_BUCKET_BYTES 64

/* As of struct storage_options. */
typedef cadre_status s3_read_bundle(
    void *user, const char *path, char **ret_bytes, size_t *ret_size, struct cadre_error *error);

struct s3_session_options {
    const struct storage_variables *variables; /* NULL: the process's environment */
    unsigned connections;
    uint64_t deadline_us;        /* of a request, with what it repeats */
    bool no_metadata;            /* as of struct http_options */
    s3_read_bundle *read_bundle; /* NULL: libcurl reads the file */
    void *user;
    const char *without_credentials; /* as of struct storage_options */
};

struct s3_session {
    struct s3_endpoint endpoint; /* as the settings say */
    struct s3_provider *provider;
    struct http *http;
    uint64_t deadline_us;
    uint64_t stall_us;
    _Atomic int64_t clock_offset_s; /* of the store's clock to ours */
    _Atomic uint64_t requests;      /* numbers them: seeds of their pauses */
    pthread_mutex_t mutex;          /* of what follows */
    struct latency latency;
    struct s3_moved {
        char bucket[S3_BUCKET_BYTES];
        char region[S3_REGION_BYTES];
    } moved[S3_MOVED_MAX];
    unsigned next_moved;
};

/* Reads the settings; no network. On success *ret_session is the caller's to close. */
cadre_status s3_session_open(const struct s3_session_options *options,
    struct s3_session **ret_session, struct cadre_error *error);
/* All requests end with CANCELLED. Any thread. */
void s3_session_stop(struct s3_session *session);
/* NULL is allowed. No request is under way. */
void s3_session_close(struct s3_session *session);

/* Where a bucket is, as far as is known. */
void s3_session_endpoint(
    struct s3_session *session, const char *bucket, struct s3_endpoint *ret_endpoint);
/* The store said that the bucket is in that region. INVALID_ARGUMENT: no region has this name. */
cadre_status s3_session_move(
    struct s3_session *session, const char *bucket, const char *region, struct cadre_error *error);
/* Seconds since 1970, by the store's clock. */
uint64_t s3_session_now_s(const struct s3_session *session);

#endif
