/* SPDX-License-Identifier: Apache-2.0
 * Specs as they are built, and the rules of a training cluster. */
#include <stdio.h>
#include <string.h>

#include "cadre/cluster_resolver.h"
#include "tests/lib/test.h"
#include "worker/library/cluster/cluster_spec.h"

#define assert_refused(call, code, part)                                                           \
    do {                                                                                           \
        assert_int_equal((call), (code));                                                          \
        if (strstr(cadre_error_message(), (part)) == NULL) {                                       \
            fail_msg("'%s' is not in: %s", (part), cadre_error_message());                         \
        }                                                                                          \
    } while (0)

static cadre_cluster_spec *spec_of(const char *json)
{
    cadre_cluster_spec *spec = NULL;
    if (cadre_cluster_spec_from_json(json, &spec) != CADRE_OK) {
        fail_msg("%s: %s", json, cadre_error_message());
    }
    return spec;
}

static void a_spec_is_built_task_by_task(void **state)
{
    (void)state;
    cadre_cluster_spec *spec;
    const char *address;
    assert_int_equal(cadre_cluster_spec_from_json("{}", &spec), CADRE_OK);
    assert_int_equal(cadre_cluster_spec_num_jobs(spec), 0);
    assert_int_equal(cadre_cluster_spec_add_task(spec, "worker", 0, "a:1"), CADRE_OK);
    assert_int_equal(cadre_cluster_spec_add_task(spec, "worker", 1, "b:1"), CADRE_OK);
    assert_int_equal(cadre_cluster_spec_add_task(spec, "ps", 7, "c:1"), CADRE_OK);
    assert_int_equal(cadre_cluster_spec_add_task(spec, "ps", 3, "d:1"), CADRE_OK);
    assert_int_equal(cadre_cluster_spec_num_jobs(spec), 2);
    assert_string_equal(cadre_cluster_spec_job(spec, 1), "ps");
    assert_null(cadre_cluster_spec_job(spec, 2));
    assert_int_equal(cadre_cluster_spec_num_tasks(spec, "worker"), 2);
    assert_int_equal(cadre_cluster_spec_num_tasks(spec, "absent"), 0);
    assert_int_equal(cadre_cluster_spec_task_index(spec, "ps", 0), 3);
    assert_int_equal(cadre_cluster_spec_task_index(spec, "ps", 1), 7);
    assert_int_equal(cadre_cluster_spec_task_index(spec, "ps", 2), CADRE_TASK_NONE);
    assert_int_equal(cadre_cluster_spec_task_address(spec, "ps", 7, &address), CADRE_OK);
    assert_string_equal(address, "c:1");
    assert_refused(
        cadre_cluster_spec_task_address(spec, "ps", 0, &address), CADRE_NOT_FOUND, "index 0");
    assert_null(address);
    assert_refused(
        cadre_cluster_spec_task_address(spec, "x", 0, &address), CADRE_NOT_FOUND, "no job 'x'");
    cadre_cluster_spec_release(spec);
}

static void what_does_not_fit_changes_nothing(void **state)
{
    (void)state;
    static char long_name[CADRE_CLUSTER_NAME_BYTES + 1];
    static char long_address[CADRE_CLUSTER_ADDRESS_BYTES + 1];
    memset(long_name, 'n', sizeof long_name - 1);
    memset(long_address, '1', sizeof long_address - 1);
    cadre_cluster_spec *spec = spec_of("{\"worker\": [\"a:1\"]}");
    cadre_cluster_spec *same = spec_of("{\"worker\": {\"0\": \"a:1\"}}");
    assert_refused(
        cadre_cluster_spec_add_task(spec, "ps", 0, "b 1"), CADRE_INVALID_ARGUMENT, "'b 1'");
    assert_refused(
        cadre_cluster_spec_add_task(spec, "ps", 0, NULL), CADRE_INVALID_ARGUMENT, "address NULL");
    assert_refused(cadre_cluster_spec_add_task(spec, "worker", 0, "b:1"), CADRE_ALREADY_EXISTS,
        "index 0, a:1 and b:1");
    assert_refused(
        cadre_cluster_spec_add_task(spec, "ps", 0, ""), CADRE_INVALID_ARGUMENT, "HOST:PORT");
    assert_refused(cadre_cluster_spec_add_task(spec, "ps", 0, long_address), CADRE_INVALID_ARGUMENT,
        "HOST:PORT");
    assert_refused(cadre_cluster_spec_add_task(spec, "ps", CADRE_TASK_NONE, "b:1"),
        CADRE_INVALID_ARGUMENT, "HOST:PORT");
    assert_refused(
        cadre_cluster_spec_add_task(spec, "", 0, "b:1"), CADRE_INVALID_ARGUMENT, "no name");
    assert_refused(
        cadre_cluster_spec_add_task(spec, long_name, 0, "b:1"), CADRE_INVALID_ARGUMENT, "no name");
    assert_refused(
        cadre_cluster_spec_add_task(NULL, "ps", 0, "b:1"), CADRE_INVALID_ARGUMENT, "spec NULL");
    assert_true(cluster_spec_equal(spec, same));
    cadre_cluster_spec_release(spec);
    cadre_cluster_spec_release(same);
}

