/* SPDX-License-Identifier: Apache-2.0
 * One attempt of a request to a store: signed, sent, and what its answer means. run.h repeats
 * them. */
#ifndef CADRE_STORAGE_S3_REQUEST_H
#define CADRE_STORAGE_S3_REQUEST_H

#include "common/storage/s3/errors.h"
#include "common/storage/s3/session.h"
#include "common/storage/s3/sign.h"

/* What is asked for. The caller's, with all it points to. */
struct s3_ask {
    enum s3_operation operation;
    const char *path;   /* for sentences: "s3://bucket/key" */
    const char *bucket; /* NULL: `url`, which is read as it is, unsigned */
    const char *key;    /* NULL: the bucket itself */
    const char *url;
    const char *method;
    const struct s3_pair *query;
    size_t query_count;
    const struct s3_pair *headers;
    size_t header_count;
    const void *body;
    size_t body_bytes;
    const char *body_sha256; /* NULL: there is no body */

    /* The body of the answer: of a success exactly `to_bytes` to `to`, or where that is NULL to
     * memory, up to `limit_bytes`. */
    void *to;
    size_t to_bytes;
    void *const *to_pieces; /* and `piece_bytes`: as in http.h */
    size_t piece_bytes;
    size_t limit_bytes;
    /* What else an answer with status 2xx must be, before its body is read; NULL: nothing.
     * UNAVAILABLE: it is to be asked for again. */
    cadre_status (*check)(
        const struct s3_ask *ask, const struct http_answer *answer, struct cadre_error *error);
    const void *user; /* of check */
    bool may_hedge;   /* to be asked for twice where it takes longer than usual */
    bool is_slow;     /* the store may be silent until the deadline */

    /* Where the body of a success goes as what it is; NULL: it stays in `answer`. */
    struct s3_answer *parsed;
    enum s3_answer_kind kind;

    /* Comes back, on success and on error; http_answer_free() is the caller's. */
    struct http_answer answer;
    char code[S3_CODE_BYTES]; /* S3's, of the last error */
    unsigned attempts;
};

#define S3_PLAIN_HEADERS 2 /* of what is read unsigned: Range and If-Match */
#define S3_PLAIN_BYTES   192

/* What was done once already, of what is worth one further attempt. */
struct s3_tried {
    bool renewed, moved, set_clock;
};

struct s3_attempt {
    struct http_call *call; /* NULL: it is not under way */
    uint64_t begun_us;
    char *url;
    struct s3_signed signed_request;
    const struct s3_credentials *credentials;
    struct s3_endpoint endpoint;
    uint64_t now_s;
    int64_t clock_offset_s; /* by which it was signed */
    char plain[S3_PLAIN_HEADERS][S3_PLAIN_BYTES];
    char *plain_headers[S3_PLAIN_HEADERS];
};

/* What an attempt came to. */
struct s3_outcome {
    cadre_status status;
    struct cadre_error error;
    bool repeat; /* after a pause; with slow_down after a longer one */
    bool slow_down;
    bool at_once; /* what was learned from it makes another attempt worthwhile */
};

/* Begins one; as http_begin() does, it leaves `call` NULL where no connection is free and it may
 * not wait. On error nothing is under way. */
cadre_status s3_attempt_begin(struct s3_session *session, const struct s3_ask *ask,
    uint64_t deadline_us, bool must_wait, struct s3_attempt *attempt, struct cadre_error *error);
/* Of one that has its result. With a success the answer is now the ask's. */
void s3_attempt_judge(struct s3_session *session, struct s3_ask *ask, struct s3_tried *tried,
    struct s3_attempt *attempt, struct s3_outcome *ret_outcome);
/* Ends it, whether it has its result or not; a zeroed one is fine. */
void s3_attempt_end(struct s3_session *session, struct s3_attempt *attempt);

#endif
