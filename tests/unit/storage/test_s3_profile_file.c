/* SPDX-License-Identifier: Apache-2.0
 * Profiles in ini files: what Amazon's tools write and people change, and hostile ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/pure/prng.h"
#include "common/storage/s3/profile_file.h"
#include "tests/lib/test.h"
#include "tests/unit/storage/s3_standin.h"

static const char credentials[] = "# written by hand\n"
                                  "[default]\n"
                                  "aws_access_key_id = AKIDEFAULT\n"
                                  "aws_secret_access_key=secret/with+=signs\r\n"
                                  "\n"
                                  "; another\n"
                                  "[ work ] # of the team\n"
                                  "AWS_Access_Key_Id\t=  AKIWORK   \n"
                                  "aws_secret_access_key = a#b;c ; what is behind\n"
                                  "region =\n"
                                  "[default]\n"
                                  "aws_access_key_id = AKISECOND\n"
                                  "[empty]\n";

static const char config[] = "[default]\n"
                             "region = eu-west-1\n"
                             "s3 =\n"
                             "    region = no\n"
                             "    max_concurrent_requests = 20\n"
                             "output = json\n"
                             "[profile work]\n"
                             "  region = eu-central-1\n"
                             "  endpoint_url = https://minio:9000\n"
                             "[profile   spaced name ]\n"
                             "region = eu-north-1\n"
                             "[work]\n"
                             "region = not-this\n"
                             "[sso-session work]\n"
                             "region = nor-this\n"
                             "[profile \"quoted name\"]\n"
                             "region = ap-south-1\n"
                             "[profile 'single']\n"
                             "region = ap-east-1\n"
                             "[profile \"]\n"
                             "region = nor-this\n"
                             "[services minio]\n"
                             "dynamodb =\n"
                             "  endpoint_url = http://not-this\n"
                             "s3 = \n"
                             "  # ours\n"
                             "  endpoint_url = http://minio:9001\n"
                             "endpoint_url = http://nor-this\n"
                             "[services none]\n"
                             "s3 =\n"
                             "[profilework]\n"
                             "region = nor-this";

static const char *value_of(
    const char *text, enum s3_profile_kind kind, const char *profile, const char *name)
{
    static char copy[64];
    struct s3_profile_value value;
    struct cadre_error error;
    assert_ok(
        s3_profile_find(text, strlen(text), kind, profile, name, &value, NULL, &error), &error);
    if (value.text == NULL) {
        return NULL;
    }
    snprintf(copy, sizeof copy, "%.*s", (int)value.bytes, value.text);
    return copy;
}

static void a_file_of_credentials(void **state)
{
    const enum s3_profile_kind kind = S3_PROFILE_CREDENTIALS;
    (void)state;
    assert_string_equal(value_of(credentials, kind, "default", "aws_access_key_id"), "AKISECOND");
    assert_string_equal(
        value_of(credentials, kind, "default", "aws_secret_access_key"), "secret/with+=signs");
    assert_string_equal(value_of(credentials, kind, "work", "aws_access_key_id"), "AKIWORK");
    assert_string_equal(value_of(credentials, kind, "work", "aws_secret_access_key"), "a#b;c");
    assert_string_equal(value_of(credentials, kind, "work", "region"), "");
    assert_null(value_of(credentials, kind, "work", "aws_session_token"));
    assert_null(value_of(credentials, kind, "empty", "region"));
    assert_null(value_of(credentials, kind, "Work", "region"));
    assert_null(value_of("", kind, "default", "region"));
    assert_null(value_of("\n\n  \n#x", kind, "default", "region"));
}

static void a_file_of_settings(void **state)
{
    const enum s3_profile_kind kind = S3_PROFILE_CONFIG;
    (void)state;
    assert_string_equal(value_of(config, kind, "default", "region"), "eu-west-1");
    assert_string_equal(value_of(config, kind, "work", "region"), "eu-central-1");
    assert_string_equal(value_of(config, kind, "work", "endpoint_url"), "https://minio:9000");
    assert_string_equal(value_of(config, kind, "spaced name", "region"), "eu-north-1");
    assert_string_equal(value_of(config, kind, "quoted name", "region"), "ap-south-1");
    assert_string_equal(value_of(config, kind, "single", "region"), "ap-east-1");
    assert_string_equal(value_of(config, kind, "default", "s3"), "");
    assert_null(value_of(config, kind, "default", "max_concurrent_requests"));
    assert_null(value_of(config, kind, "", "region"));
}

static void services_of_settings(void **state)
{
    const enum s3_profile_kind kind = S3_PROFILE_SERVICES;
    (void)state;
    assert_string_equal(value_of(config, kind, "minio", "endpoint_url"), "http://minio:9001");
    assert_null(value_of(config, kind, "none", "endpoint_url"));
    assert_null(value_of(config, kind, "work", "region"));
    assert_null(value_of(config, kind, "minio", "s3"));
}

static void the_endpoint_of_a_profile_with_services(void **state)
{
    struct standin standin = {.now_us = 0};
    const struct storage_variables variables = standin_variables(&standin);
    struct cadre_error error;
    char value[64];
    char path[TEST_PATH_BYTES];
    (void)state;
    standin_set(&standin, "AWS_CONFIG_FILE", test_path(path, test_temp_dir(), "services"));
    test_write(path, "[default]\nservices = a\nendpoint_url = http://b\n[services a]\n"
                     "s3 =\n  endpoint_url = http://a\n");
    assert_ok(s3_profile_setting(&variables, "endpoint_url", value, sizeof value, &error), &error);
    assert_string_equal(value, "http://a");
    test_write(path, "[default]\nservices = a\nendpoint_url = http://b\n[services a]\ns3 =\n");
    assert_ok(s3_profile_setting(&variables, "endpoint_url", value, sizeof value, &error), &error);
    assert_string_equal(value, "http://b");
    test_write(path, "[default]\nservices = c\nendpoint_url = http://b\n");
    assert_error(s3_profile_setting(&variables, "endpoint_url", value, sizeof value, &error),
        CADRE_INVALID_ARGUMENT, &error, "there is no [services c]");
}

static void whether_there_is_such_a_profile(void **state)
{
    struct s3_profile_value value;
    struct cadre_error error;
    bool has = false;
    (void)state;
    assert_ok(s3_profile_find(credentials, strlen(credentials), S3_PROFILE_CREDENTIALS, "empty",
                  "region", &value, &has, &error),
        &error);
    assert_true(has);
    assert_ok(s3_profile_find(credentials, strlen(credentials), S3_PROFILE_CREDENTIALS, "none",
                  "region", &value, &has, &error),
        &error);
    assert_false(has);
}

static void files_that_are_none(void **state)
{
    static const struct {
        const char *text;
        size_t size; /* 0: of the text */
        const char *part;
    } rows[] = {
        {"region = x\n", 0, "line 1 is not one of an ini file: it is above the first \"[\""},
        {"[default\nregion = x", 0, "line 1 is not one of an ini file: a \"]\" is missing"},
        {"[default] region = x", 0, "there is more behind"},
        {"[default]\n\nsecret", 0, "line 3 is not one of an ini file: a \"=\" is missing"},
        {"[default]\n= secret", 0, "the name before \"=\" is missing"},
        {"[default]\na = secret\0b\n", 22, "line 2 is not one of an ini file: it has a zero byte"},
        {"\xff\xfe[\0d\0", 6, "a zero byte"},
        {"{\"a\": 1}", 0, "it is above the first"},
    };
    struct s3_profile_value value;
    struct cadre_error error;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size = rows[i].size > 0 ? rows[i].size : strlen(rows[i].text);
        assert_error(s3_profile_find(rows[i].text, size, S3_PROFILE_CREDENTIALS, "default",
                         "region", &value, NULL, &error),
            CADRE_INVALID_ARGUMENT, &error, rows[i].part);
        assert_null(strstr(error.text, "secret"));
    }
}

