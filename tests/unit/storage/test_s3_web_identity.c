/* SPDX-License-Identifier: Apache-2.0
 * Credentials of a role for the token of a web identity: what is sent, what is taken of the answer,
 * and the sentence where there are none. Nothing secret is in any of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/prng.h"
#include "common/storage/s3/flat_xml.h"
#include "tests/lib/test.h"
#include "tests/unit/storage/s3_standin.h"

#define NOW_US UINT64_C(1369353600000000) /* 24 May 2013, 00:00:00 */
#define SOON   (clock_monotonic_us() + 60 * CADRE_US_PER_S)
#define FORM   "Content-Type: application/x-www-form-urlencoded"
#define ROLE   "arn:aws:iam::123456789012:role/train"
#define SENT                                                                                       \
    "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A"            \
    "123456789012%3Arole%2Ftrain&RoleSessionName=me&WebIdentityToken=hunter2.a_b-c"
#define GOOD                                                                                       \
    "<AssumeRoleWithWebIdentityResponse><Credentials><SessionToken>hunter2token</SessionToken>\n"  \
    "<SecretAccessKey>hunter2/xml</SecretAccessKey><Expiration>2013-05-24T06:00:00Z</Expiration>"  \
    "<AccessKeyId>ASIAXML</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResponse>"

static const char *written(const char *text)
{
    static char path[TEST_PATH_BYTES];
    test_write(test_path(path, test_temp_dir(), "token"), text);
    return path;
}

