/* SPDX-License-Identifier: Apache-2.0
 * Signatures: the examples of Amazon's API reference ("Signature Calculations for the Authorization
 * Header: Transferring Payload in a Single Chunk"), keys with any characters, session tokens, and
 * what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/storage/s3/credentials.h"
#include "common/storage/s3/sign.h"
#include "tests/lib/test.h"

#define AT_S UINT64_C(1369353600) /* 24 May 2013, 00:00:00 */

static const struct s3_credentials example = {
    .access_key = "AKIAIOSFODNN7EXAMPLE",
    .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    .ends_us = UINT64_MAX,
    .source = "the example",
};

static const char *header_of(const struct s3_signed *sent, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < sent->header_count; i++) {
        if (strncmp(sent->headers[i], name, length) == 0 && sent->headers[i][length] == ':') {
            return sent->headers[i] + length + 2;
        }
    }
    return NULL;
}

static void assert_signed(const struct s3_request *request, const char *target,
    const char *signed_headers, const char *signature)
{
    struct cadre_error error;
    struct s3_signed sent;
    char wanted[512];
    assert_ok(s3_sign(request, &example, "us-east-1", AT_S, &sent, &error), &error);
    assert_string_equal(sent.target, target);
    snprintf(wanted, sizeof wanted,
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
        "SignedHeaders=%s, Signature=%s",
        signed_headers, signature);
    assert_string_equal(header_of(&sent, "authorization"), wanted);
    assert_string_equal(header_of(&sent, "x-amz-date"), "20130524T000000Z");
    assert_string_equal(header_of(&sent, "x-amz-content-sha256"), request->payload_sha256);
    assert_string_equal(header_of(&sent, "host"), request->host);
    s3_signed_wipe(&sent);
    assert_null(sent.memory);
}

