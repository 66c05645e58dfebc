/* SPDX-License-Identifier: Apache-2.0
 * A request as it is sent: path and query encoded, and signed in its headers (AWS Signature
 * Version 4). No I/O, no clock. */
#ifndef CADRE_STORAGE_S3_SIGN_H
#define CADRE_STORAGE_S3_SIGN_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct s3_credentials;

#define S3_UNSIGNED_PAYLOAD "UNSIGNED-PAYLOAD" /* the body is covered by TLS, or by a checksum */
/* Of no bytes: of GET, HEAD and DELETE. */
#define S3_EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define S3_QUERY_MAX    16
#define S3_HEADERS_MAX  24 /* of those given */

struct s3_pair {
    const char *name, *value;
};

/* The caller's, with all it points to. */
struct s3_request {
    const char *method; /* "GET" */
    const char *host;   /* of struct s3_address */
    const char *path;   /* the same; begins with "/", not encoded */
    const struct s3_pair
        *query; /* not encoded, in any order; a value may be "" or NULL: "?uploads" */
    size_t query_count;
    /* All that are given are signed, so nothing between here and the store may change them: no
     * Expect, no Accept-Encoding, no Connection. Without Host, X-Amz-Date, X-Amz-Content-Sha256,
     * X-Amz-Security-Token and Authorization, which are added. */
    const struct s3_pair *headers;
    size_t header_count;
    const char *payload_sha256; /* 64 lower-case digits, S3_EMPTY_SHA256 or S3_UNSIGNED_PAYLOAD */
};

struct s3_signed {
    char *target;   /* "/bucket/a%20key?list-type=2", to be appended to scheme and host as it is:
                       with libcurl CURLOPT_PATH_AS_IS, as a key may have ".." */
    char **headers; /* "name: value" each: those given, and those added, Host among them */
    size_t header_count;
    char *memory; /* all of it lies here, with secrets: not in core dumps */
    size_t memory_bytes;
};

/* Signs for the service "s3". `now_s` is Unix time, by the store's clock. `credentials` NULL: not
 * signed, for what all may read. On success *ret_signed is the caller's to wipe; on error it is
 * zeroed. INVALID_ARGUMENT: a header with a line's end or a control character, or too many pairs;
 * RESOURCE_EXHAUSTED: no memory. */
cadre_status s3_sign(const struct s3_request *request, const struct s3_credentials *credentials,
    const char *region, uint64_t now_s, struct s3_signed *ret_signed, struct cadre_error *error);
/* Wipes and frees; a zeroed one is fine. */
void s3_signed_wipe(struct s3_signed *signed_request);

#endif