/* Whatever the bytes are, a value lies within the text. */
static void damaged_files(void **state)
{
    static const char bytes[] = "[]=#; \t\r\n\0ax";
    struct prng random = {.state = 3};
    size_t accepted = 0;
    (void)state;
    for (int turn = 0; turn < 20000; turn++) {
        bool is_config = prng_chance(&random, 1, 2);
        const char *sample = is_config ? config : credentials;
        size_t size = 1 + prng_uniform(&random, strlen(sample));
        char *text = malloc(size); /* of this size, so that a sanitizer sees what is read behind */
        struct s3_profile_value value;
        struct cadre_error error;
        assert_non_null(text);
        memcpy(text, sample, size);
        for (uint64_t left = prng_uniform(&random, 4); left > 0; left--) {
            text[prng_uniform(&random, size)] = bytes[prng_uniform(&random, sizeof bytes - 1)];
        }
        cadre_status status =
            s3_profile_find(text, size, is_config ? S3_PROFILE_CONFIG : S3_PROFILE_CREDENTIALS,
                "default", "region", &value, NULL, &error);
        if (status == CADRE_OK && value.text != NULL) {
            accepted++;
            assert_true(value.text >= text && value.text + value.bytes <= text + size);
        }
        free(text);
    }
    assert_in_range(accepted, 1, 19999);
}

