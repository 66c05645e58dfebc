/* SPDX-License-Identifier: Apache-2.0
 * TF_CONFIG documents: valid ones, and other contents of the variable. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "worker/library/cluster/resolver.h"

static void a_whole_document(void **state)
{
    (void)state;
    static const char text[] =
        "{\"cluster\": {\"worker\": [\"w0:1\", \"w1:1\"], \"ps\": {\"4\": \"p4:1\"}},"
        " \"task\": {\"type\": \"worker\", \"index\": 1, \"trial\": \"9\"},"
        " \"rpc_layer\": \"grpc\", \"session_master\": \"m:1\", \"environment\": \"cloud\"}";
    struct tf_config config;
    struct cadre_error error = {0};
    assert_ok(tf_config_parse(text, strlen(text), &config, &error), &error);
    assert_int_equal(cadre_cluster_spec_num_tasks(config.spec, "worker"), 2);
    assert_int_equal(cadre_cluster_spec_task_index(config.spec, "ps", 0), 4);
    assert_string_equal(config.task_type, "worker");
    assert_int_equal(config.task_id, 1);
    tf_config_clear(&config);
}

static void what_is_absent_is_not_known(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}",
        "{\"cluster\": null, \"task\": null, \"rpc_layer\": true}", "{\"cluster\": {}}",
        "{\"task\": {}}", "{\"task\": {\"type\": null, \"index\": null}}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct tf_config config;
        struct cadre_error error = {0};
        assert_ok(tf_config_parse(texts[i], strlen(texts[i]), &config, &error), &error);
        assert_int_equal(cadre_cluster_spec_num_jobs(config.spec), 0);
        assert_null(config.task_type);
        assert_int_equal(config.task_id, CADRE_TASK_NONE);
        tf_config_clear(&config);
    }
}

/* As a shell script or a launcher may write them. */
static void numbers_and_texts_stand_for_each_other(void **state)
{
    (void)state;
    static const char text[] = "{\"task\": {\"type\": 5, \"index\": \"12\"}}";
    struct tf_config config;
    struct cadre_error error = {0};
    assert_ok(tf_config_parse(text, strlen(text), &config, &error), &error);
    assert_string_equal(config.task_type, "5");
    assert_int_equal(config.task_id, 12);
    tf_config_clear(&config);
}

