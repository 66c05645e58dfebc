/* SPDX-License-Identifier: Apache-2.0
 * A request for credentials and its answer, in memory for secrets (s3_secret_new). Private to the
 * sources that ask by HTTP. */
#ifndef CADRE_STORAGE_S3_EXCHANGE_H
#define CADRE_STORAGE_S3_EXCHANGE_H

#include "common/storage/s3/sources.h"

#define S3_EXCHANGE_URL_BYTES  2048
#define S3_EXCHANGE_SENT_BYTES ((size_t)24 * 1024)
#define S3_EXCHANGE_BODY_BYTES 16384
#define S3_SESSION_BYTES       512 /* of IMDSv2's token */

struct s3_exchange {
    char url[S3_EXCHANGE_URL_BYTES];
    char sent[S3_EXCHANGE_SENT_BYTES]; /* the body of a POST */
    char body[S3_EXCHANGE_BODY_BYTES]; /* of the answer, terminated */
    size_t body_bytes;
    int status;
    char session[S3_SESSION_BYTES];
    struct s3_credentials texts;
    char access_key[S3_ACCESS_KEY_BYTES];
    char secret_key[S3_SECRET_KEY_BYTES];
    char token[S3_TOKEN_BYTES];
};

/* Credentials go over TLS, or to this machine's own agent: whether `url` is https, or http of
 * loopback, 169.254.170.2 or 169.254.170.23. */
bool s3_exchange_may_ask(const char *url);

/* Asks `exchange->url`; of a POST `exchange->sent` is the body, and a proxy may be between.
 * `header` may be NULL. OK: an answer came, of whatever status. */
cadre_status s3_exchange_ask(const struct s3_provider_options *options,
    struct s3_exchange *exchange, const char *method, const struct s3_pair *header,
    uint64_t timeout_us, struct cadre_error *error);

/* The answer has another HTTP status than 200: UNAVAILABLE where that may pass, else
 * UNAUTHENTICATED. */
cadre_status s3_exchange_refuse(
    const struct s3_found *found, const struct s3_exchange *exchange, struct cadre_error *error);

#endif
