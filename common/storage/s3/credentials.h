/* SPDX-License-Identifier: Apache-2.0
 * The credentials of requests, found as Amazon's tools find theirs, and renewed before they end:
 *
 *   1. the environment       AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *   2. a web identity        AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, exchanged by STS
 *                            (AssumeRoleWithWebIdentity); AWS_ROLE_SESSION_NAME,
 *                            AWS_ENDPOINT_URL_STS
 *   3. a profile             AWS_SHARED_CREDENTIALS_FILE, AWS_CONFIG_FILE, AWS_PROFILE
 *   4. the container         AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI, with
 *                            AWS_CONTAINER_AUTHORIZATION_TOKEN or _TOKEN_FILE
 *   5. the instance          IMDSv2, unless AWS_EC2_METADATA_DISABLED is "true"
 *
 * The first that has some is used. A source that is set and does not work is an error, not a reason
 * to try the next; so is a profile that starts a program (credential_process), logs in (sso_*) or
 * takes a role (role_arn): its sentence says what to do instead.
 *
 * Secrets lie in memory that is not in core dumps, are wiped, and are in no message. */
#ifndef CADRE_STORAGE_S3_CREDENTIALS_H
#define CADRE_STORAGE_S3_CREDENTIALS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/storage/s3/sign.h"
#include "common/storage/s3/variables.h"

#define S3_RENEW_BEFORE_US UINT64_C(300000000) /* renewed this long before they end */

struct s3_credentials {
    const char *access_key;
    const char *secret_key;
    const char *session_token; /* NULL or "": none */
    uint64_t ends_us;          /* since 1970; UINT64_MAX: they do not end */
    const char *source; /* for sentences: `the environment`, `the profile "x" of /a/credentials` */
};

/* --- what the provider asks for by HTTP --- */

/* A request to STS, the container's agent or the instance's metadata. */
struct s3_fetch {
    const char *method; /* "GET", "PUT" without a body, "POST" */
    const char *url;
    const struct s3_pair *headers;
    size_t header_count;
    const char *sent; /* the body of a POST, a secret */
    size_t sent_bytes;
    uint64_t timeout_us; /* connecting included */
    char *body;          /* where the answer's body goes; it holds secrets: copy it nowhere */
    size_t room;
};

/* Any thread. Follows no redirect, as the answer is a secret, and goes through no proxy, unless it
 * is a POST, which leaves the host. OK when an answer came, whatever its HTTP status, which is
 * *ret_status, with *ret_size bytes of body. UNAVAILABLE: none came in time; OUT_OF_RANGE: it is
 * longer than `room`; CANCELLED: the client stops. */
typedef cadre_status (*s3_fetch_function)(void *user, const struct s3_fetch *fetch, int *ret_status,
    size_t *ret_size, struct cadre_error *error);

/* --- the provider --- */

struct s3_provider;

struct s3_provider_options {
    const struct storage_variables *variables; /* NULL: the process's environment */
    s3_fetch_function fetch;                   /* NULL: sources 1 and 3 only */
    uint64_t (*now_us)(void *user); /* since 1970, by the store's clock if it differs; NULL: the
                                       host's */
    void *user;                     /* of both */
    const char *without;            /* as without_credentials of struct storage_options */
};

/* Reads nothing yet. *ret_provider is the caller's to close; the options are copied, what they
 * point to stays the caller's for as long. RESOURCE_EXHAUSTED: no memory. */
cadre_status s3_provider_open(const struct s3_provider_options *options,
    struct s3_provider **ret_provider, struct cadre_error *error);
/* Wipes and frees. NULL is allowed. All that was taken has been given back. */
void s3_provider_close(struct s3_provider *provider);

/* Credentials that have not ended, to be given back. The thread that finds them missing, or soon
 * ending, gets new ones, which may take it some seconds; meanwhile others go on with the present
 * ones, or wait for the first ones, until `deadline_us` (clock_monotonic_us()) at the longest.
 * UNAUTHENTICATED: there are none, or they ended and no new ones came; the sentence names the
 * source. FAILED_PRECONDITION, INVALID_ARGUMENT, PERMISSION_DENIED: the source is set up wrongly.
 * UNAVAILABLE: the container's agent does not answer, and may do so soon. DEADLINE_EXCEEDED,
 * CANCELLED. A failure is kept for 5 s, so that a source that does not answer is not asked by each
 * call. Any thread. */
cadre_status s3_provider_take(struct s3_provider *provider, uint64_t deadline_us,
    const struct s3_credentials **ret_credentials, struct cadre_error *error);
/* Gives back what was taken. NULL is allowed. Any thread. */
void s3_provider_give_back(struct s3_provider *provider, const struct s3_credentials *credentials);
/* The store refused these as ended or unknown: the next that takes some looks again, in files that
 * were changed meanwhile too. They are still to be given back. Any thread. */
void s3_provider_refuse(struct s3_provider *provider, const struct s3_credentials *credentials);

#endif