static void bad_documents_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        cadre_status code;
        const char *part;
    } cases[] = {
        {"", CADRE_INVALID_ARGUMENT, "no proper JSON"},
        {"{", CADRE_INVALID_ARGUMENT, "line 1, column"},
        {"not json", CADRE_INVALID_ARGUMENT, "no proper JSON"},
        {"{} {}", CADRE_INVALID_ARGUMENT, "no proper JSON"},
        {"[]", CADRE_INVALID_ARGUMENT, "no JSON object"},
        {"\"text\"", CADRE_INVALID_ARGUMENT, "JSON"},
        {"{\"cluster\": {}, \"cluster\": {}}", CADRE_INVALID_ARGUMENT, "duplicate"},
        {"{\"cluster\": {\"worker\": [], \"worker\": []}}", CADRE_INVALID_ARGUMENT, "duplicate"},
        {"{\"cluster\": []}", CADRE_INVALID_ARGUMENT, "\"cluster\" is no object"},
        {"{\"cluster\": \"host:1\"}", CADRE_INVALID_ARGUMENT, "\"cluster\" is no object"},
        {"{\"task\": [1]}", CADRE_INVALID_ARGUMENT, "\"task\" is no object"},
        {"{\"cluster\": {\"worker\": \"a:1\"}}", CADRE_INVALID_ARGUMENT, "neither a list"},
        {"{\"cluster\": {\"worker\": null}}", CADRE_INVALID_ARGUMENT, "neither a list"},
        {"{\"cluster\": {\"worker\": [7]}}", CADRE_INVALID_ARGUMENT, "task 0 of job 'worker'"},
        {"{\"cluster\": {\"worker\": [\"a:1\", \"\"]}}", CADRE_INVALID_ARGUMENT, "task 1"},
        {"{\"cluster\": {\"worker\": {\"x\": \"a:1\"}}}", CADRE_INVALID_ARGUMENT, "'x'"},
        {"{\"cluster\": {\"worker\": {\"01\": \"a:1\"}}}", CADRE_INVALID_ARGUMENT, "'01'"},
        {"{\"cluster\": {\"worker\": {\"-1\": \"a:1\"}}}", CADRE_INVALID_ARGUMENT, "'-1'"},
        {"{\"cluster\": {\"worker\": {\"4294967295\": \"a:1\"}}}", CADRE_INVALID_ARGUMENT,
            "4294967295"},
        {"{\"cluster\": {\"worker\": {\"99999999999\": \"a:1\"}}}", CADRE_INVALID_ARGUMENT,
            "no index"},
        {"{\"cluster\": {\"worker\": {\"0\": [\"a:1\"]}}}", CADRE_INVALID_ARGUMENT, "no string"},
        {"{\"cluster\": {\"\": [\"a:1\"]}}", CADRE_INVALID_ARGUMENT, "no name"},
        {"{\"task\": {\"index\": -1}}", CADRE_INVALID_ARGUMENT, "no whole number"},
        {"{\"task\": {\"index\": 1.5}}", CADRE_INVALID_ARGUMENT, "no whole number"},
        {"{\"task\": {\"index\": \"one\"}}", CADRE_INVALID_ARGUMENT, "no whole number"},
        {"{\"task\": {\"index\": 4294967295}}", CADRE_INVALID_ARGUMENT, "no whole number"},
        {"{\"task\": {\"index\": {}}}", CADRE_INVALID_ARGUMENT, "no whole number"},
        {"{\"task\": {\"type\": [\"worker\"]}}", CADRE_INVALID_ARGUMENT, "\"type\" is no string"},
        {"{\"task\": {\"type\": \"a\\u0000b\"}}", CADRE_INVALID_ARGUMENT, "no proper JSON"},
        {"{\"task\": {\"type\": \"\xff\"}}", CADRE_INVALID_ARGUMENT, "no proper JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tf_config config;
        struct cadre_error error = {0};
        assert_error(tf_config_parse(cases[i].text, strlen(cases[i].text), &config, &error),
            cases[i].code, &error, cases[i].part);
        tf_config_clear(&config);
    }
}

static void huge_documents_are_refused(void **state)
{
    (void)state;
    size_t bytes = CADRE_CLUSTER_TEXT_BYTES_MAX + 1;
    char *text = malloc(bytes);
    struct tf_config config;
    struct cadre_error error = {0};
    memset(text, '[', bytes);
    assert_error(tf_config_parse(text, bytes, &config, &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "1048577 bytes");
    tf_config_clear(&config);
    assert_error(
        tf_config_parse(text, bytes - 1, &config, &error), CADRE_INVALID_ARGUMENT, &error, "depth");
    tf_config_clear(&config);
    free(text);
}

static void more_tasks_than_a_cluster_may_have(void **state)
{
    (void)state;
    static const char begin[] = "{\"worker\": [\"a:1\"";
    static const char more[] = ",\"a:1\"";
    size_t bytes = sizeof begin + CADRE_CLUSTER_TASKS_MAX * (sizeof more - 1) + 2;
    char *text = malloc(bytes);
    char *end = stpcpy(text, begin);
    for (int i = 0; i < CADRE_CLUSTER_TASKS_MAX; i++) {
        end = stpcpy(end, more);
    }
    stpcpy(end, "]}");
    cadre_cluster_spec *spec;
    struct cadre_error error = {0};
    assert_error(cluster_spec_parse(text, strlen(text), &spec, &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "more than 16384 tasks");
    assert_null(spec);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_document),
        cmocka_unit_test(what_is_absent_is_not_known),
        cmocka_unit_test(numbers_and_texts_stand_for_each_other),
        cmocka_unit_test(bad_documents_are_refused),
        cmocka_unit_test(huge_documents_are_refused),
        cmocka_unit_test(more_tasks_than_a_cluster_may_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