static void the_published_examples(void **state)
{
    static const struct s3_pair range[] = {{"Range", "bytes=0-9"}};
    static const struct s3_pair put[] = {
        {"x-amz-storage-class", "REDUCED_REDUNDANCY"}, {"Date", "Fri, 24 May 2013 00:00:00 GMT"}};
    static const struct s3_pair lifecycle[] = {{"lifecycle", ""}};
    static const struct s3_pair list[] = {{"prefix", "J"}, {"max-keys", "2"}};
    struct s3_request request = {
        .method = "GET",
        .host = "examplebucket.s3.amazonaws.com",
        .path = "/test.txt",
        .headers = range,
        .header_count = 1,
        .payload_sha256 = S3_EMPTY_SHA256,
    };
    (void)state;
    assert_signed(&request, "/test.txt", "host;range;x-amz-content-sha256;x-amz-date",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    request.method = "PUT";
    request.path = "/test$file.text";
    request.headers = put;
    request.header_count = 2;
    request.payload_sha256 = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    assert_signed(&request, "/test%24file.text",
        "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    request.method = "GET";
    request.path = "/";
    request.header_count = 0;
    request.payload_sha256 = S3_EMPTY_SHA256;
    request.query = lifecycle;
    request.query_count = 1;
    assert_signed(&request, "/?lifecycle=", "host;x-amz-content-sha256;x-amz-date",
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    request.query = list;
    request.query_count = 2;
    assert_signed(&request, "/?prefix=J&max-keys=2", "host;x-amz-content-sha256;x-amz-date",
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

/* A name without a value is sent without "=", and signed with it. */
static void a_name_without_a_value(void **state)
{
    static const struct s3_pair lifecycle[] = {{"lifecycle", NULL}};
    const struct s3_request request = {
        .method = "GET",
        .host = "examplebucket.s3.amazonaws.com",
        .path = "/",
        .query = lifecycle,
        .query_count = 1,
        .payload_sha256 = S3_EMPTY_SHA256,
    };
    (void)state;
    assert_signed(&request, "/?lifecycle", "host;x-amz-content-sha256;x-amz-date",
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

/* The target of a GET of that path, unsigned. */
static void assert_target(const char *path, const char *wanted)
{
    struct cadre_error error;
    struct s3_signed sent;
    const struct s3_request request = {
        .method = "GET", .host = "h", .path = path, .payload_sha256 = S3_EMPTY_SHA256};
    assert_ok(s3_sign(&request, NULL, "us-east-1", AT_S, &sent, &error), &error);
    assert_string_equal(sent.target, wanted);
    s3_signed_wipe(&sent);
}

static void keys_with_any_characters(void **state)
{
    char path[1 + 1024 + 1];
    char wanted[1 + 3 * 1024 + 1];
    (void)state;
    assert_target("/b/a key", "/b/a%20key");
    assert_target("/b/a+b", "/b/a%2Bb");
    assert_target("/b/100%", "/b/100%25");
    assert_target("/b/a%20b", "/b/a%2520b");
    assert_target("/b/k=v&w?x#y", "/b/k%3Dv%26w%3Fx%23y");
    assert_target("/b/\xc3\xa4\xe2\x82\xac", "/b/%C3%A4%E2%82%AC");
    assert_target("/b/../x/./y", "/b/../x/./y");
    assert_target("/b//a///", "/b//a///");
    assert_target("/b/-._~", "/b/-._~");
    assert_target("/b/!*'()", "/b/%21%2A%27%28%29");
    assert_target("/b/\x01\x7f", "/b/%01%7F");
    memset(path, '+', sizeof path);
    path[0] = '/';
    path[1025] = '\0';
    char *at = wanted;
    *at++ = '/';
    for (int i = 0; i < 1024; i++, at += 3) {
        memcpy(at, "%2B", 3);
    }
    *at = '\0';
    assert_target(path, wanted);
}

static void queries_are_sorted_by_what_is_sent(void **state)
{
    static const struct s3_pair pairs[] = {{"prefix", "a b/\xc3\xa4+="}, {"list-type", "2"},
        {"continuation-token", "1/x=="}, {"delimiter", "/"}, {"encoding-type", "url"}};
    static const struct s3_pair sorted[] = {{"continuation-token", "1/x=="}, {"delimiter", "/"},
        {"encoding-type", "url"}, {"list-type", "2"}, {"prefix", "a b/\xc3\xa4+="}};
    struct cadre_error error;
    struct s3_signed one, other;
    struct s3_request request = {
        .method = "GET",
        .host = "h",
        .path = "/b",
        .query = pairs,
        .query_count = 5,
        .payload_sha256 = S3_EMPTY_SHA256,
    };
    (void)state;
    assert_ok(s3_sign(&request, &example, "us-east-1", AT_S, &one, &error), &error);
    request.query = sorted;
    assert_ok(s3_sign(&request, &example, "us-east-1", AT_S, &other, &error), &error);
    assert_string_equal(one.target,
        "/b?prefix=a%20b%2F%C3%A4%2B%3D&list-type=2&continuation-token=1%2Fx%3D%3D&delimiter=%2F&"
        "encoding-type=url");
    assert_string_equal(header_of(&one, "authorization"), header_of(&other, "authorization"));
    s3_signed_wipe(&one);
    s3_signed_wipe(&other);
}

/* The signature is what Python's hmac gives for the canonical request, written by hand. */
static void session_tokens_and_bodies_that_are_not_hashed(void **state)
{
    static const struct s3_pair headers[] = {{"If-None-Match", "*"}, {"Content-Type", " a   b "}};
    struct s3_credentials credentials = example;
    struct cadre_error error;
    struct s3_signed sent;
    const struct s3_request request = {
        .method = "PUT",
        .host = "minio:9000",
        .path = "/bucket/a key+\xc3\xa4",
        .headers = headers,
        .header_count = 2,
        .payload_sha256 = S3_UNSIGNED_PAYLOAD,
    };
    (void)state;
    credentials.session_token = "FwoGZXIvYXdzEBc/token+/==";
    assert_ok(s3_sign(&request, &credentials, "eu-west-1", AT_S, &sent, &error), &error);
    assert_string_equal(header_of(&sent, "x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
    assert_string_equal(header_of(&sent, "x-amz-security-token"), "FwoGZXIvYXdzEBc/token+/==");
    assert_string_equal(header_of(&sent, "if-none-match"), "*");
    assert_string_equal(header_of(&sent, "authorization"),
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/eu-west-1/s3/aws4_request, "
        "SignedHeaders=content-type;host;if-none-match;x-amz-content-sha256;x-amz-date;"
        "x-amz-security-token, "
        "Signature=b67ea6635dadd8b8adc23a8d239c6581b308d66c5c110fbb1e78d78f1077181b");
    s3_signed_wipe(&sent);
}

static void without_credentials_nothing_is_signed(void **state)
{
    static const struct s3_pair range[] = {{"Range", "bytes=0-9"}};
    struct cadre_error error;
    struct s3_signed sent;
    const struct s3_request request = {
        .method = "GET",
        .host = "h",
        .path = "/b/k",
        .headers = range,
        .header_count = 1,
        .payload_sha256 = S3_EMPTY_SHA256,
    };
    (void)state;
    assert_ok(s3_sign(&request, NULL, "us-east-1", AT_S, &sent, &error), &error);
    assert_int_equal(sent.header_count, 2);
    assert_string_equal(header_of(&sent, "range"), "bytes=0-9");
    assert_string_equal(header_of(&sent, "host"), "h");
    s3_signed_wipe(&sent);
}

static void what_would_be_another_header_is_refused(void **state)
{
    struct s3_pair header = {"x-amz-meta-a", "b\r\nx-amz-acl: public-read"};
    struct s3_credentials credentials = example;
    struct cadre_error error;
    struct s3_signed sent;
    struct s3_request request = {
        .method = "PUT",
        .host = "h",
        .path = "/b/k",
        .headers = &header,
        .header_count = 1,
        .payload_sha256 = S3_EMPTY_SHA256,
    };
    (void)state;
    assert_error(s3_sign(&request, &example, "r", AT_S, &sent, &error), CADRE_INVALID_ARGUMENT,
        &error, "header 1 of the request has a control character");
    assert_null(sent.memory);
    header = (struct s3_pair){"x:y", "z"};
    assert_error(s3_sign(&request, &example, "r", AT_S, &sent, &error), CADRE_INVALID_ARGUMENT,
        &error, "a name that is none");
    header = (struct s3_pair){"", "z"};
    assert_error(s3_sign(&request, &example, "r", AT_S, &sent, &error), CADRE_INVALID_ARGUMENT,
        &error, "a name that is none");
    header = (struct s3_pair){"Host", "elsewhere"};
    assert_error(s3_sign(&request, &example, "r", AT_S, &sent, &error), CADRE_INVALID_ARGUMENT,
        &error, "a header twice");
    assert_null(sent.memory);
    header = (struct s3_pair){"X-Amz-Date", "20130524T000000Z"};
    assert_error(s3_sign(&request, &example, "r", AT_S, &sent, &error), CADRE_INVALID_ARGUMENT,
        &error, "a header twice");
    request.header_count = 0;
    credentials.session_token = "secret\n";
    assert_error(s3_sign(&request, &credentials, "r", AT_S, &sent, &error), CADRE_INVALID_ARGUMENT,
        &error, "the credentials of the example have a control character");
    assert_null(strstr(error.text, "secret"));
    request.header_count = S3_HEADERS_MAX + 1;
    assert_error(s3_sign(&request, &example, "r", AT_S, &sent, &error), CADRE_INVALID_ARGUMENT,
        &error, "at most");
    request.header_count = 0;
    assert_error(s3_sign(&request, &example, "r", UINT64_MAX, &sent, &error),
        CADRE_INVALID_ARGUMENT, &error, "is the clock right");
}

/* All that may be given at once, in its longest form. */
static void the_longest_request_has_room(void **state)
{
    static char text[9][2048];
    static char token[8192];
    struct s3_pair headers[S3_HEADERS_MAX], query[S3_QUERY_MAX];
    char names[S3_HEADERS_MAX][16];
    char region[64];
    struct s3_credentials credentials = example;
    struct cadre_error error;
    struct s3_signed sent;
    (void)state;
    for (int i = 0; i < 9; i++) {
        memset(text[i], i == 0 ? '/' : '+', sizeof text[i] - 1);
    }
    memset(token, 't', sizeof token - 1);
    memset(region, 'r', sizeof region - 1);
    region[63] = '\0';
    for (size_t i = 0; i < S3_HEADERS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "x-h%zu", i);
        headers[i] = (struct s3_pair){names[i], text[1]};
    }
    for (size_t i = 0; i < S3_QUERY_MAX; i++) {
        query[i] = (struct s3_pair){text[2], text[3]};
    }
    text[4][0] = '/';
    credentials.session_token = token;
    const struct s3_request request = {
        .method = "DELETE",
        .host = text[5],
        .path = text[4],
        .query = query,
        .query_count = S3_QUERY_MAX,
        .headers = headers,
        .header_count = S3_HEADERS_MAX,
        .payload_sha256 = S3_EMPTY_SHA256,
    };
    assert_ok(s3_sign(&request, &credentials, region, AT_S, &sent, &error), &error);
    assert_int_equal(sent.header_count, S3_HEADERS_MAX + 5);
    s3_signed_wipe(&sent);
}

/* What the kernel writes of a mapping: "dd" among its flags is "do not include in core dumps". */
static bool is_left_out_of_core_dumps(const void *memory)
{
    char row[1024];
    bool within = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    assert_non_null(file);
    while (fgets(row, sizeof row, file) != NULL) {
        unsigned long long begin = 0, end = 0;
        if (sscanf(row, "%llx-%llx ", &begin, &end) == 2) {
            within = (uintptr_t)memory >= begin && (uintptr_t)memory < end;
        } else if (within && strncmp(row, "VmFlags:", 8) == 0) {
            fclose(file);
            return strstr(row, " dd") != NULL;
        }
    }
    fclose(file);
    return false;
}

static void a_signed_request_is_in_no_core_dump(void **state)
{
    struct cadre_error error;
    struct s3_signed sent;
    const struct s3_request request = {
        .method = "GET", .host = "h", .path = "/b/k", .payload_sha256 = S3_EMPTY_SHA256};
    (void)state;
    assert_false(is_left_out_of_core_dumps(&request));
    assert_ok(s3_sign(&request, &example, "us-east-1", AT_S, &sent, &error), &error);
    assert_true(is_left_out_of_core_dumps(sent.memory));
    assert_true(is_left_out_of_core_dumps(sent.headers[sent.header_count - 1]));
    s3_signed_wipe(&sent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_published_examples),
        cmocka_unit_test(a_name_without_a_value),
        cmocka_unit_test(keys_with_any_characters),
        cmocka_unit_test(queries_are_sorted_by_what_is_sent),
        cmocka_unit_test(session_tokens_and_bodies_that_are_not_hashed),
        cmocka_unit_test(without_credentials_nothing_is_signed),
        cmocka_unit_test(what_would_be_another_header_is_refused),
        cmocka_unit_test(the_longest_request_has_room),
        cmocka_unit_test(a_signed_request_is_in_no_core_dump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
