/* SPDX-License-Identifier: Apache-2.0
 * Where credentials come from: each source, their order, and the sentence where one does not work.
 * Nothing secret is in any of them. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/test.h"
#include "tests/unit/storage/s3_standin.h"

#define NOW_US UINT64_C(1369353600000000) /* 24 May 2013, 00:00:00 */
#define SOON   (clock_monotonic_us() + 60 * CADRE_US_PER_S)

#define IMDS    "http://169.254.169.254/latest"
#define ROLES   IMDS "/meta-data/iam/security-credentials/"
#define TTL     "X-aws-ec2-metadata-token-ttl-seconds: 21600"
#define SESSION "X-aws-ec2-metadata-token: AQAEsession=="
#define GOOD_JSON                                                                                  \
    "{\"Code\": \"Success\", \"Type\": \"AWS-HMAC\", \"AccessKeyId\": \"AKIJSON\", "               \
    "\"SecretAccessKey\": \"hunter2json\", \"Token\": \"hunter2token\", \"Expiration\": "          \
    "\"2013-05-24T06:00:00Z\"}"

/* What the provider gives. */
static void assert_found(struct standin *standin, const char *access_key, const char *secret_key,
    const char *token, uint64_t ends_us, const char *source)
{
    const struct storage_variables variables = standin_variables(standin);
    struct s3_provider *provider = standin_provider(standin, &variables);
    const struct s3_credentials *credentials = NULL;
    struct cadre_error error;
    assert_ok(s3_provider_take(provider, SOON, &credentials, &error), &error);
    assert_string_equal(credentials->access_key, access_key);
    assert_string_equal(credentials->secret_key, secret_key);
    assert_string_equal(credentials->session_token, token);
    assert_int_equal(credentials->ends_us, ends_us);
    assert_string_equal(credentials->source, source);
    s3_provider_give_back(provider, credentials);
    s3_provider_close(provider);
}

static void assert_none(struct standin *standin, cadre_status status, const char *part)
{
    const struct storage_variables variables = standin_variables(standin);
    struct s3_provider *provider = standin_provider(standin, &variables);
    const struct s3_credentials *credentials = NULL;
    struct cadre_error error;
    assert_error(s3_provider_take(provider, SOON, &credentials, &error), status, &error, part);
    assert_null(strstr(error.text, "hunter2"));
    assert_null(credentials);
    s3_provider_close(provider);
}

/* Writes a file of that name to a folder of its own; its path is valid until the next. */
static const char *written(const char *text)
{
    static char path[TEST_PATH_BYTES];
    test_write(test_path(path, test_temp_dir(), "file"), text);
    return path;
}

