/* SPDX-License-Identifier: Apache-2.0
 * The table of a store's errors: by their codes (those of Amazon's reference, and what Ceph, MinIO
 * and Swift have besides), else by HTTP's status, which is all that an answer to HEAD has. */
#include "common/storage/s3/errors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/pure/assert.h"

#define SHOWN_BYTES    160 /* of a path in a sentence */
#define SHOWN_HEAD     100
#define SHOWN_TAIL     50
#define SKEW_S         300 /* clocks that differ by less are not the reason */
#define SENTENCE_BYTES 400

enum row_flags {
    REPEAT = 1,
    SLOW = 2,   /* with REPEAT */
    RENEW = 4,  /* other credentials may help */
    REGION = 8, /* the right one may be in the answer */
    CLOCK = 16, /* the time is in the answer */
    THEIRS = 32 /* the store's own message says more than ours */
};

/* What a row says is completed by what only the request knows. */
enum row_subject {
    PLAIN,
    DENIED, /* names the permission and the source of the credentials */
    LOGIN,  /* names the source */
    NO_OBJECT,
    NO_BUCKET,
    CHANGED,
    WRONG_REGION,
    WRONG_CLOCK,
};

struct row {
    const char *code;
    cadre_status status;
    unsigned flags;
    enum row_subject subject;
    const char *text;
};

#define FULL   "the store is full, or the quota of the user or the bucket is used up: make room"
#define BUSY   "the store asks for fewer requests"
#define LACKS  "the store does not have this operation"
#define BROKEN "the store reports an error of its own"

