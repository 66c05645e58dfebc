/* SPDX-License-Identifier: Apache-2.0
 * What a failed request means: status, sentence, and what the client does next. */
#include <stdio.h>
#include <string.h>

#include "common/storage/s3/errors.h"
#include "tests/lib/test.h"

#define SOURCE "the profile \"x\" of /a/credentials"

/* A request for s3://b/k that failed with this status and code; "" for no body. */
static struct s3_verdict judge(
    enum s3_operation operation, int status, const char *code, const char *more)
{
    static char body[1024];
    struct s3_verdict verdict;
    struct s3_failure failure = {
        .operation = operation,
        .path = "s3://b/k",
        .endpoint = "https://minio:9000",
        .region = "us-east-1",
        .source = SOURCE,
        .status = status,
        .content_type = "application/xml",
        .date = "Fri, 24 May 2013 00:00:00 GMT",
        .now_s = 1369353600,
    };
    if (code[0] != '\0') {
        failure.body_bytes = (size_t)snprintf(body, sizeof body,
            "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>their message</Message>%s"
            "</Error>",
            code, more);
        failure.body = body;
    }
    s3_judge(&failure, &verdict);
    return verdict;
}

enum next { FAIL, REPEAT, SLOW, RENEW, MOVE, CLOCK };

static void assert_next(const struct s3_verdict *verdict, enum next next)
{
    assert_int_equal(verdict->repeat, next == REPEAT || next == SLOW);
    assert_int_equal(verdict->slow_down, next == SLOW);
    assert_int_equal(verdict->renew_credentials, next == RENEW);
    assert_int_equal(verdict->move, next == MOVE);
    assert_int_equal(verdict->set_clock, next == CLOCK);
}