static void settings_of_the_profile_that_is_used(void **state)
{
    struct standin standin = {.now_us = 0};
    const struct storage_variables variables = standin_variables(&standin);
    struct cadre_error error;
    char value[16];
    char path[TEST_PATH_BYTES], folder[TEST_PATH_BYTES];
    const char *home = test_temp_dir();
    (void)state;
    assert_ok(s3_profile_setting(&variables, "region", value, sizeof value, &error), &error);
    assert_string_equal(value, "");
    standin_set(&standin, "HOME", home);
    assert_ok(s3_profile_setting(&variables, "region", value, sizeof value, &error), &error);
    assert_string_equal(value, "");
    assert_int_equal(mkdir(test_path(folder, home, ".aws"), 0700), 0);
    test_write(test_path(path, folder, "config"), config);
    assert_ok(s3_profile_setting(&variables, "region", value, sizeof value, &error), &error);
    assert_string_equal(value, "eu-west-1");
    standin_set(&standin, "AWS_DEFAULT_PROFILE", "work");
    assert_ok(s3_profile_setting(&variables, "region", value, sizeof value, &error), &error);
    assert_string_equal(value, "eu-central-1");
    standin_set(&standin, "AWS_PROFILE", "other");
    assert_ok(s3_profile_setting(&variables, "region", value, sizeof value, &error), &error);
    assert_string_equal(value, "");
    /* From the other file, where config sets nothing. */
    test_write(test_path(path, folder, "credentials"), "[other]\nregion = eu-south-1\n");
    assert_ok(s3_profile_setting(&variables, "region", value, sizeof value, &error), &error);
    assert_string_equal(value, "eu-south-1");
    standin_set(&standin, "AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    assert_ok(s3_profile_setting(&variables, "region", value, sizeof value, &error), &error);
    assert_string_equal(value, "");
    test_write(test_path(path, home, "mine"), "[profile other]\nregion = 0123456789abcdef\n");
    standin_set(&standin, "AWS_CONFIG_FILE", "~/mine");
    assert_error(s3_profile_setting(&variables, "region", value, sizeof value, &error),
        CADRE_INVALID_ARGUMENT, &error, "mine: region has 16 bytes, more than 15");
    test_write(path, "[profile other\n");
    assert_error(s3_profile_setting(&variables, "region", value, sizeof value, &error),
        CADRE_INVALID_ARGUMENT, &error, "mine: line 1 is not one of an ini file");
    standin_set(&standin, "AWS_CONFIG_FILE", home);
    assert_error(s3_profile_setting(&variables, "region", value, sizeof value, &error),
        CADRE_INVALID_ARGUMENT, &error, "a folder");
}

static void a_file_that_is_too_large(void **state)
{
    struct standin standin = {.now_us = 0};
    const struct storage_variables variables = standin_variables(&standin);
    struct cadre_error error;
    char value[16];
    char path[TEST_PATH_BYTES];
    char *text = malloc(S3_PROFILE_FILE_BYTES_MAX + 2);
    (void)state;
    assert_non_null(text);
    memset(text, '#', S3_PROFILE_FILE_BYTES_MAX + 1);
    text[S3_PROFILE_FILE_BYTES_MAX + 1] = '\0';
    test_write(test_path(path, test_temp_dir(), "config"), text);
    free(text);
    standin_set(&standin, "AWS_CONFIG_FILE", path);
    assert_error(s3_profile_setting(&variables, "region", value, sizeof value, &error),
        CADRE_OUT_OF_RANGE, &error, "is it the right file?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_credentials),
        cmocka_unit_test(a_file_of_settings),
        cmocka_unit_test(services_of_settings),
        cmocka_unit_test(the_endpoint_of_a_profile_with_services),
        cmocka_unit_test(whether_there_is_such_a_profile),
        cmocka_unit_test(files_that_are_none),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(settings_of_the_profile_that_is_used),
        cmocka_unit_test(a_file_that_is_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
