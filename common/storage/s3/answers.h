/* SPDX-License-Identifier: Apache-2.0
 * What a store answers in XML. Read with bounds, as it comes from another machine: no document
 * type, no entities but XML's five, few levels, short texts. Pure but for memory. */
#ifndef CADRE_STORAGE_S3_ANSWERS_H
#define CADRE_STORAGE_S3_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define S3_ANSWER_BYTES_MAX ((size_t)16 << 20) /* a longer body is not to be read */
#define S3_ERROR_BYTES_MAX  ((size_t)64 << 10) /* the same, of an error's */
#define S3_ITEMS_MAX        10000              /* S3 has 1,000 in a page */
#define S3_CODE_BYTES       64
#define S3_MESSAGE_BYTES    256

/* <Error>. Printable texts, "" where it has none. */
struct s3_error_answer {
    char code[S3_CODE_BYTES];       /* "NoSuchKey" */
    char message[S3_MESSAGE_BYTES]; /* for people */
    char region[S3_CODE_BYTES];     /* <Region>: where the bucket is */
    char endpoint[S3_MESSAGE_BYTES];
    char server_time[S3_CODE_BYTES]; /* <ServerTime>, of RequestTimeTooSkewed */
};

/* False: the body is no <Error>; *ret_error is empty. */
bool s3_error_parse(const void *body, size_t size, struct s3_error_answer *ret_error);

enum s3_answer_kind {
    S3_ANSWER_LIST,      /* ListObjectsV2: items with key or folder, bytes, time, etag */
    S3_ANSWER_UPLOADS,   /* ListMultipartUploads: items with key, upload, time */
    S3_ANSWER_PARTS,     /* ListParts: items with part, bytes, etag, time */
    S3_ANSWER_UPLOAD,    /* CreateMultipartUpload: upload */
    S3_ANSWER_COMPLETED, /* CompleteMultipartUpload: etag */
};

/* One of a page; what its kind does not have is NULL or 0. */
struct s3_item {
    const char *key; /* decoded */
    bool is_folder;  /* <CommonPrefixes>: the key is what several begin with */
    uint64_t bytes;
    int64_t time_us;  /* since 1970; 0: not given */
    const char *etag; /* with its quotes, as If-Match wants it */
    const char *upload;
    uint32_t part;
};

struct s3_answer {
    bool is_error; /* <Error>, maybe with HTTP status 200: `error` alone is set */
    struct s3_error_answer error;
    struct s3_item *items; /* in order: of the key's bytes, folders among the rest; of the part */
    size_t item_count;
    bool truncated;          /* there is a next page */
    const char *next;        /* its continuation-token, key-marker or part-number-marker */
    const char *next_upload; /* its upload-id-marker; NULL: none */
    const char *upload;      /* S3_ANSWER_UPLOAD */
    const char *etag;        /* S3_ANSWER_COMPLETED; NULL where the store does not say */
    void *memory;
};

/* The body of an answer with status 2xx, whole. On success *ret_answer is the caller's to free, on
 * error it is zeroed. Keys are decoded where the answer says <EncodingType>url</EncodingType>,
 * which requests are to ask for. UNAVAILABLE: the body ends early, is none of this kind (a proxy's
 * page, maybe), breaks a bound or XML's rules, so asking again may help; DATA_LOSS: a next page
 * without its name, a key with a zero byte; RESOURCE_EXHAUSTED: no memory. */
cadre_status s3_answer_parse(enum s3_answer_kind kind, const void *body, size_t size,
    struct s3_answer *ret_answer, struct cadre_error *error);
/* A zeroed one is fine. */
void s3_answer_free(struct s3_answer *answer);

/* The body of CompleteMultipartUpload: etags[i] is that of part i + 1, with or without quotes. The
 * caller's to free; NULL: no memory. */
char *s3_complete_body(const char *const *etags, uint32_t count, size_t *ret_size);

#endif