static const struct row rows[] = {
    {"AccessDenied", CADRE_PERMISSION_DENIED, 0, DENIED, NULL},
    {"AllAccessDisabled", CADRE_PERMISSION_DENIED, THEIRS, PLAIN, "the bucket is closed"},
    {"AccountProblem", CADRE_PERMISSION_DENIED, THEIRS, PLAIN, "the account is closed"},
    {"InvalidPayer", CADRE_PERMISSION_DENIED, THEIRS, PLAIN, "the account is closed"},
    {"InvalidAccessKeyId", CADRE_UNAUTHENTICATED, RENEW, LOGIN,
        "the store does not know the access key of %s: is it this store's, and still valid?"},
    {"SignatureDoesNotMatch", CADRE_UNAUTHENTICATED, RENEW, LOGIN,
        "the secret key of %s is not that of its access key (or a proxy changes requests)"},
    {"ExpiredToken", CADRE_UNAUTHENTICATED, RENEW, LOGIN,
        "the session token of %s has expired: get a new one"},
    {"ExpiredTokenException", CADRE_UNAUTHENTICATED, RENEW, LOGIN,
        "the session token of %s has expired: get a new one"},
    {"TokenRefreshRequired", CADRE_UNAUTHENTICATED, RENEW, LOGIN,
        "the session token of %s has expired: get a new one"},
    {"InvalidToken", CADRE_UNAUTHENTICATED, RENEW, LOGIN,
        "the session token of %s is not valid: keys and token must be of one session"},
    {"InvalidClientTokenId", CADRE_UNAUTHENTICATED, RENEW, LOGIN,
        "the session token of %s is not valid: keys and token must be of one session"},
    {"InvalidSecurity", CADRE_UNAUTHENTICATED, 0, LOGIN, "the credentials of %s are not valid"},
    {"NotSignedUp", CADRE_UNAUTHENTICATED, THEIRS, LOGIN, "the account of %s has no such service"},
    {"RequestTimeTooSkewed", CADRE_FAILED_PRECONDITION, CLOCK, WRONG_CLOCK, NULL},
    {"AuthorizationHeaderMalformed", CADRE_FAILED_PRECONDITION, REGION, WRONG_REGION, NULL},
    {"PermanentRedirect", CADRE_FAILED_PRECONDITION, REGION, WRONG_REGION, NULL},
    {"TemporaryRedirect", CADRE_FAILED_PRECONDITION, REGION, WRONG_REGION, NULL},
    {"Redirect", CADRE_FAILED_PRECONDITION, REGION, WRONG_REGION, NULL},
    {"IllegalLocationConstraintException", CADRE_FAILED_PRECONDITION, REGION, WRONG_REGION, NULL},
    {"InvalidRegion", CADRE_FAILED_PRECONDITION, REGION, WRONG_REGION, NULL},
    {"NoSuchBucket", CADRE_NOT_FOUND, 0, NO_BUCKET, NULL},
    {"NoSuchKey", CADRE_NOT_FOUND, 0, NO_OBJECT, NULL},
    {"NoSuchVersion", CADRE_NOT_FOUND, 0, NO_OBJECT, NULL},
    {"NoSuchUpload", CADRE_NOT_FOUND, 0, PLAIN,
        "the store does not know the upload: it was finished or aborted"},
    {"PreconditionFailed", CADRE_DATA_LOSS, 0, CHANGED, NULL},
    {"ConditionalRequestConflict", CADRE_UNAVAILABLE, REPEAT, PLAIN,
        "another request writes it at the same time"},
    {"OperationAborted", CADRE_UNAVAILABLE, REPEAT, PLAIN,
        "another request changes it at the same time"},
    {"InvalidRange", CADRE_OUT_OF_RANGE, 0, PLAIN, "it has fewer bytes"},
    {"EntityTooLarge", CADRE_INVALID_ARGUMENT, 0, PLAIN,
        "the store takes no object or part of this size, or its quota is used up"},
    {"EntityTooSmall", CADRE_INVALID_ARGUMENT, 0, PLAIN,
        "a part of the upload, other than the last, is smaller than the store takes (5 MiB)"},
    {"InvalidPart", CADRE_DATA_LOSS, 0, PLAIN,
        "a part of the upload is missing, or not what was written"},
    {"InvalidPartOrder", CADRE_DATA_LOSS, THEIRS, PLAIN, "the parts are not in order"},
    {"BadDigest", CADRE_DATA_LOSS, REPEAT, PLAIN, "bytes changed on their way to the store"},
    {"XAmzContentSHA256Mismatch", CADRE_DATA_LOSS, REPEAT, PLAIN,
        "bytes changed on their way to the store"},
    {"XAmzContentChecksumMismatch", CADRE_DATA_LOSS, REPEAT, PLAIN,
        "bytes changed on their way to the store"},
    {"IncompleteBody", CADRE_UNAVAILABLE, REPEAT, PLAIN, "the store got a part of the bytes only"},
    {"RequestTimeout", CADRE_UNAVAILABLE, REPEAT, PLAIN, "the store did not get the bytes in time"},
    {"KeyTooLongError", CADRE_INVALID_ARGUMENT, 0, PLAIN, "the store takes shorter keys only"},
    {"InvalidBucketName", CADRE_INVALID_ARGUMENT, 0, PLAIN,
        "the store has no bucket of such a name"},
    {"InvalidURI", CADRE_INVALID_ARGUMENT, THEIRS, PLAIN, "the store does not take such a key"},
    {"InvalidObjectName", CADRE_INVALID_ARGUMENT, THEIRS, PLAIN,
        "the store does not take such a key"},
    {"XMinioInvalidObjectName", CADRE_INVALID_ARGUMENT, THEIRS, PLAIN,
        "the store does not take such a key"},
    {"XMinioObjectExistsAsDirectory", CADRE_FAILED_PRECONDITION, 0, PLAIN,
        "other keys begin with this one and a \"/\", which the store cannot have at once"},
    {"XMinioParentIsObject", CADRE_FAILED_PRECONDITION, 0, PLAIN,
        "the beginning of the key is an object, which the store cannot have at once"},
    {"InvalidArgument", CADRE_INVALID_ARGUMENT, THEIRS, PLAIN, "the store refuses the request"},
    {"InvalidRequest", CADRE_INVALID_ARGUMENT, THEIRS, PLAIN, "the store refuses the request"},
    {"MalformedXML", CADRE_INTERNAL, THEIRS, PLAIN, "the store cannot read the request"},
    {"MethodNotAllowed", CADRE_INVALID_ARGUMENT, 0, PLAIN, LACKS},
    {"NotImplemented", CADRE_INVALID_ARGUMENT, THEIRS, PLAIN, LACKS},
    {"InvalidObjectState", CADRE_FAILED_PRECONDITION, 0, PLAIN,
        "it is archived: restore it from its storage class first"},
    {"QuotaExceeded", CADRE_RESOURCE_EXHAUSTED, 0, PLAIN, FULL},
    {"ServiceQuotaExceededException", CADRE_RESOURCE_EXHAUSTED, THEIRS, PLAIN, FULL},
    {"XMinioStorageFull", CADRE_RESOURCE_EXHAUSTED, 0, PLAIN, FULL},
    {"XMinioAdminBucketQuotaExceeded", CADRE_RESOURCE_EXHAUSTED, 0, PLAIN, FULL},
    {"InsufficientStorage", CADRE_RESOURCE_EXHAUSTED, 0, PLAIN, FULL},
    {"SlowDown", CADRE_UNAVAILABLE, REPEAT | SLOW, PLAIN, BUSY},
    {"SlowDownRead", CADRE_UNAVAILABLE, REPEAT | SLOW, PLAIN, BUSY},
    {"SlowDownWrite", CADRE_UNAVAILABLE, REPEAT | SLOW, PLAIN, BUSY},
    {"Throttling", CADRE_UNAVAILABLE, REPEAT | SLOW, PLAIN, BUSY},
    {"ThrottlingException", CADRE_UNAVAILABLE, REPEAT | SLOW, PLAIN, BUSY},
    {"RequestLimitExceeded", CADRE_UNAVAILABLE, REPEAT | SLOW, PLAIN, BUSY},
    {"TooManyRequests", CADRE_UNAVAILABLE, REPEAT | SLOW, PLAIN, BUSY},
    {"BandwidthLimitExceeded", CADRE_UNAVAILABLE, REPEAT | SLOW, PLAIN, BUSY},
    {"ServiceUnavailable", CADRE_UNAVAILABLE, REPEAT | SLOW, PLAIN, BUSY},
    {"InternalError", CADRE_UNAVAILABLE, REPEAT, PLAIN, BROKEN},
    {"InternalServerError", CADRE_UNAVAILABLE, REPEAT, PLAIN, BROKEN},
    {"XMinioServerNotInitialized", CADRE_UNAVAILABLE, REPEAT, PLAIN, "the store is starting"},
    {"XMinioReadQuorum", CADRE_UNAVAILABLE, REPEAT, PLAIN, BROKEN},
    {"XMinioWriteQuorum", CADRE_UNAVAILABLE, REPEAT, PLAIN, BROKEN},
};