static void there_is_a_limit_to_jobs_and_tasks(void **state)
{
    (void)state;
    cadre_cluster_spec *spec;
    char name[16];
    assert_int_equal(cadre_cluster_spec_from_json("{}", &spec), CADRE_OK);
    for (int i = 0; i < CADRE_CLUSTER_JOBS_MAX; i++) {
        snprintf(name, sizeof name, "job%d", i);
        assert_int_equal(cadre_cluster_spec_add_task(spec, name, 0, "a:1"), CADRE_OK);
    }
    assert_refused(
        cadre_cluster_spec_add_task(spec, "more", 0, "a:1"), CADRE_RESOURCE_EXHAUSTED, "'more'");
    for (uint32_t i = 1; i <= CADRE_CLUSTER_TASKS_MAX - CADRE_CLUSTER_JOBS_MAX; i++) {
        assert_int_equal(cadre_cluster_spec_add_task(spec, "job1", 2 * i, "a:1"), CADRE_OK);
    }
    assert_refused(
        cadre_cluster_spec_add_task(spec, "job2", 1, "a:1"), CADRE_RESOURCE_EXHAUSTED, "16384");
    cadre_cluster_spec_release(spec);
}

static void equality_is_of_tasks_not_of_order(void **state)
{
    (void)state;
    static const char *const others[] = {"{}", "{\"ps\": [\"p:1\"]}",
        "{\"ps\": [\"p:1\"], \"worker\": [\"a:1\"]}",
        "{\"ps\": [\"p:1\"], \"worker\": [\"a:1\", \"b:2\"]}",
        "{\"ps\": [\"p:1\"], \"worker\": {\"0\": \"a:1\", \"2\": \"b:1\"}}",
        "{\"p\": [\"p:1\"], \"worker\": [\"a:1\", \"b:1\"]}"};
    cadre_cluster_spec *one = spec_of("{\"worker\": [\"a:1\", \"b:1\"], \"ps\": [\"p:1\"]}");
    cadre_cluster_spec *two =
        spec_of("{\"ps\": [\"p:1\"], \"worker\": {\"1\": \"b:1\", \"0\": \"a:1\"}}");
    assert_true(cluster_spec_equal(one, two));
    assert_false(cluster_spec_equal(one, NULL));
    assert_true(cluster_spec_equal(NULL, NULL));
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        cadre_cluster_spec *other = spec_of(others[i]);
        assert_false(cluster_spec_equal(one, other));
        assert_false(cluster_spec_equal(other, one));
        cadre_cluster_spec_release(other);
    }
    cadre_cluster_spec_release(one);
    cadre_cluster_spec_release(two);
}

/* --- questions --- */

static const char large[] = "{\"chief\": [\"h:1\"], \"worker\": [\"h:2\", \"h:3\"], \"ps\": "
                            "[\"h:4\", \"h:5\"], \"evaluator\": [\"h:6\"]}";
static const char small[] = "{\"worker\": [\"h:2\", \"h:3\"]}";

struct answer {
    const char *cluster;
    const char *type;
    uint32_t id;
    int is_chief; /* -1: refused, as below */
    int count;
    int id_in_cluster;
    const char *leader; /* NULL: refused */
};

