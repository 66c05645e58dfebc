/* SPDX-License-Identifier: Apache-2.0
 * Resolvers: which task this process is, unions. */
#include <stdlib.h>
#include <string.h>

#include "cadre/cluster_resolver.h"
#include "tests/lib/test.h"
#include "worker/library/cluster/cluster_spec.h"

static const char three[] = "{\"cluster\": {\"ps\": [\"ps0:2222\", \"ps1:2222\"], \"worker\": "
                            "[\"worker0:2222\", \"worker1:2222\", \"worker2:2222\"]}, \"task\": "
                            "{\"type\": \"ps\", \"index\": 0}}";

static cadre_cluster_resolver *config(const char *text)
{
    cadre_cluster_resolver *resolver = NULL;
    if (cadre_cluster_resolver_tf_config(text, &resolver) != CADRE_OK) {
        fail_msg("%s", cadre_error_message());
    }
    return resolver;
}

static void check_address(
    const cadre_cluster_resolver *resolver, const char *type, uint32_t id, const char *wanted)
{
    const char *address = NULL;
    if (cadre_cluster_spec_task_address(
            cadre_cluster_resolver_spec(resolver), type, id, &address) != CADRE_OK) {
        fail_msg("%s", cadre_error_message());
    }
    assert_string_equal(address, wanted);
}

static void a_tf_config_says_who_this_is(void **state)
{
    (void)state;
    cadre_cluster_resolver *resolver = config(three);
    assert_string_equal(cadre_cluster_resolver_task_type(resolver), "ps");
    assert_int_equal(cadre_cluster_resolver_task_id(resolver), 0);
    check_address(resolver, "ps", 0, "ps0:2222");
    check_address(resolver, "worker", 1, "worker1:2222");
    assert_int_equal(cadre_cluster_resolver_set_task(resolver, "worker", 2), CADRE_OK);
    assert_string_equal(cadre_cluster_resolver_task_type(resolver), "worker");
    assert_int_equal(cadre_cluster_resolver_task_id(resolver), 2);
    assert_int_equal(cadre_cluster_resolver_set_task(resolver, NULL, CADRE_TASK_NONE), CADRE_OK);
    assert_null(cadre_cluster_resolver_task_type(resolver));
    assert_int_equal(cadre_cluster_resolver_set_task(NULL, "worker", 2), CADRE_INVALID_ARGUMENT);
    cadre_cluster_resolver_release(resolver);
}

static void the_environment_is_read(void **state)
{
    (void)state;
    cadre_cluster_resolver *resolver;
    unsetenv("TF_CONFIG");
    resolver = config(NULL);
    assert_int_equal(cadre_cluster_spec_num_jobs(cadre_cluster_resolver_spec(resolver)), 0);
    assert_null(cadre_cluster_resolver_task_type(resolver));
    assert_int_equal(cadre_cluster_resolver_task_id(resolver), CADRE_TASK_NONE);
    cadre_cluster_resolver_release(resolver);
    setenv("TF_CONFIG", "{\"task\": {\"type\": \"evaluator\", \"index\": 0}}", 1);
    resolver = config(NULL);
    assert_string_equal(cadre_cluster_resolver_task_type(resolver), "evaluator");
    cadre_cluster_resolver_release(resolver);
    setenv("TF_CONFIG", "{\"task\": ", 1);
    assert_int_equal(cadre_cluster_resolver_tf_config(NULL, &resolver), CADRE_INVALID_ARGUMENT);
    assert_null(resolver);
    unsetenv("TF_CONFIG");
}

static void slurm_says_who_this_is(void **state)
{
    (void)state;
    uint32_t first;
    uint32_t count;
    cadre_cluster_resolver *resolver;
    unsetenv("SLURM_PROCID");
    unsetenv("SLURM_STEP_NUM_TASKS");
    assert_int_equal(cadre_cluster_resolver_slurm(NULL, &resolver), CADRE_FAILED_PRECONDITION);
    assert_null(resolver);
    setenv("SLURM_PROCID", "1", 1);
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    setenv("SLURM_STEP_NODELIST", "n[1-2]", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "1(x2)", 1);
    setenv("SLURM_GPUS_ON_NODE", "4", 1);
    assert_int_equal(cadre_cluster_resolver_slurm(NULL, &resolver), CADRE_OK);
    assert_int_equal(cadre_cluster_resolver_task_id(resolver), 1);
    check_address(resolver, "worker", 1, "n2:8888");
    check_address(resolver, "worker", 0, "n1:8888");
    cadre_cluster_resolver_gpus(resolver, &first, &count);
    assert_int_equal(first, 0);
    assert_int_equal(count, 4);
    cadre_cluster_resolver_release(resolver);
}

static cadre_cluster_resolver *simple(const char *cluster, const char *type, uint32_t id)
{
    cadre_cluster_spec *spec;
    cadre_cluster_resolver *resolver = NULL;
    assert_int_equal(cadre_cluster_spec_from_json(cluster, &spec), CADRE_OK);
    assert_int_equal(cadre_cluster_resolver_simple(spec, type, id, &resolver), CADRE_OK);
    cadre_cluster_spec_release(spec); /* the argument was copied */
    return resolver;
}

