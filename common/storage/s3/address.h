/* SPDX-License-Identifier: Apache-2.0
 * Which host, and which path on it, an object of a bucket has. Pure. */
#ifndef CADRE_STORAGE_S3_ADDRESS_H
#define CADRE_STORAGE_S3_ADDRESS_H

#include <stdbool.h>

#include "common/base/error.h"

#define S3_HOST_BYTES   320 /* a bucket, a host's name and a port */
#define S3_PATH_BYTES   (1024 + 64 + 256 + 4)
#define S3_REGION_BYTES 64
#define S3_PREFIX_BYTES 256

/* A store. */
struct s3_endpoint {
    bool tls;
    bool path_style;              /* the bucket is the first part of the path, not of the host */
    char host[S3_HOST_BYTES];     /* as the Host header has it: "minio:9000"; without 80 and 443 */
    char prefix[S3_PREFIX_BYTES]; /* what every path begins with: "" or "/gateway" */
    char region[S3_REGION_BYTES]; /* "us-east-1" */
};

/* `url` as AWS_ENDPOINT_URL_S3 has it: "https://host[:port][/path]", which is path style; NULL or
 * "": Amazon's own of `region`. `region` NULL or "": "us-east-1", which stores other than Amazon's
 * take mostly. INVALID_ARGUMENT names the fault. */
cadre_status s3_endpoint_parse(const char *url, const char *region,
    struct s3_endpoint *ret_endpoint, struct cadre_error *error);

/* The same store in another region, as it said itself. INVALID_ARGUMENT: that is no region's name.
 */
cadre_status s3_endpoint_move(
    struct s3_endpoint *endpoint, const char *region, struct cadre_error *error);

/* Where an object is. */
struct s3_address {
    char host[S3_HOST_BYTES];
    char path[S3_PATH_BYTES]; /* not encoded: "/bucket/a key", "/a key"; of a bucket "/bucket", "/"
                               */
};

/* `key` NULL or "": the bucket. A bucket with a dot is path style over TLS at Amazon's too, whose
 * certificates name one label only. INVALID_ARGUMENT: bucket or key is too long. */
cadre_status s3_address_of(const struct s3_endpoint *endpoint, const char *bucket, const char *key,
    struct s3_address *ret_address, struct cadre_error *error);

#endif