static struct standin standin_of_pod(void)
{
    struct standin standin = {.now_us = NOW_US, .sent = SENT};
    standin_set(&standin, "AWS_WEB_IDENTITY_TOKEN_FILE", written("hunter2.a_b-c\n"));
    standin_set(&standin, "AWS_ROLE_ARN", ROLE);
    standin_set(&standin, "AWS_ROLE_SESSION_NAME", "me");
    return standin;
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

static void assert_found(struct standin *standin)
{
    const struct storage_variables variables = standin_variables(standin);
    struct s3_provider *provider = standin_provider(standin, &variables);
    const struct s3_credentials *credentials = NULL;
    struct cadre_error error;
    assert_ok(s3_provider_take(provider, SOON, &credentials, &error), &error);
    assert_string_equal(credentials->access_key, "ASIAXML");
    assert_string_equal(credentials->secret_key, "hunter2/xml");
    assert_string_equal(credentials->session_token, "hunter2token");
    assert_int_equal(credentials->ends_us, NOW_US + UINT64_C(6) * 3600 * CADRE_US_PER_S);
    assert_string_equal(credentials->source, "STS for the role \"" ROLE "\"");
    s3_provider_give_back(provider, credentials);
    s3_provider_close(provider);
}

static void a_token_is_exchanged(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *url;
    } rows[] = {
        {"AWS_REGION", NULL, "https://sts.amazonaws.com/"},
        {"AWS_REGION", "eu-west-1", "https://sts.eu-west-1.amazonaws.com/"},
        {"AWS_DEFAULT_REGION", "cn-north-1", "https://sts.cn-north-1.amazonaws.com.cn/"},
        {"AWS_ENDPOINT_URL", "https://store.example.com:9000/x",
            "https://store.example.com:9000/x/"},
        {"AWS_ENDPOINT_URL_STS", "http://127.0.0.1:99", "http://127.0.0.1:99/"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct standin standin = standin_of_pod();
        standin_set(&standin, rows[i].name, rows[i].value);
        standin.script[0] = (struct standin_answer){"POST", rows[i].url, FORM, CADRE_OK, 200, GOOD};
        /* It comes before a profile, and before what the machine has. */
        standin_set(&standin, "AWS_PROFILE", "none");
        assert_found(&standin);
        assert_int_equal(standin.asked, 1);
    }
}

static void answers_without_credentials(void **state)
{
    static const struct {
        int http;
        const char *body, *part;
        cadre_status status;
    } rows[] = {
        {400, "<Error><Code>ExpiredTokenException</Code><Message>hunter2</Message></Error>",
            "role/train\" gives no credentials: ExpiredTokenException (HTTP 400)",
            CADRE_UNAUTHENTICATED},
        {403, "<Error><Code>AccessDenied</Code></Error>", "does the role trust the token",
            CADRE_UNAUTHENTICATED},
        {400, "<Error><Code>IDPCommunicationError</Code></Error>", "which may pass",
            CADRE_UNAVAILABLE},
        {503, "<Error><Code>ServiceUnavailable</Code></Error>", "HTTP 503", CADRE_UNAVAILABLE},
        {404, "<html>hunter2</html>", "HTTP 404", CADRE_UNAUTHENTICATED},
        {400, "<Code>hunter2 1</Code>", "HTTP 400", CADRE_UNAUTHENTICATED},
        {200, "<html>Log in to the network</html>", "other than credentials",
            CADRE_UNAUTHENTICATED},
        {200, "<AccessKeyId>A</AccessKeyId><SecretAccessKey>hunter2</SecretAccessKey>",
            "other than credentials", CADRE_UNAUTHENTICATED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct standin standin = standin_of_pod();
        standin.script[0] = (struct standin_answer){
            "POST", "https://sts.amazonaws.com/", FORM, CADRE_OK, rows[i].http, rows[i].body};
        assert_none(&standin, rows[i].status, rows[i].part);
        assert_int_equal(standin.asked, 1); /* and the machine's own are not taken instead */
    }
    struct standin standin = standin_of_pod(); /* it does not answer */
    assert_none(&standin, CADRE_UNAVAILABLE, "role/train\" gives no credentials: no answer from");
}

static void settings_that_are_wrong(void **state)
{
    char *large = calloc(20002, 1);
    (void)state;
    struct standin standin = standin_of_pod();
    standin_set(&standin, "AWS_ROLE_ARN", NULL);
    assert_none(&standin, CADRE_FAILED_PRECONDITION, "AWS_ROLE_ARN is not");
    standin = standin_of_pod();
    standin_set(&standin, "AWS_ENDPOINT_URL_STS", "http://example.com");
    assert_none(&standin, CADRE_INVALID_ARGUMENT, "is sent over TLS");
    standin_set(&standin, "AWS_ENDPOINT_URL_STS", NULL);
    standin_set(&standin, "AWS_REGION", "evil.example.com/");
    assert_none(&standin, CADRE_INVALID_ARGUMENT, "the region is no name");
    standin = standin_of_pod();
    standin_set(&standin, "AWS_WEB_IDENTITY_TOKEN_FILE", "/nonexistent/token");
    assert_none(&standin, CADRE_FAILED_PRECONDITION,
        "AWS_WEB_IDENTITY_TOKEN_FILE: cannot open /nonexistent/token");
    standin_set(&standin, "AWS_WEB_IDENTITY_TOKEN_FILE", written(" \n"));
    assert_none(&standin, CADRE_INVALID_ARGUMENT, "has no token in it");
    assert_non_null(large);
    memset(large, 'x', 20001);
    standin_set(&standin, "AWS_WEB_IDENTITY_TOKEN_FILE", written(large));
    assert_none(&standin, CADRE_OUT_OF_RANGE, "AWS_WEB_IDENTITY_TOKEN_FILE");
    large[20000] = '\0'; /* the longest, of what is encoded */
    memset(large, ' ', 20000);
    large[0] = large[19999] = 'x';
    standin_set(&standin, "AWS_WEB_IDENTITY_TOKEN_FILE", written(large));
    assert_none(&standin, CADRE_INVALID_ARGUMENT, "are they the right texts?");
    assert_int_equal(standin.asked, 0);
    free(large);
}

/* --- texts of a document --- */

static bool take(const char *text, char *ret_value, size_t room)
{
    bool found = s3_xml_text(text, strlen(text), "Key", ret_value, room);
    assert_true(found || ret_value[0] == '\0');
    return found;
}

static void texts_of_a_document(void **state)
{
    static const char *const wrong[] = {"", "<", "<Key", "<Key>", "<Key>x", "<Key>x<", "<Key>x</",
        "<Key>x</Key", "<Key>x</Kex>", "<Key>x<b/></Key>", "<Key>x&amp;y</Key>",
        "<Key a=''>x</Key>", "<Key>1234567</Key>", "<Keys>x</Keys>", "<aKey>x</aKey>",
        "</Key>x<Key>"};
    char value[7];
    (void)state;
    assert_true(take("<a>\n<<Key>123456</Key><Key>no</Key>", value, sizeof value));
    assert_string_equal(value, "123456");
    assert_true(take("<Key></Key>", value, sizeof value));
    assert_string_equal(value, "");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(take(wrong[i], value, sizeof value));
    }
    assert_false(s3_xml_text("<Key>a\0b</Key>", 14, "Key", value, sizeof value));
}

static void damaged_documents(void **state)
{
    struct prng random = {.state = 7};
    unsigned found = 0;
    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        char text[sizeof GOOD];
        char value[16];
        size_t size =
            prng_uniform(&random, 4) > 0 ? sizeof GOOD - 1 : prng_uniform(&random, sizeof GOOD - 1);
        char *copy = malloc(size + 1); /* an end that sanitizers see */
        assert_non_null(copy);
        memcpy(text, GOOD, sizeof text);
        memcpy(copy, text, size);
        for (unsigned k = 0; k < 3 && size > 0; k++) {
            copy[prng_uniform(&random, size)] = "<>/&A\0"[prng_uniform(&random, 6)];
        }
        found += s3_xml_text(copy, size, "AccessKeyId", value, sizeof value) ? 1 : 0;
        assert_true(strlen(value) < sizeof value);
        free(copy);
    }
    assert_in_range(found, 1, 19999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_exchanged),
        cmocka_unit_test(answers_without_credentials),
        cmocka_unit_test(settings_that_are_wrong),
        cmocka_unit_test(texts_of_a_document),
        cmocka_unit_test(damaged_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