static void a_given_one_says_what_it_was_given(void **state)
{
    (void)state;
    uint32_t first;
    uint32_t count;
    cadre_cluster_resolver *resolver = simple("{\"worker\": [\"a:1\", \"b:1\"]}", "worker", 1);
    assert_string_equal(cadre_cluster_resolver_task_type(resolver), "worker");
    assert_int_equal(cadre_cluster_resolver_task_id(resolver), 1);
    check_address(resolver, "worker", 0, "a:1");
    cadre_cluster_resolver_gpus(resolver, &first, &count);
    assert_int_equal(count, 0);
    cadre_cluster_resolver_release(resolver);
    assert_int_equal(
        cadre_cluster_resolver_simple(NULL, NULL, 0, &resolver), CADRE_INVALID_ARGUMENT);
}

struct merging {
    const char *parts[3];
    const char *wanted; /* NULL: an index occurs twice */
};

static void check_union(const struct merging *merging)
{
    const cadre_cluster_resolver *resolvers[3];
    cadre_cluster_resolver *made[3];
    size_t count = 0;
    for (; count < 3 && merging->parts[count] != NULL; count++) {
        made[count] = simple(merging->parts[count], NULL, CADRE_TASK_NONE);
        resolvers[count] = made[count];
    }
    cadre_cluster_resolver *all;
    cadre_status status = cadre_cluster_resolver_union(resolvers, count, &all);
    assert_int_equal(status, merging->wanted == NULL ? CADRE_ALREADY_EXISTS : CADRE_OK);
    if (merging->wanted != NULL) {
        cadre_cluster_spec *wanted;
        assert_int_equal(cadre_cluster_spec_from_json(merging->wanted, &wanted), CADRE_OK);
        assert_true(cluster_spec_equal(cadre_cluster_resolver_spec(all), wanted));
        cadre_cluster_spec_release(wanted);
    }
    cadre_cluster_resolver_release(all);
    while (count > 0) {
        cadre_cluster_resolver_release(made[--count]);
    }
}

static void unions_merge_jobs(void **state)
{
    (void)state;
    static const struct merging cases[] = {
        {{"{\"worker\": [\"a:1\"], \"ps\": [\"p:1\"]}", NULL},
            "{\"worker\": [\"a:1\"], \"ps\": [\"p:1\"]}"},
        {{"{\"worker\": [\"a:1\"]}", "{\"ps\": [\"p:1\"]}"},
            "{\"worker\": [\"a:1\"], \"ps\": [\"p:1\"]}"},
        {{"{\"worker\": [\"w4:1\", \"w5:1\"]}", "{\"worker\": [\"w0:1\", \"w1:1\", \"w2:1\"]}"},
            "{\"worker\": [\"w4:1\", \"w5:1\", \"w0:1\", \"w1:1\", \"w2:1\"]}"},
        {{"{\"worker\": [\"w4:1\", \"w5:1\"]}",
             "{\"worker\": {\"1\": \"w0:1\", \"2\": \"w1:1\", \"3\": \"w2:1\"}}"},
            NULL},
        {{"{\"worker\": [\"w4:1\", \"w5:1\"]}", "{\"worker\": {\"3\": \"w0:1\", \"6\": \"w1:1\"}}"},
            "{\"worker\": {\"0\": \"w4:1\", \"1\": \"w5:1\", \"3\": \"w0:1\", \"6\": \"w1:1\"}}"},
        {{"{\"worker\": {\"3\": \"w0:1\", \"6\": \"w1:1\"}}", "{\"worker\": [\"w4:1\"]}",
             "{\"ps\": []}"},
            "{\"worker\": {\"0\": \"w4:1\", \"3\": \"w0:1\", \"6\": \"w1:1\"}, \"ps\": []}"},
        {{"{\"worker\": {\"3\": \"w0:1\"}}", "{\"worker\": {\"3\": \"w1:1\"}}"}, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_union(&cases[i]);
    }
}

static void unions_take_the_first_that_knows(void **state)
{
    (void)state;
    cadre_cluster_resolver *made[] = {simple("{}", NULL, CADRE_TASK_NONE),
        simple("{\"worker\": [\"a:1\", \"b:1\"]}", "worker", 1),
        simple("{\"ps\": [\"p:1\"]}", "ps", 0)};
    const cadre_cluster_resolver *resolvers[] = {made[0], made[1], made[2]};
    cadre_cluster_resolver *all;
    assert_int_equal(cadre_cluster_resolver_union(resolvers, 3, &all), CADRE_OK);
    for (size_t i = 0; i < 3; i++) {
        cadre_cluster_resolver_release(made[i]); /* the arguments were copied */
    }
    assert_string_equal(cadre_cluster_resolver_task_type(all), "worker");
    assert_int_equal(cadre_cluster_resolver_task_id(all), 1);
    check_address(all, "ps", 0, "p:1");
    cadre_cluster_resolver_release(all);
    assert_int_equal(cadre_cluster_resolver_union(resolvers, 0, &all), CADRE_INVALID_ARGUMENT);
    resolvers[0] = NULL;
    assert_int_equal(cadre_cluster_resolver_union(resolvers, 1, &all), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_cluster_resolver_union(NULL, 1, &all), CADRE_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tf_config_says_who_this_is),
        cmocka_unit_test(the_environment_is_read),
        cmocka_unit_test(slurm_says_who_this_is),
        cmocka_unit_test(a_given_one_says_what_it_was_given),
        cmocka_unit_test(unions_merge_jobs),
        cmocka_unit_test(unions_take_the_first_that_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