/* Without a code, or with one that the table does not have. */
static const struct {
    int http;
    struct row row;
} by_http[] = {
    {301, {NULL, CADRE_FAILED_PRECONDITION, REGION, WRONG_REGION, NULL}},
    {302, {NULL, CADRE_FAILED_PRECONDITION, REGION, WRONG_REGION, NULL}},
    {303, {NULL, CADRE_FAILED_PRECONDITION, REGION, WRONG_REGION, NULL}},
    {307, {NULL, CADRE_FAILED_PRECONDITION, REGION, WRONG_REGION, NULL}},
    {308, {NULL, CADRE_FAILED_PRECONDITION, REGION, WRONG_REGION, NULL}},
    {401, {NULL, CADRE_UNAUTHENTICATED, RENEW | THEIRS, LOGIN,
              "the store does not accept the credentials of %s"}},
    {403, {NULL, CADRE_PERMISSION_DENIED, CLOCK | THEIRS, DENIED, NULL}},
    {404, {NULL, CADRE_NOT_FOUND, THEIRS, NO_OBJECT, NULL}},
    {405, {NULL, CADRE_INVALID_ARGUMENT, THEIRS, PLAIN, LACKS}},
    {407, {NULL, CADRE_FAILED_PRECONDITION, THEIRS, PLAIN,
              "the proxy asks for a login: set HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT, or "
              "NO_PROXY"}},
    {408, {NULL, CADRE_UNAVAILABLE, REPEAT | THEIRS, PLAIN,
              "the store did not get the bytes in time"}},
    {409, {NULL, CADRE_UNAVAILABLE, REPEAT | THEIRS, PLAIN,
              "another request changes it at the same time"}},
    {412, {NULL, CADRE_DATA_LOSS, THEIRS, CHANGED, NULL}},
    {413, {NULL, CADRE_INVALID_ARGUMENT, THEIRS, PLAIN,
              "the store, or a proxy before it, takes no body of this size"}},
    {416, {NULL, CADRE_OUT_OF_RANGE, THEIRS, PLAIN, "it has fewer bytes"}},
    {429, {NULL, CADRE_UNAVAILABLE, REPEAT | SLOW | THEIRS, PLAIN, BUSY}},
    {501, {NULL, CADRE_INVALID_ARGUMENT, THEIRS, PLAIN, LACKS}},
    {503, {NULL, CADRE_UNAVAILABLE, REPEAT | SLOW | THEIRS, PLAIN, BUSY}},
    {507, {NULL, CADRE_RESOURCE_EXHAUSTED, THEIRS, PLAIN, FULL}},
    {509, {NULL, CADRE_UNAVAILABLE, REPEAT | SLOW | THEIRS, PLAIN, BUSY}},
};

