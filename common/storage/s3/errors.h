/* SPDX-License-Identifier: Apache-2.0
 * What an answer of a store that is none of success means: its canonical status, one sentence that
 * names path, permission and next step, and what the client does. Pure. */
#ifndef CADRE_STORAGE_S3_ERRORS_H
#define CADRE_STORAGE_S3_ERRORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/storage/s3/answers.h"
#include "common/storage/s3/address.h"
#include "common/storage/s3/dates.h"

enum s3_operation {
    S3_HEAD_OBJECT,
    S3_GET_OBJECT,
    S3_PUT_OBJECT,
    S3_DELETE_OBJECT,
    S3_LIST_OBJECTS,
    S3_CREATE_UPLOAD,
    S3_UPLOAD_PART,
    S3_COMPLETE_UPLOAD,
    S3_ABORT_UPLOAD,
    S3_LIST_UPLOADS,
    S3_LIST_PARTS,
    S3_OPERATIONS
};

/* "s3:GetObject": the permission that it takes. */
const char *s3_operation_permission(enum s3_operation operation);
/* "read", "listed": for sentences. */
const char *s3_operation_verb(enum s3_operation operation);

/* The request that failed, and its answer; NULL where there is none. */
struct s3_failure {
    enum s3_operation operation;
    const char *path;     /* "s3://bucket/key" */
    const char *endpoint; /* "https://minio:9000" */
    const char *region;   /* for which it was signed */
    const char *source;   /* of its credentials; NULL: it was not signed */
    int status;           /* HTTP's; 200 too, with an <Error> */
    const char *content_type;
    const char *date;          /* the header Date */
    const char *bucket_region; /* the header x-amz-bucket-region */
    const void *body;          /* its begin will do: S3_ERROR_BYTES_MAX; of HEAD there is none */
    size_t body_bytes;
    uint64_t now_s; /* by which it was signed */
};

/* What is to be done. At most one of the bools is set, and each is worth one further request but
 * `repeat`, which is worth as many as the deadline allows. */
struct s3_verdict {
    struct cadre_error error; /* what to return if the further requests do not help */
    char code[S3_CODE_BYTES]; /* S3's; "" where it gave none */
    bool repeat;              /* the same may succeed, after a pause */
    bool slow_down;           /* with `repeat`: the store asks for fewer requests */
    bool renew_credentials;   /* s3_provider_refuse(), and again with what it then gives */
    bool move;                /* s3_endpoint_move() to `region`, and again */
    bool set_clock;           /* again with a time that is later by `clock_offset_s` */
    int64_t clock_offset_s;
    char region[S3_REGION_BYTES];
};

void s3_judge(const struct s3_failure *failure, struct s3_verdict *ret_verdict);

/* For a fault that the client found itself: "PATH cannot be read: <text>"; returns `code`, which
 * becomes the error's. */
cadre_status s3_blame(
    enum s3_operation operation, const char *path, cadre_status code, struct cadre_error *error);

#endif