static void the_environment(void **state)
{
    struct standin standin = {.now_us = NOW_US};
    (void)state;
    standin_set(&standin, "AWS_ACCESS_KEY_ID", "AKIENV");
    standin_set(&standin, "AWS_SECRET_ACCESS_KEY", " hunter2/+=\n"); /* as a mounted secret ends */
    assert_found(&standin, "AKIENV", "hunter2/+=", "", UINT64_MAX, "the environment");
    standin_set(&standin, "AWS_SESSION_TOKEN", "token==");
    /* It is the first, whatever else is set. */
    standin_set(&standin, "AWS_PROFILE", "none");
    standin_set(&standin, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x");
    assert_found(&standin, "AKIENV", "hunter2/+=", "token==", UINT64_MAX, "the environment");
    assert_int_equal(standin.asked, 0);
}

static void an_environment_that_is_wrong(void **state)
{
    struct standin standin = {.now_us = NOW_US};
    char text[400];
    (void)state;
    standin_set(&standin, "AWS_ACCESS_KEY_ID", "AKIENV");
    assert_none(
        &standin, CADRE_INVALID_ARGUMENT, "AWS_ACCESS_KEY_ID and not AWS_SECRET_ACCESS_KEY");
    standin_set(&standin, "AWS_SECRET_ACCESS_KEY", "hunter2");
    standin_set(&standin, "AWS_ACCESS_KEY_ID", NULL);
    assert_none(
        &standin, CADRE_INVALID_ARGUMENT, "AWS_SECRET_ACCESS_KEY and not AWS_ACCESS_KEY_ID");
    standin_set(&standin, "AWS_ACCESS_KEY_ID", "AKI/ENV");
    assert_none(&standin, CADRE_INVALID_ARGUMENT, "byte 4 of the access key is in no such text");
    standin_set(&standin, "AWS_ACCESS_KEY_ID", "AKIENV");
    standin_set(&standin, "AWS_SECRET_ACCESS_KEY", "hunter2\nx");
    assert_none(&standin, CADRE_INVALID_ARGUMENT, "byte 8 of the secret key is in no such text");
    standin_set(&standin, "AWS_SECRET_ACCESS_KEY", " ");
    assert_none(&standin, CADRE_INVALID_ARGUMENT, "the environment: the secret key is empty");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    standin_set(&standin, "AWS_SECRET_ACCESS_KEY", text);
    assert_none(&standin, CADRE_INVALID_ARGUMENT, "has 399 bytes, more than 255");
}

static void a_profile(void **state)
{
    struct standin standin = {.now_us = NOW_US};
    char source[TEST_PATH_BYTES + 64];
    (void)state;
    const char *path = written("[default]\naws_access_key_id = AKIFILE\n"
                               "aws_secret_access_key = hunter2\n"
                               "[work]\naws_access_key_id = AKIWORK\n"
                               "aws_secret_access_key = hunter2\naws_session_token = t");
    standin_set(&standin, "AWS_SHARED_CREDENTIALS_FILE", path);
    snprintf(source, sizeof source, "the profile \"default\" of %s", path);
    assert_found(&standin, "AKIFILE", "hunter2", "", UINT64_MAX, source);
    standin_set(&standin, "AWS_PROFILE", "work");
    snprintf(source, sizeof source, "the profile \"work\" of %s", path);
    assert_found(&standin, "AKIWORK", "hunter2", "t", UINT64_MAX, source);
    standin_set(&standin, "AWS_PROFILE", "wrok");
    assert_none(&standin, CADRE_FAILED_PRECONDITION, "AWS_PROFILE names \"wrok\"");
    /* Keys may be in config, too. */
    standin_set(&standin, "AWS_CONFIG_FILE",
        written("[profile wrok]\naws_access_key_id = AKICONF\naws_secret_access_key = hunter2\n"));
    standin_set(&standin, "AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    snprintf(source, sizeof source, "the profile \"wrok\" of %s",
        standin_variables(&standin).find(&standin, "AWS_CONFIG_FILE"));
    assert_found(&standin, "AKICONF", "hunter2", "", UINT64_MAX, source);
}

static void profiles_that_are_refused(void **state)
{
    static const struct {
        const char *text, *part;
        cadre_status status;
    } rows[] = {
        {"[default]\ncredential_process = /bin/hunter2\n", "starts a program",
            CADRE_FAILED_PRECONDITION},
        {"[default]\nsso_session = x\n", "a login in a browser (sso_session)",
            CADRE_FAILED_PRECONDITION},
        {"[default]\nsso_start_url = x\n",
            "run `aws configure export-credentials --profile default", CADRE_FAILED_PRECONDITION},
        {"[default]\nrole_arn = x\nsource_profile = y\n", "takes on a role",
            CADRE_FAILED_PRECONDITION},
        {"[default]\nweb_identity_token_file = x\n", "exchanges a token",
            CADRE_FAILED_PRECONDITION},
        {"[default]\naws_access_key_id = A\n", "has no aws_secret_access_key",
            CADRE_INVALID_ARGUMENT},
        {"[default]\naws_secret_access_key = hunter2\n", "has no aws_access_key_id",
            CADRE_INVALID_ARGUMENT},
        {"[default]\nhunter2\n", "line 2 is not one of an ini file", CADRE_INVALID_ARGUMENT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct standin standin = {.now_us = NOW_US};
        standin_set(&standin, "AWS_SHARED_CREDENTIALS_FILE", written(rows[i].text));
        assert_none(&standin, rows[i].status, rows[i].part);
        assert_int_equal(standin.asked, 0); /* and the machine's own are not taken instead */
    }
    struct standin standin = {.now_us = NOW_US};
    standin_set(&standin, "AWS_SHARED_CREDENTIALS_FILE", test_temp_dir());
    assert_none(&standin, CADRE_INVALID_ARGUMENT, "a folder");
}

/* Keys beside a role are those that may take it on: to use them would be to act with other rights.
 */
static void a_role_in_one_file_and_keys_in_the_other(void **state)
{
    struct standin standin = {.now_us = NOW_US};
    char path[TEST_PATH_BYTES];
    (void)state;
    snprintf(path, sizeof path, "%s",
        written("[default]\naws_access_key_id = A\naws_secret_access_key = hunter2\n"));
    standin_set(&standin, "AWS_SHARED_CREDENTIALS_FILE", path);
    standin_set(
        &standin, "AWS_CONFIG_FILE", written("[default]\nrole_arn = x\nsource_profile = y\n"));
    assert_none(&standin, CADRE_FAILED_PRECONDITION, "takes on a role (role_arn)");
    /* A login wrote its keys there: the same rights. */
    standin_set(&standin, "AWS_CONFIG_FILE", written("[default]\nsso_session = x\n"));
    char source[TEST_PATH_BYTES + 64];
    snprintf(source, sizeof source, "the profile \"default\" of %s", path);
    assert_found(&standin, "A", "hunter2", "", UINT64_MAX, source);
    standin_set(&standin, "AWS_SHARED_CREDENTIALS_FILE",
        written("[default]\nrole_arn = x\naws_access_key_id = A\n"
                "aws_secret_access_key = hunter2\n"));
    assert_none(&standin, CADRE_FAILED_PRECONDITION, "takes on a role (role_arn)");
}

static void a_file_that_may_not_be_read(void **state)
{
    struct standin standin = {.now_us = NOW_US};
    char folder[TEST_PATH_BYTES], path[TEST_PATH_BYTES];
    const char *home = test_temp_dir();
    (void)state;
    if (geteuid() == 0) {
        skip(); /* root reads all */
    }
    assert_int_equal(mkdir(test_path(folder, home, ".aws"), 0700), 0);
    test_write(test_path(path, folder, "credentials"), "[default]\n");
    assert_int_equal(chmod(path, 0), 0);
    standin_set(&standin, "HOME", home);
    standin_set(&standin, "AWS_EC2_METADATA_DISABLED", "true");
    assert_none(&standin, CADRE_UNAUTHENTICATED, "no credentials"); /* as if it were not there */
    standin_set(&standin, "AWS_SHARED_CREDENTIALS_FILE", path);
    assert_none(&standin, CADRE_PERMISSION_DENIED, path);
}

static void the_container(void **state)
{
    struct standin standin = {.now_us = NOW_US,
        .script = {{"GET", "http://169.254.170.2/v2/credentials/x", NULL, CADRE_OK, 200, GOOD_JSON},
            {"GET", "http://169.254.170.23/v1/credentials", "Authorization: hunter2 a", CADRE_OK,
                200, GOOD_JSON},
            {"GET", "https://vault.example.com/c", "Authorization: hunter2 b", CADRE_OK, 200,
                "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"hunter2\"}"}}};
    const uint64_t ends_us = NOW_US + UINT64_C(6) * 3600 * CADRE_US_PER_S;
    (void)state;
    standin_set(&standin, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/x");
    assert_found(&standin, "AKIJSON", "hunter2json", "hunter2token", ends_us,
        "the container's agent (AWS_CONTAINER_CREDENTIALS_RELATIVE_URI)");
    standin_set(&standin, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", NULL);
    standin_set(
        &standin, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials");
    standin_set(&standin, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "hunter2 a");
    assert_found(&standin, "AKIJSON", "hunter2json", "hunter2token", ends_us,
        "the container's agent (AWS_CONTAINER_CREDENTIALS_FULL_URI)");
    standin_set(&standin, "AWS_CONTAINER_CREDENTIALS_FULL_URI", "https://vault.example.com/c");
    standin_set(&standin, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", written("hunter2 b\n"));
    assert_found(&standin, "A", "hunter2", "", UINT64_MAX,
        "the container's agent (AWS_CONTAINER_CREDENTIALS_FULL_URI)");
    assert_int_equal(standin.asked, 3);
}

/* Where credentials would go to a stranger, or come from one. */
static void addresses_that_are_not_asked(void **state)
{
    static const char *const urls[] = {"http://example.com/", "http://127.0.0.1.example.com/",
        "http://127.evil/", "ftp://127.0.0.1", "http://169.254.170.20/",
        "http://localhost@example.com/", "http://localhost\r\nx: y", "http://[::1].example.com/",
        "http://[::2]/", "169.254.170.2/x", "https://a b/"};
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct standin standin = {.now_us = NOW_US};
        standin_set(&standin, "AWS_CONTAINER_CREDENTIALS_FULL_URI", urls[i]);
        assert_none(&standin, CADRE_INVALID_ARGUMENT,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI is no address that credentials are taken from");
    }
    struct standin standin = {.now_us = NOW_US};
    standin_set(&standin, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "@example.com/");
    assert_none(&standin, CADRE_INVALID_ARGUMENT, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is no");
    standin_set(&standin, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x");
    standin_set(&standin, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "hunter2\r\nx: y");
    assert_none(&standin, CADRE_INVALID_ARGUMENT, "a character that is in no header");
    standin_set(&standin, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/nonexistent/token");
    assert_none(&standin, CADRE_FAILED_PRECONDITION,
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: cannot open /nonexistent/token");
}

static void a_container_that_gives_none(void **state)
{
    static const struct {
        cadre_status fetched;
        int http;
        const char *body;
        cadre_status status;
        const char *part;
    } rows[] = {
        {CADRE_UNAVAILABLE, 0, NULL, CADRE_UNAVAILABLE, "gives no credentials: no answer"},
        {CADRE_CANCELLED, 0, NULL, CADRE_CANCELLED, "no answer"},
        {CADRE_OUT_OF_RANGE, 0, NULL, CADRE_UNAVAILABLE, "no answer"},
        {CADRE_OK, 403, "hunter2", CADRE_UNAUTHENTICATED, "HTTP 403: does it have a role"},
        {CADRE_OK, 500, "hunter2", CADRE_UNAVAILABLE, "HTTP 500, which may pass"},
        {CADRE_OK, 429, "hunter2", CADRE_UNAVAILABLE, "HTTP 429, which may pass"},
        {CADRE_OK, 200, "<html>hunter2", CADRE_UNAUTHENTICATED, "no JSON with AccessKeyId"},
        {CADRE_OK, 200, "{\"AccessKeyId\":\"hunter2\"}", CADRE_UNAUTHENTICATED, "no JSON with"},
        {CADRE_OK, 200, "{\"Code\":\"Failed\",\"AccessKeyId\":\"hunter2\"}", CADRE_UNAUTHENTICATED,
            "its Code is not"},
        {CADRE_OK, 200,
            "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"hunter2\",\"Expiration\":\"soon\"}",
            CADRE_UNAUTHENTICATED, "its Expiration is no time"},
        {CADRE_OK, 200, "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"hunter2 x\"}",
            CADRE_INVALID_ARGUMENT, "byte 8 of the secret key"},
        {CADRE_OK, 200,
            "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"hunter2\",\"Expiration\":"
            "\"2013-05-23T23:59:59Z\"}",
            CADRE_UNAUTHENTICATED,
            "which are new, ended at 2013-05-23 23:59:59 UTC: is this host's clock right?"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct standin standin = {.now_us = NOW_US,
            .script = {{"GET", "http://169.254.170.2/x", NULL, rows[i].fetched, rows[i].http,
                rows[i].body}}};
        standin_set(&standin, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x");
        assert_none(&standin, rows[i].status, rows[i].part);
        assert_int_equal(standin.asked, 1);
    }
}

static void the_instance(void **state)
{
    struct standin standin = {.now_us = NOW_US,
        .script = {{"PUT", IMDS "/api/token", TTL, CADRE_OK, 200, "AQAEsession=="},
            {"GET", ROLES, SESSION, CADRE_OK, 200, "trainer\n"},
            {"GET", ROLES "trainer", SESSION, CADRE_OK, 200, GOOD_JSON},
            {"PUT", "http://127.0.0.1:81/latest/api/token", TTL, CADRE_OK, 200, "AQAEsession==\n"},
            {"GET", "http://127.0.0.1:81/latest/meta-data/iam/security-credentials/", SESSION,
                CADRE_OK, 200, "trainer"},
            {"GET", "http://127.0.0.1:81/latest/meta-data/iam/security-credentials/trainer",
                SESSION, CADRE_OK, 200, GOOD_JSON}}};
    const uint64_t ends_us = NOW_US + UINT64_C(6) * 3600 * CADRE_US_PER_S;
    (void)state;
    assert_found(&standin, "AKIJSON", "hunter2json", "hunter2token", ends_us,
        "the instance's role \"trainer\"");
    standin_set(&standin, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:81/");
    standin_set(&standin, "AWS_EC2_METADATA_DISABLED", "false");
    assert_found(&standin, "AKIJSON", "hunter2json", "hunter2token", ends_us,
        "the instance's role \"trainer\"");
    assert_int_equal(standin.asked, 6);
}

static void an_instance_that_gives_none(void **state)
{
    static const struct {
        struct standin_answer script[3];
        cadre_status status;
        const char *part;
    } rows[] = {
        {{{.url = NULL}}, CADRE_UNAUTHENTICATED,
            "no credentials for the object store: AWS_ACCESS_KEY_ID is not set, the profile "
            "\"default\" has no keys in ~/.aws/credentials, no container's agent is set, and the "
            "instance's metadata does not answer: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
            "(for "
            "a job: cadre submit --env NAME for each)"},
        {{{"PUT", IMDS "/api/token", TTL, CADRE_OK, 404, "no"}}, CADRE_UNAUTHENTICATED,
            "metadata gives no token"},
        {{{"PUT", IMDS "/api/token", TTL, CADRE_OK, 200, "<html>"}}, CADRE_UNAUTHENTICATED,
            "metadata gives no token"},
        {{{"PUT", IMDS "/api/token", TTL, CADRE_CANCELLED, 0, NULL}}, CADRE_CANCELLED, "no answer"},
        {{{"PUT", IMDS "/api/token", TTL, CADRE_OK, 200, "AQAEsession=="},
             {"GET", ROLES, SESSION, CADRE_OK, 404, ""}},
            CADRE_UNAUTHENTICATED, "metadata names no role"},
        {{{"PUT", IMDS "/api/token", TTL, CADRE_OK, 200, "AQAEsession=="},
             {"GET", ROLES, SESSION, CADRE_OK, 200, "../../hunter2"}},
            CADRE_UNAUTHENTICATED, "metadata names no role"},
        {{{"PUT", IMDS "/api/token", TTL, CADRE_OK, 200, "AQAEsession=="},
             {"GET", ROLES, SESSION, CADRE_OK, 200, "r"},
             {"GET", ROLES "r", SESSION, CADRE_OK, 503, "x"}},
            CADRE_UNAVAILABLE, "the instance's role \"r\" gives no credentials: HTTP 503"},
        {{{"PUT", IMDS "/api/token", TTL, CADRE_OK, 200, "AQAEsession=="},
             {"GET", ROLES, SESSION, CADRE_OK, 200, "r"},
             {"GET", ROLES "r", SESSION, CADRE_UNAVAILABLE, 0, "x"}},
            CADRE_UNAVAILABLE, "the instance's role \"r\" gives no credentials: no answer"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct standin standin = {.now_us = NOW_US};
        memcpy(standin.script, rows[i].script, sizeof rows[i].script);
        assert_none(&standin, rows[i].status, rows[i].part);
    }
    struct standin standin = {.now_us = NOW_US};
    standin_set(&standin, "AWS_EC2_METADATA_DISABLED", "True");
    assert_none(
        &standin, CADRE_UNAUTHENTICATED, "metadata is not asked (AWS_EC2_METADATA_DISABLED)");
    assert_int_equal(standin.asked, 0);
    standin.without = "the job has none: give it some";
    assert_none(&standin, CADRE_UNAUTHENTICATED,
        "no credentials for the object store: the job has none: give it some");
    standin_set(&standin, "AWS_EC2_METADATA_DISABLED", NULL);
    assert_none(&standin, CADRE_UNAUTHENTICATED,
        "the job has none: give it some; the instance's metadata does not answer");
    standin_set(&standin, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "169.254.169.254");
    assert_none(&standin, CADRE_INVALID_ARGUMENT, "AWS_EC2_METADATA_SERVICE_ENDPOINT is not");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment),
        cmocka_unit_test(an_environment_that_is_wrong),
        cmocka_unit_test(a_profile),
        cmocka_unit_test(profiles_that_are_refused),
        cmocka_unit_test(a_role_in_one_file_and_keys_in_the_other),
        cmocka_unit_test(a_file_that_may_not_be_read),
        cmocka_unit_test(the_container),
        cmocka_unit_test(addresses_that_are_not_asked),
        cmocka_unit_test(a_container_that_gives_none),
        cmocka_unit_test(the_instance),
        cmocka_unit_test(an_instance_that_gives_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
