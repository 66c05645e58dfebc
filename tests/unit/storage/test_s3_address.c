/* SPDX-License-Identifier: Apache-2.0
 * Endpoints, and the host and path that an object has at them. */
#include <stdio.h>
#include <string.h>

#include "common/storage/s3/address.h"
#include "tests/lib/test.h"

static void assert_address(const char *url, const char *region, const char *bucket, const char *key,
    const char *host, const char *path)
{
    struct cadre_error error;
    struct s3_endpoint endpoint;
    struct s3_address address;
    assert_ok(s3_endpoint_parse(url, region, &endpoint, &error), &error);
    assert_ok(s3_address_of(&endpoint, bucket, key, &address, &error), &error);
    assert_string_equal(address.host, host);
    assert_string_equal(address.path, path);
}

static void an_endpoint_that_is_set_is_path_style(void **state)
{
    (void)state;
    assert_address("https://minio:9000", NULL, "data", "a/b", "minio:9000", "/data/a/b");
    assert_address("https://minio:9000/", "", "data", "a/b", "minio:9000", "/data/a/b");
    assert_address("http://127.0.0.1", NULL, "data", NULL, "127.0.0.1", "/data");
    assert_address("HTTP://localhost:80", NULL, "data", "", "localhost", "/data");
    assert_address("https://s3.example.com:443", NULL, "d", "k", "s3.example.com", "/d/k");
    assert_address("https://s3.example.com:80", NULL, "d", "k", "s3.example.com:80", "/d/k");
    assert_address("https://[fd00::1]:9000", NULL, "d", "k", "[fd00::1]:9000", "/d/k");
    assert_address("https://[fd00::1]", NULL, "d", "k", "[fd00::1]", "/d/k");
    assert_address("https://h/gateway/s3/", NULL, "d", "../k", "h", "/gateway/s3/d/../k");
    assert_address("http://ceph_rgw:7480", NULL, "d", "/k", "ceph_rgw:7480", "/d//k");
}

static void amazon_is_virtual_hosted(void **state)
{
    (void)state;
    assert_address(NULL, "eu-west-1", "data", "a b", "data.s3.eu-west-1.amazonaws.com", "/a b");
    assert_address("", "eu-west-1", "data", NULL, "data.s3.eu-west-1.amazonaws.com", "/");
    assert_address(NULL, NULL, "data", "k", "data.s3.us-east-1.amazonaws.com", "/k");
    assert_address(NULL, "cn-north-1", "d", "k", "d.s3.cn-north-1.amazonaws.com.cn", "/k");
    /* A certificate for "*.s3..." is none for two labels. */
    assert_address(NULL, "eu-west-1", "da.ta", "k", "s3.eu-west-1.amazonaws.com", "/da.ta/k");
}

static void moves(void **state)
{
    struct cadre_error error;
    struct s3_endpoint endpoint;
    (void)state;
    assert_ok(s3_endpoint_parse(NULL, "us-east-1", &endpoint, &error), &error);
    assert_true(endpoint.tls);
    assert_ok(s3_endpoint_move(&endpoint, "eu-central-1", &error), &error);
    assert_string_equal(endpoint.host, "s3.eu-central-1.amazonaws.com");
    assert_string_equal(endpoint.region, "eu-central-1");
    assert_ok(s3_endpoint_parse("http://h:1", NULL, &endpoint, &error), &error);
    assert_string_equal(endpoint.region, "us-east-1");
    assert_false(endpoint.tls);
    assert_ok(s3_endpoint_move(&endpoint, "garage", &error), &error);
    assert_string_equal(endpoint.host, "h:1");
    assert_string_equal(endpoint.region, "garage");
    assert_error(s3_endpoint_move(&endpoint, "evil.com/", &error), CADRE_INVALID_ARGUMENT, &error,
        "the region is no name");
    assert_string_equal(endpoint.region, "garage");
}

static void what_is_refused(void **state)
{
    static const struct {
        const char *url, *region, *part;
    } rows[] = {
        {"minio:9000", NULL, "begins with neither"},
        {"ftp://minio", NULL, "begins with neither"},
        {"https://", NULL, "no host that can be"},
        {"https:///bucket", NULL, "no host that can be"},
        {"https://:9000", NULL, "no host that can be"},
        {"https://a b", NULL, "no host that can be"},
        {"https://a\r\nx", NULL, "no host that can be"},
        {"https://[::1", NULL, "no host that can be"},
        {"https://[::1]x", NULL, "no host that can be"},
        {"https://[]:1", NULL, "no host that can be"},
        {"https://h:", NULL, "no port"},
        {"https://h:0", NULL, "no port"},
        {"https://h:65536", NULL, "no port"},
        {"https://h:99999999999", NULL, "no port"},
        {"https://h:1a", NULL, "no port"},
        {"https://h?x=y", NULL, "a query or a fragment"},
        {"https://h/#x", NULL, "a query or a fragment"},
        {"https://h/a b", NULL, "characters in its path"},
        {"https://h/a%20b", NULL, "characters in its path"},
        {"https://h", "us east", "the region is no name"},
        {NULL, "evil.com/x", "the region is no name"},
        {NULL, "a.b", "the region is no name"},
    };
    struct cadre_error error;
    struct s3_endpoint endpoint;
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_error(s3_endpoint_parse(rows[i].url, rows[i].region, &endpoint, &error),
            CADRE_INVALID_ARGUMENT, &error, rows[i].part);
    }
    assert_error(s3_endpoint_parse("https://root:hunter2@h", NULL, &endpoint, &error),
        CADRE_INVALID_ARGUMENT, &error, "has a user in it");
    assert_null(strstr(error.text, "hunter2"));
    memset(text, 'a', sizeof text);
    memcpy(text, "https://", 8);
    text[sizeof text - 1] = '\0';
    assert_error(s3_endpoint_parse(text, NULL, &endpoint, &error), CADRE_INVALID_ARGUMENT, &error,
        "too long");
    text[9] = '/';
    assert_error(s3_endpoint_parse(text, NULL, &endpoint, &error), CADRE_INVALID_ARGUMENT, &error,
        "a path that is too long");
}

static void the_longest_key_and_what_is_longer(void **state)
{
    struct cadre_error error;
    struct s3_endpoint endpoint;
    struct s3_address address;
    static char key[4096];
    char bucket[64];
    (void)state;
    memset(key, 'k', sizeof key - 1);
    memset(bucket, 'b', 63);
    bucket[63] = '\0';
    assert_ok(s3_endpoint_parse("https://h", NULL, &endpoint, &error), &error);
    assert_error(s3_address_of(&endpoint, bucket, key, &address, &error), CADRE_INVALID_ARGUMENT,
        &error, "too long");
    key[1024] = '\0';
    assert_ok(s3_address_of(&endpoint, bucket, key, &address, &error), &error);
    assert_int_equal(strlen(address.path), 1 + 63 + 1 + 1024);
    assert_ok(s3_endpoint_parse(NULL, NULL, &endpoint, &error), &error);
    assert_ok(s3_address_of(&endpoint, bucket, key, &address, &error), &error);
    assert_int_equal(strlen(address.path), 1 + 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_endpoint_that_is_set_is_path_style),
        cmocka_unit_test(amazon_is_virtual_hosted),
        cmocka_unit_test(moves),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(the_longest_key_and_what_is_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