static void each_code_has_its_meaning(void **state)
{
    static const struct {
        enum s3_operation operation;
        int http;
        const char *code;
        cadre_status status;
        enum next next;
        const char *part;
    } rows[] = {
        {S3_GET_OBJECT, 403, "AccessDenied", CADRE_PERMISSION_DENIED, FAIL,
            "s3://b/k cannot be read: the credentials of " SOURCE " lack s3:GetObject for it (or "
            "it does not exist, and they lack s3:ListBucket): grant it in a policy (HTTP 403, "
            "AccessDenied)"},
        {S3_PUT_OBJECT, 403, "AccessDenied", CADRE_PERMISSION_DENIED, FAIL,
            "lack s3:PutObject for it: grant"},
        {S3_UPLOAD_PART, 403, "AccessDenied", CADRE_PERMISSION_DENIED, FAIL, "s3:PutObject"},
        {S3_DELETE_OBJECT, 403, "AccessDenied", CADRE_PERMISSION_DENIED, FAIL, "s3:DeleteObject"},
        {S3_LIST_OBJECTS, 403, "AccessDenied", CADRE_PERMISSION_DENIED, FAIL, "s3:ListBucket"},
        {S3_ABORT_UPLOAD, 403, "AccessDenied", CADRE_PERMISSION_DENIED, FAIL,
            "s3:AbortMultipartUpload"},
        {S3_LIST_UPLOADS, 403, "AccessDenied", CADRE_PERMISSION_DENIED, FAIL,
            "s3:ListBucketMultipartUploads"},
        {S3_LIST_PARTS, 403, "AccessDenied", CADRE_PERMISSION_DENIED, FAIL,
            "s3:ListMultipartUploadParts"},
        {S3_GET_OBJECT, 403, "InvalidAccessKeyId", CADRE_UNAUTHENTICATED, RENEW,
            "does not know the access key of " SOURCE},
        {S3_GET_OBJECT, 403, "SignatureDoesNotMatch", CADRE_UNAUTHENTICATED, RENEW,
            "the secret key of " SOURCE " is not that of its access key"},
        {S3_GET_OBJECT, 400, "ExpiredToken", CADRE_UNAUTHENTICATED, RENEW,
            "the session token of " SOURCE " has expired"},
        {S3_GET_OBJECT, 400, "InvalidToken", CADRE_UNAUTHENTICATED, RENEW, "of one session"},
        {S3_GET_OBJECT, 404, "NoSuchKey", CADRE_NOT_FOUND, FAIL,
            "s3://b/k cannot be read: there is no such object at https://minio:9000"},
        {S3_GET_OBJECT, 404, "NoSuchBucket", CADRE_NOT_FOUND, FAIL, "AWS_ENDPOINT_URL_S3 right?"},
        {S3_COMPLETE_UPLOAD, 404, "NoSuchUpload", CADRE_NOT_FOUND, FAIL, "finished or aborted"},
        {S3_GET_OBJECT, 412, "PreconditionFailed", CADRE_DATA_LOSS, FAIL,
            "another object now than when it was opened"},
        {S3_PUT_OBJECT, 412, "PreconditionFailed", CADRE_ALREADY_EXISTS, FAIL,
            "it is there already"},
        {S3_PUT_OBJECT, 409, "ConditionalRequestConflict", CADRE_UNAVAILABLE, REPEAT, "same time"},
        {S3_GET_OBJECT, 416, "InvalidRange", CADRE_OUT_OF_RANGE, FAIL, "it has fewer bytes"},
        {S3_PUT_OBJECT, 400, "EntityTooLarge", CADRE_INVALID_ARGUMENT, FAIL, "of this size"},
        {S3_COMPLETE_UPLOAD, 400, "EntityTooSmall", CADRE_INVALID_ARGUMENT, FAIL, "5 MiB"},
        {S3_COMPLETE_UPLOAD, 400, "InvalidPart", CADRE_DATA_LOSS, FAIL, "missing"},
        {S3_PUT_OBJECT, 403, "QuotaExceeded", CADRE_RESOURCE_EXHAUSTED, FAIL, "quota"},
        {S3_PUT_OBJECT, 507, "XMinioStorageFull", CADRE_RESOURCE_EXHAUSTED, FAIL, "is full"},
        {S3_GET_OBJECT, 503, "SlowDown", CADRE_UNAVAILABLE, SLOW, "fewer requests"},
        {S3_GET_OBJECT, 503, "ServiceUnavailable", CADRE_UNAVAILABLE, SLOW, "fewer requests"},
        {S3_GET_OBJECT, 500, "InternalError", CADRE_UNAVAILABLE, REPEAT, "an error of its own"},
        {S3_PUT_OBJECT, 400, "RequestTimeout", CADRE_UNAVAILABLE, REPEAT, "in time"},
        {S3_PUT_OBJECT, 400, "IncompleteBody", CADRE_UNAVAILABLE, REPEAT, "a part of the bytes"},
        {S3_PUT_OBJECT, 400, "XAmzContentSHA256Mismatch", CADRE_DATA_LOSS, REPEAT, "changed"},
        {S3_PUT_OBJECT, 501, "NotImplemented", CADRE_INVALID_ARGUMENT, FAIL,
            "does not have this operation (HTTP 501, NotImplemented: their message)"},
        {S3_GET_OBJECT, 403, "InvalidObjectState", CADRE_FAILED_PRECONDITION, FAIL, "archived"},
        {S3_GET_OBJECT, 400, "KMS.DisabledException", CADRE_FAILED_PRECONDITION, FAIL,
            "KMS.DisabledException: their message"},
        {S3_GET_OBJECT, 400, "NewlyInvented", CADRE_INVALID_ARGUMENT, FAIL,
            "the store refuses the request (HTTP 400, NewlyInvented: their message)"},
        {S3_GET_OBJECT, 500, "NewlyInvented", CADRE_UNAVAILABLE, REPEAT, "their message"},
        {S3_GET_OBJECT, 301, "PermanentRedirect", CADRE_FAILED_PRECONDITION, FAIL,
            "sends this request elsewhere"},
        /* An error behind a success. */
        {S3_COMPLETE_UPLOAD, 200, "InternalError", CADRE_UNAVAILABLE, REPEAT, "of its own"},
        {S3_COMPLETE_UPLOAD, 200, "InvalidPart", CADRE_DATA_LOSS, FAIL, "missing"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct s3_verdict verdict = judge(rows[i].operation, rows[i].http, rows[i].code, "");
        assert_error(verdict.error.code, rows[i].status, &verdict.error, rows[i].part);
        assert_string_equal(verdict.code, rows[i].code);
        assert_next(&verdict, rows[i].next);
    }
}

/* HEAD has no body, and so do some proxies. */
static void each_http_status_has_its_meaning(void **state)
{
    static const struct {
        int http;
        cadre_status status;
        enum next next;
        const char *part;
    } rows[] = {
        {301, CADRE_FAILED_PRECONDITION, FAIL, "sends this request elsewhere"},
        {307, CADRE_FAILED_PRECONDITION, FAIL, "sends this request elsewhere"},
        {400, CADRE_FAILED_PRECONDITION, RENEW, "the region, or the credentials of " SOURCE},
        {401, CADRE_UNAUTHENTICATED, RENEW, "does not accept the credentials of " SOURCE},
        {403, CADRE_PERMISSION_DENIED, FAIL, "lack s3:GetObject"},
        {404, CADRE_NOT_FOUND, FAIL,
            "s3://b/k cannot be looked up: there is no such object, or no such bucket, at "
            "https://"},
        {405, CADRE_INVALID_ARGUMENT, FAIL, "does not have this operation"},
        {407, CADRE_FAILED_PRECONDITION, FAIL, "the proxy asks for a login"},
        {408, CADRE_UNAVAILABLE, REPEAT, "in time"},
        {412, CADRE_DATA_LOSS, FAIL, "another object now"},
        {416, CADRE_OUT_OF_RANGE, FAIL, "fewer bytes"},
        {429, CADRE_UNAVAILABLE, SLOW, "fewer requests"},
        {451, CADRE_INVALID_ARGUMENT, FAIL, "refuses the request (HTTP 451)"},
        {500, CADRE_UNAVAILABLE, REPEAT, "of its own (HTTP 500)"},
        {502, CADRE_UNAVAILABLE, REPEAT, "of its own"},
        {503, CADRE_UNAVAILABLE, SLOW, "fewer requests"},
        {504, CADRE_UNAVAILABLE, REPEAT, "of its own"},
        {507, CADRE_RESOURCE_EXHAUSTED, FAIL, "full"},
        {599, CADRE_UNAVAILABLE, REPEAT, "of its own"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct s3_verdict verdict = judge(S3_HEAD_OBJECT, rows[i].http, "", "");
        assert_error(verdict.error.code, rows[i].status, &verdict.error, rows[i].part);
        assert_string_equal(verdict.code, "");
        assert_next(&verdict, rows[i].next);
    }
}

static void a_bucket_in_another_region(void **state)
{
    struct s3_verdict verdict =
        judge(S3_GET_OBJECT, 400, "AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>");
    (void)state;
    assert_next(&verdict, MOVE);
    assert_string_equal(verdict.region, "eu-west-1");
    assert_error(verdict.error.code, CADRE_FAILED_PRECONDITION, &verdict.error,
        "the bucket is in the region \"eu-west-1\", not in \"us-east-1\": set "
        "AWS_REGION=eu-west-1");
    /* It names the region that was asked: no reason to ask again. */
    verdict =
        judge(S3_GET_OBJECT, 400, "AuthorizationHeaderMalformed", "<Region>us-east-1</Region>");
    assert_next(&verdict, FAIL);
    /* HEAD: the header alone. */
    struct s3_failure failure = {
        .operation = S3_HEAD_OBJECT,
        .path = "s3://b/k",
        .endpoint = "https://s3.us-east-1.amazonaws.com",
        .region = "us-east-1",
        .source = SOURCE,
        .status = 301,
        .bucket_region = "eu-central-1",
    };
    s3_judge(&failure, &verdict);
    assert_next(&verdict, MOVE);
    assert_string_equal(verdict.region, "eu-central-1");
    failure.status = 400;
    s3_judge(&failure, &verdict);
    assert_next(&verdict, MOVE);
    failure.bucket_region =
        "a-region-with-a-name-that-is-longer-than-any-that-a-store-could-have-in-truth";
    s3_judge(&failure, &verdict);
    assert_next(&verdict, RENEW);
}

static void clocks_that_differ(void **state)
{
    struct s3_failure failure = {
        .operation = S3_GET_OBJECT,
        .path = "s3://b/k",
        .endpoint = "https://h",
        .region = "us-east-1",
        .source = SOURCE,
        .status = 403,
        .date = "Fri, 24 May 2013 00:00:00 GMT",
        .now_s = 1369353600 + 3600,
    };
    static const char body[] = "<Error><Code>RequestTimeTooSkewed</Code>"
                               "<ServerTime>2013-05-24T00:00:10Z</ServerTime></Error>";
    struct s3_verdict verdict;
    (void)state;
    failure.body = body;
    failure.body_bytes = strlen(body);
    s3_judge(&failure, &verdict);
    assert_next(&verdict, CLOCK);
    assert_int_equal(verdict.clock_offset_s, -3600);
    assert_error(verdict.error.code, CADRE_FAILED_PRECONDITION, &verdict.error,
        "the clock of this host is 3600 s ahead of that of the store");
    failure.date = NULL;
    s3_judge(&failure, &verdict);
    assert_next(&verdict, CLOCK);
    assert_int_equal(verdict.clock_offset_s, -3590);
    /* HEAD says no more than 403: the header Date shows that it may be the clock. */
    failure.operation = S3_HEAD_OBJECT;
    failure.body = NULL;
    failure.date = "Fri, 24 May 2013 02:00:00 GMT";
    s3_judge(&failure, &verdict);
    assert_next(&verdict, CLOCK);
    assert_int_equal(verdict.clock_offset_s, 3600);
    assert_error(verdict.error.code, CADRE_FAILED_PRECONDITION, &verdict.error, "3600 s behind");
    failure.now_s = 1369353600 + 7200 - 100;
    s3_judge(&failure, &verdict);
    assert_next(&verdict, FAIL);
    assert_int_equal(verdict.error.code, CADRE_PERMISSION_DENIED);
    /* A store that says no more keeps that from being tried for ever. */
    failure.operation = S3_GET_OBJECT;
    failure.body = body;
    failure.body_bytes = strlen(body);
    failure.now_s = 1369353600 + 7200;
    s3_judge(&failure, &verdict);
    assert_next(&verdict, FAIL);
}

static void a_web_page_is_no_object_store(void **state)
{
    static const char page[] = "\n <!DOCTYPE HTML><html><body>Login</body></html>";
    static const char text[] = "502 Bad Gateway";
    struct s3_failure failure = {
        .operation = S3_LIST_OBJECTS,
        .path = "s3://b/",
        .endpoint = "https://console:9001",
        .region = "us-east-1",
        .status = 404,
        .body = page,
        .body_bytes = strlen(page),
    };
    struct s3_verdict verdict;
    (void)state;
    s3_judge(&failure, &verdict);
    assert_next(&verdict, FAIL);
    assert_error(verdict.error.code, CADRE_FAILED_PRECONDITION, &verdict.error,
        "s3://b/ cannot be listed: https://console:9001 answers with a web page (HTTP 404): is it "
        "an object store");
    failure.status = 200;
    s3_judge(&failure, &verdict);
    assert_int_equal(verdict.error.code, CADRE_FAILED_PRECONDITION);
    failure.status = 502;
    failure.body = text;
    failure.body_bytes = strlen(text);
    failure.content_type = "text/html; charset=utf-8";
    s3_judge(&failure, &verdict);
    assert_next(&verdict, REPEAT);
    assert_error(verdict.error.code, CADRE_UNAVAILABLE, &verdict.error, "a web page (HTTP 502)");
}

static void without_credentials(void **state)
{
    struct s3_failure failure = {
        .operation = S3_GET_OBJECT,
        .path = "s3://b/k",
        .endpoint = "https://h",
        .region = "us-east-1",
        .status = 403,
    };
    struct s3_verdict verdict;
    (void)state;
    s3_judge(&failure, &verdict);
    assert_next(&verdict, FAIL);
    assert_error(verdict.error.code, CADRE_PERMISSION_DENIED, &verdict.error,
        "the request had no credentials");
    failure.status = 401;
    s3_judge(&failure, &verdict);
    assert_next(&verdict, FAIL);
}

static void a_long_path_leaves_room_for_the_reason(void **state)
{
    char path[1100];
    struct s3_failure failure = {
        .operation = S3_GET_OBJECT,
        .path = path,
        .endpoint = "https://h",
        .region = "us-east-1",
        .source = SOURCE,
        .status = 404,
    };
    struct s3_verdict verdict;
    struct cadre_error error = {.code = CADRE_UNAVAILABLE, .text = "no answer"};
    (void)state;
    for (size_t i = 0; i < sizeof path - 1; i++) {
        path[i] = i % 2 == 0 ? '\xc3' : '\xa4';
    }
    memcpy(path, "s3://b/\x1b[", 9);
    memcpy(path + sizeof path - 5, ".bin", 5);
    s3_judge(&failure, &verdict);
    assert_error(
        verdict.error.code, CADRE_NOT_FOUND, &verdict.error, "cannot be read: there is no such");
    assert_non_null(strstr(verdict.error.text, "s3://b/?["));
    assert_non_null(strstr(verdict.error.text, ".bin cannot be read"));
    assert_error(s3_blame(S3_PUT_OBJECT, "s3://b/k", CADRE_UNAVAILABLE, &error), CADRE_UNAVAILABLE,
        &error, "s3://b/k cannot be written: no answer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_has_its_meaning),
        cmocka_unit_test(each_http_status_has_its_meaning),
        cmocka_unit_test(a_bucket_in_another_region),
        cmocka_unit_test(clocks_that_differ),
        cmocka_unit_test(a_web_page_is_no_object_store),
        cmocka_unit_test(without_credentials),
        cmocka_unit_test(a_long_path_leaves_room_for_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