static void check_answer(const struct answer *wanted)
{
    cadre_cluster_spec *spec = spec_of(wanted->cluster);
    bool is_chief;
    uint32_t number;
    const char *leader;
    cadre_status status = cadre_cluster_is_chief(spec, wanted->type, wanted->id, &is_chief);
    assert_int_equal(status, wanted->is_chief < 0 ? CADRE_INVALID_ARGUMENT : CADRE_OK);
    assert_true(wanted->is_chief < 0 || is_chief == (wanted->is_chief == 1));
    status = cadre_cluster_worker_count(spec, wanted->type, &number);
    assert_int_equal(status, wanted->count < 0 ? CADRE_INVALID_ARGUMENT : CADRE_OK);
    assert_true(wanted->count < 0 || number == (uint32_t)wanted->count);
    status = cadre_cluster_id_in_cluster(spec, wanted->type, wanted->id, &number);
    assert_int_equal(status, wanted->id_in_cluster < 0 ? CADRE_INVALID_ARGUMENT : CADRE_OK);
    assert_true(wanted->id_in_cluster < 0 || number == (uint32_t)wanted->id_in_cluster);
    status = cadre_cluster_collective_leader(spec, wanted->type, wanted->id, &leader);
    assert_int_equal(status, wanted->leader == NULL ? CADRE_INVALID_ARGUMENT : CADRE_OK);
    assert_true(wanted->leader == NULL || strcmp(leader, wanted->leader) == 0);
    cadre_cluster_spec_release(spec);
}

static void each_task_has_its_part(void **state)
{
    (void)state;
    static const char chief[] = "/job:chief/replica:0/task:0";
    static const char worker[] = "/job:worker/replica:0/task:0";
    static const struct answer answers[] = {
        {large, "chief", 0, 1, 3, 0, chief},
        {large, "worker", 0, 0, 3, 1, chief},
        {large, "worker", 1, 0, 3, 2, chief},
        {large, "worker", 2, -1, 3, -1, NULL},
        {large, "ps", 0, 0, -1, -1, chief},
        {large, "evaluator", 0, 1, 1, 0, ""},
        {large, "evaluator", 1, -1, 1, -1, NULL},
        {small, "worker", 0, 1, 2, 0, worker},
        {small, "worker", 1, 0, 2, 1, worker},
        {small, "chief", 0, -1, -1, -1, NULL},
        {small, "evaluator", 0, 1, 1, 0, ""},
        {small, "master", 0, -1, -1, -1, NULL},
        {small, "", 0, 0, -1, -1, worker},
        {small, NULL, 0, 0, -1, -1, worker},
        {"{}", "worker", 0, -1, -1, -1, ""},
        {"{\"worker\": []}", "worker", 0, -1, -1, -1, NULL},
        {"{\"worker\": {\"5\": \"h:1\"}}", "worker", 5, -1, 1, -1, NULL},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        check_answer(&answers[i]);
    }
}

static void refusals_say_why(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        const char *type;
        uint32_t id;
        const char *part;
    } cases[] = {
        {"{\"chief\": [\"a:1\", \"b:1\"]}", "chief", 0, "2 tasks in its job 'chief'"},
        {"{\"evaluator\": [\"a:1\", \"b:1\"]}", NULL, 0, "2 tasks in its job 'evaluator'"},
        {"{\"master\": [\"a:1\"], \"worker\": [\"b:1\"]}", "worker", 0, "a job 'master'"},
        {small, "boss", 0, "'boss' is no type of a task"},
        {small, "ps", 0, "type 'ps', and the cluster has no such job"},
        {small, "worker", 2, "the index 2 of job 'worker', which has 2 tasks; give 0 to 1"},
        {small, "worker", CADRE_TASK_NONE, "the index -1 of job 'worker'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_cluster_spec *spec = spec_of(cases[i].cluster);
        assert_refused(cadre_cluster_spec_validate(spec, cases[i].type, cases[i].id),
            CADRE_INVALID_ARGUMENT, cases[i].part);
        cadre_cluster_spec_release(spec);
    }
    assert_refused(
        cadre_cluster_spec_validate(NULL, "worker", 0), CADRE_INVALID_ARGUMENT, "spec NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_is_built_task_by_task),
        cmocka_unit_test(what_does_not_fit_changes_nothing),
        cmocka_unit_test(there_is_a_limit_to_jobs_and_tasks),
        cmocka_unit_test(equality_is_of_tasks_not_of_order),
        cmocka_unit_test(each_task_has_its_part),
        cmocka_unit_test(refusals_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