static const struct {
    const char *permission, *verb;
} operations[S3_OPERATIONS] = {
    [S3_HEAD_OBJECT] = {"s3:GetObject", "looked up"},
    [S3_GET_OBJECT] = {"s3:GetObject", "read"},
    [S3_PUT_OBJECT] = {"s3:PutObject", "written"},
    [S3_DELETE_OBJECT] = {"s3:DeleteObject", "removed"},
    [S3_LIST_OBJECTS] = {"s3:ListBucket", "listed"},
    [S3_CREATE_UPLOAD] = {"s3:PutObject", "written (an upload begins)"},
    [S3_UPLOAD_PART] = {"s3:PutObject", "written (a part of an upload)"},
    [S3_COMPLETE_UPLOAD] = {"s3:PutObject", "written (an upload ends)"},
    [S3_ABORT_UPLOAD] = {"s3:AbortMultipartUpload", "cleared of an upload"},
    [S3_LIST_UPLOADS] = {"s3:ListBucketMultipartUploads", "searched for uploads"},
    [S3_LIST_PARTS] = {"s3:ListMultipartUploadParts", "searched for parts of an upload"},
};

const char *s3_operation_permission(enum s3_operation operation)
{
    CADRE_ASSERT(operation < S3_OPERATIONS);
    return operations[operation].permission;
}

const char *s3_operation_verb(enum s3_operation operation)
{
    CADRE_ASSERT(operation < S3_OPERATIONS);
    return operations[operation].verb;
}

/* A path for a sentence: without what a terminal would act on, and without its middle when it would
 * leave no room for the rest. */
static void show_path(const char *path, char ret_shown[SHOWN_BYTES])
{
    size_t length = strlen(path);
    int written = 0;
    if (length < SHOWN_BYTES) {
        written = snprintf(ret_shown, SHOWN_BYTES, "%s", path);
    } else {
        written = snprintf(
            ret_shown, SHOWN_BYTES, "%.*s...%s", SHOWN_HEAD, path, path + length - SHOWN_TAIL);
    }
    CADRE_ASSERT(written >= 0 && written < SHOWN_BYTES);
    for (char *at = ret_shown; *at != '\0'; at++) {
        bool cut = length >= SHOWN_BYTES && (unsigned char)*at >= 0x80; /* maybe half a character */
        *at = (unsigned char)*at < ' ' || *at == 0x7f || cut ? '?' : *at;
    }
}

cadre_status s3_blame(
    enum s3_operation operation, const char *path, cadre_status code, struct cadre_error *error)
{
    char shown[SHOWN_BYTES];
    show_path(path, shown);
    return cadre_error_wrap(error, code, "%s cannot be %s", shown, s3_operation_verb(operation));
}

static struct row row_of(const struct s3_failure *failure, const char *code)
{
    for (size_t i = 0; code[0] != '\0' && i < CADRE_COUNT_OF(rows); i++) {
        if (strcmp(code, rows[i].code) == 0) {
            return rows[i];
        }
    }
    if (strncmp(code, "KMS.", 4) == 0) {
        return (struct row){.status = CADRE_FAILED_PRECONDITION,
            .flags = THEIRS,
            .text = "the key that encrypts it cannot be used"};
    }
    for (size_t i = 0; i < CADRE_COUNT_OF(by_http); i++) {
        if (by_http[i].http == failure->status) {
            return by_http[i].row;
        }
    }
    if (failure->status == 400 && code[0] == '\0') { /* HEAD: a token that ended, a wrong region */
        return (struct row){.status = CADRE_FAILED_PRECONDITION,
            .flags = REGION | RENEW,
            .subject = LOGIN,
            .text = "the store refuses the request: the region, or the credentials of %s, may be "
                    "wrong"};
    }
    if (failure->status >= 400 && failure->status < 500) {
        return (struct row){.status = CADRE_INVALID_ARGUMENT,
            .flags = THEIRS,
            .text = "the store refuses the request"};
    }
    return (struct row){.status = CADRE_UNAVAILABLE, .flags = REPEAT | THEIRS, .text = BROKEN};
}

/* By how much the store's clock is ahead. False: it does not say. */
static bool find_skew(
    const struct s3_failure *failure, const struct s3_error_answer *answer, int64_t *ret_offset_s)
{
    uint64_t theirs = 0;
    if (!s3_http_date_parse(failure->date, &theirs)) {
        if (!s3_iso_date_parse(answer->server_time, &theirs)) {
            return false;
        }
        theirs /= 1000000;
    }
    *ret_offset_s = (int64_t)theirs - (int64_t)failure->now_s;
    return true;
}

/* The region that the answer names, if it is another than the one that was asked. */
static const char *find_region(
    const struct s3_failure *failure, const struct s3_error_answer *answer)
{
    const char *region = failure->bucket_region;
    if (region == NULL || region[0] == '\0') {
        region = answer->region;
    }
    bool fits = region[0] != '\0' && strlen(region) < S3_REGION_BYTES;
    return fits && strcmp(region, failure->region) != 0 ? region : NULL;
}

static void say_denied(const struct s3_failure *failure, char *ret_text, size_t size)
{
    if (failure->source == NULL) {
        (void)snprintf(ret_text, size,
            "it is not readable for all, and the request had no credentials: set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
        return;
    }
    const char *besides = "";
    if (failure->operation == S3_GET_OBJECT) {
        besides = " (or it does not exist, and they lack s3:ListBucket)";
    } else if (failure->operation == S3_HEAD_OBJECT) { /* whose answer does not say */
        besides =
            " (or it does not exist, and they lack s3:ListBucket; or they are another store's)";
    }
    (void)snprintf(ret_text, size, "the credentials of %s lack %s for it%s: grant it in a policy",
        failure->source, s3_operation_permission(failure->operation), besides);
}

static void say_region(const struct s3_failure *failure, const struct s3_error_answer *answer,
    char *ret_text, size_t size)
{
    const char *region = find_region(failure, answer);
    if (region != NULL) {
        (void)snprintf(ret_text, size,
            "the bucket is in the region \"%s\", not in \"%s\": set AWS_REGION=%s", region,
            failure->region, region);
    } else {
        (void)snprintf(ret_text, size,
            "the store at %s sends this request elsewhere%s%s, from the region \"%s\": set "
            "AWS_REGION and AWS_ENDPOINT_URL_S3 to those of the bucket",
            failure->endpoint, answer->endpoint[0] != '\0' ? ", to " : "", answer->endpoint,
            failure->region);
    }
}

static void say_clock(const struct s3_failure *failure, const struct s3_error_answer *answer,
    char *ret_text, size_t size)
{
    int64_t offset_s = 0;
    if (find_skew(failure, answer, &offset_s) && offset_s != 0) {
        (void)snprintf(ret_text, size,
            "the clock of this host is %" PRIi64 " s %s that of the store: set it, as by NTP",
            offset_s < 0 ? -offset_s : offset_s, offset_s < 0 ? "ahead of" : "behind");
    } else {
        (void)snprintf(ret_text, size,
            "the clocks of this host and of the store differ too much: set them, as by NTP");
    }
}

static void say_object(const struct s3_failure *failure, char *ret_text, size_t size)
{
    bool is_head = failure->operation == S3_HEAD_OBJECT;
    (void)snprintf(ret_text, size, "there is no such object%s at %s",
        is_head ? ", or no such bucket," : "", failure->endpoint);
}

static void say(const struct row *row, const struct s3_failure *failure,
    const struct s3_error_answer *answer, char *ret_text, size_t size)
{
    switch (row->subject) {
    case DENIED:
        say_denied(failure, ret_text, size);
        break;
    case LOGIN: {
        const char *source = failure->source != NULL ? failure->source : "no source";
        const char *cut = strstr(row->text, "%s");
        (void)snprintf(ret_text, size, "%.*s%s%s", cut != NULL ? (int)(cut - row->text) : 0,
            row->text, cut != NULL ? source : "", cut != NULL ? cut + 2 : row->text);
        break;
    }
    case NO_OBJECT:
        say_object(failure, ret_text, size);
        break;
    case NO_BUCKET:
        (void)snprintf(ret_text, size,
            "there is no such bucket at %s: are its name and AWS_ENDPOINT_URL_S3 right?",
            failure->endpoint);
        break;
    case CHANGED:
        (void)snprintf(ret_text, size, "%s",
            failure->operation == S3_GET_OBJECT || failure->operation == S3_HEAD_OBJECT
                ? "it is another object now than when it was opened"
                : "it is there already");
        break;
    case WRONG_REGION:
        say_region(failure, answer, ret_text, size);
        break;
    case WRONG_CLOCK:
        say_clock(failure, answer, ret_text, size);
        break;
    case PLAIN:
        (void)snprintf(ret_text, size, "%s", row->text);
        break;
    }
}

static cadre_status status_of(const struct row *row, const struct s3_failure *failure)
{
    bool writes = failure->operation == S3_PUT_OBJECT || failure->operation == S3_COMPLETE_UPLOAD;
    return row->subject == CHANGED && writes ? CADRE_ALREADY_EXISTS : row->status;
}

static void set_next(const struct row *row, const struct s3_failure *failure,
    const struct s3_error_answer *answer, struct s3_verdict *verdict)
{
    const char *region = (row->flags & REGION) != 0 ? find_region(failure, answer) : NULL;
    int64_t offset_s = 0;
    bool skewed =
        (row->flags & CLOCK) != 0 && find_skew(failure, answer, &offset_s) && offset_s != 0;
    if (skewed && row->subject != WRONG_CLOCK) { /* a 403 that says no more */
        skewed = failure->source != NULL && (offset_s > SKEW_S || offset_s < -SKEW_S);
    }
    if (region != NULL) {
        verdict->move = true;
        (void)snprintf(verdict->region, sizeof verdict->region, "%s", region);
    } else if (skewed) {
        verdict->set_clock = true;
        verdict->clock_offset_s = offset_s;
    } else if ((row->flags & RENEW) != 0) {
        verdict->renew_credentials = failure->source != NULL;
    } else {
        verdict->repeat = (row->flags & REPEAT) != 0;
        verdict->slow_down = (row->flags & SLOW) != 0;
    }
}

static bool begins_with(const struct s3_failure *failure, const char *text)
{
    size_t length = strlen(text);
    const char *body = failure->body;
    size_t at = 0;
    while (at < failure->body_bytes && strchr(" \t\r\n", body[at]) != NULL && body[at] != '\0') {
        at++;
    }
    return failure->body_bytes - at >= length && strncasecmp(body + at, text, length) == 0;
}

static bool is_page(const struct s3_failure *failure)
{
    if (failure->body == NULL || failure->body_bytes == 0) {
        return false;
    }
    bool says_so =
        failure->content_type != NULL && strncasecmp(failure->content_type, "text/html", 9) == 0;
    return begins_with(failure, "<!doctype html") || begins_with(failure, "<html") ||
           (says_so && !begins_with(failure, "<?xml") && !begins_with(failure, "<Error"));
}

/* Of a proxy, a console, or a server of another kind. */
static void judge_page(const struct s3_failure *failure, struct s3_verdict *verdict)
{
    verdict->repeat = failure->status >= 500 || failure->status == 429;
    cadre_error_set(&verdict->error,
        verdict->repeat ? CADRE_UNAVAILABLE : CADRE_FAILED_PRECONDITION,
        "%s answers with a web page (HTTP %d): is it an object store, at its port for S3, and no "
        "proxy before it?",
        failure->endpoint, failure->status);
}

void s3_judge(const struct s3_failure *failure, struct s3_verdict *ret_verdict)
{
    struct s3_error_answer answer = {.code = ""};
    char text[SENTENCE_BYTES];
    *ret_verdict = (struct s3_verdict){.repeat = false};
    if (failure->body != NULL) {
        (void)s3_error_parse(failure->body, failure->body_bytes, &answer);
    }
    if (answer.code[0] == '\0' && is_page(failure)) {
        judge_page(failure, ret_verdict);
        (void)s3_blame(
            failure->operation, failure->path, ret_verdict->error.code, &ret_verdict->error);
        return;
    }
    struct row row = row_of(failure, answer.code);
    memcpy(ret_verdict->code, answer.code, sizeof ret_verdict->code);
    set_next(&row, failure, &answer, ret_verdict);
    if (ret_verdict->set_clock) {
        row.subject = WRONG_CLOCK;
        row.status = CADRE_FAILED_PRECONDITION;
    }
    say(&row, failure, &answer, text, sizeof text);
    bool theirs = (row.flags & THEIRS) != 0 && answer.message[0] != '\0';
    cadre_error_set(&ret_verdict->error, status_of(&row, failure), "%s (HTTP %d%s%s%s%s)", text,
        failure->status, answer.code[0] != '\0' ? ", " : "", answer.code, theirs ? ": " : "",
        theirs ? answer.message : "");
    (void)s3_blame(failure->operation, failure->path, ret_verdict->error.code, &ret_verdict->error);
}
