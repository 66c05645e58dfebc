/* SPDX-License-Identifier: Apache-2.0
 * Which tasks a cluster has, and which of them this process is: cadre/cluster_resolver.h. */
#include <stdlib.h>

#include "documents.h"

static const char two_workers[] = "{\"worker\": [\"a:1\", \"b:1\"], \"ps\": {\"3\": \"c:1\"}}";

static cadre_cluster_spec *spec_of(const char *text)
{
    cadre_cluster_spec *spec;
    OK(cadre_cluster_spec_from_json(text, &spec));
    return spec;
}

/* --- the tasks --- */

/* A cluster is jobs with the addresses of their tasks: a list, or with numbers of their own. */
static void a_cluster_has_jobs_and_tasks(void **state)
{
    (void)state;
    const char *address;
    cadre_cluster_spec *spec = spec_of(two_workers);
    assert_int_equal(cadre_cluster_spec_num_jobs(spec), 2);
    assert_string_equal(cadre_cluster_spec_job(spec, 0), "worker");
    assert_null(cadre_cluster_spec_job(spec, 2));
    assert_int_equal(cadre_cluster_spec_num_tasks(spec, "worker"), 2);
    assert_int_equal(cadre_cluster_spec_task_index(spec, "ps", 0), 3);
    OK(cadre_cluster_spec_task_address(spec, "ps", 3, &address));
    assert_string_equal(address, "c:1");
    REFUSED(cadre_cluster_spec_task_address(spec, "ps", 0, &address), CADRE_NOT_FOUND, "ps");
    cadre_cluster_spec_release(spec);
}

/* The same cluster, put together by a program. */
static void a_cluster_is_put_together(void **state)
{
    (void)state;
    cadre_cluster_spec *spec;
    OK(cadre_cluster_spec_from_json("{}", &spec));
    OK(cadre_cluster_spec_add_task(spec, "worker", 0, "a:1"));
    OK(cadre_cluster_spec_add_task(spec, "worker", 1, "b:1"));
    OK(cadre_cluster_spec_add_task(spec, "ps", 3, "c:1")); /* makes the job, as the first one did */
    assert_int_equal(cadre_cluster_spec_num_jobs(spec), 2);
    REFUSED(cadre_cluster_spec_add_task(spec, "ps", 3, "d:1"), CADRE_ALREADY_EXISTS, "c:1");
    cadre_cluster_spec_release(spec);
}

/* --- questions about a task of a training cluster --- */

static void each_task_has_its_part(void **state)
{
    (void)state;
    bool is_chief;
    uint32_t number;
    const char *leader;
    cadre_cluster_spec *spec = spec_of("{\"chief\": [\"c:1\"], \"worker\": [\"a:1\", \"b:1\"]}");
    OK(cadre_cluster_spec_validate(spec, "worker", 1));
    REFUSED(cadre_cluster_spec_validate(spec, "worker", 2), CADRE_INVALID_ARGUMENT, "index 2");
    OK(cadre_cluster_is_chief(spec, "worker", 0, &is_chief)); /* it were without the chief */
    assert_false(is_chief);
    OK(cadre_cluster_worker_count(spec, "worker", &number));
    assert_int_equal(number, 3);
    OK(cadre_cluster_id_in_cluster(spec, "worker", 1, &number));
    assert_int_equal(number, 2); /* behind the chief, which is 0 */
    OK(cadre_cluster_collective_leader(spec, "worker", 1, &leader));
    assert_string_equal(leader, "/job:chief/replica:0/task:0");
    cadre_cluster_spec_release(spec);
}

/* --- who says which cluster it is --- */

/* TF_CONFIG says the tasks and which one this is; a program may set another one. */
static void tf_config_says(void **state)
{
    (void)state;
    cadre_cluster_resolver *resolver;
    setenv("TF_CONFIG",
        "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"]},"
        " \"task\": {\"type\": \"worker\", \"index\": 0}}",
        1);
    OK(cadre_cluster_resolver_tf_config(NULL, &resolver));
    unsetenv("TF_CONFIG");
    assert_string_equal(cadre_cluster_resolver_task_type(resolver), "worker");
    assert_int_equal(cadre_cluster_resolver_task_id(resolver), 0);
    assert_int_equal(
        cadre_cluster_spec_num_tasks(cadre_cluster_resolver_spec(resolver), "worker"), 2);
    OK(cadre_cluster_resolver_set_task(resolver, "worker", 1));
    assert_int_equal(cadre_cluster_resolver_task_id(resolver), 1);
    cadre_cluster_resolver_release(resolver);
}

/* Slurm says it by the variables that `srun` sets: here of the second of two tasks, each with two
 * of the four GPUs of their host. */
static void slurm_says(void **state)
{
    (void)state;
    static const char *const variables[][2] = {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"},
        {"SLURM_STEP_NODELIST", "node7"}, {"SLURM_STEP_TASKS_PER_NODE", "2"},
        {"SLURM_GPUS_ON_NODE", "4"}};
    const cadre_slurm_options options = {.port_base = 9000};
    const char *address;
    uint32_t first;
    uint32_t count;
    cadre_cluster_resolver *resolver;
    for (int i = 0; i < 5; i++) {
        setenv(variables[i][0], variables[i][1], 1);
    }
    OK(cadre_cluster_resolver_slurm(&options, &resolver));
    for (int i = 0; i < 5; i++) {
        unsetenv(variables[i][0]);
    }
    assert_int_equal(cadre_cluster_resolver_task_id(resolver), 1);
    OK(cadre_cluster_spec_task_address(
        cadre_cluster_resolver_spec(resolver), "worker", 1, &address));
    assert_string_equal(address, "node7:9001");
    cadre_cluster_resolver_gpus(resolver, &first, &count);
    assert_int_equal(first, 2);
    assert_int_equal(count, 2);
    cadre_cluster_resolver_release(resolver);
}

/* A program says it itself, also of several clusters that are one. */
static void a_program_says(void **state)
{
    (void)state;
    cadre_cluster_spec *workers = spec_of("{\"worker\": [\"a:1\", \"b:1\"]}");
    cadre_cluster_spec *servers = spec_of("{\"ps\": [\"c:1\"]}");
    cadre_cluster_resolver *parts[2];
    cadre_cluster_resolver *all;
    OK(cadre_cluster_resolver_simple(workers, "worker", 1, &parts[0]));
    OK(cadre_cluster_resolver_simple(servers, NULL, CADRE_TASK_NONE, &parts[1]));
    const cadre_cluster_resolver *const resolvers[] = {parts[0], parts[1]};
    OK(cadre_cluster_resolver_union(resolvers, 2, &all));
    assert_int_equal(cadre_cluster_spec_num_jobs(cadre_cluster_resolver_spec(all)), 2);
    assert_string_equal(cadre_cluster_resolver_task_type(all), "worker");
    assert_int_equal(cadre_cluster_resolver_task_id(all), 1);
    cadre_cluster_resolver_release(all);
    cadre_cluster_resolver_release(parts[0]);
    cadre_cluster_resolver_release(parts[1]);
    cadre_cluster_spec_release(servers);
    cadre_cluster_spec_release(workers);
}

/* --- the job that runs --- */

/* The strategy that is made next is of that cluster: this one has one task, and waits for no other.
 * While the strategy is open, the job's tasks can be listed; a task that is alone has none. */
static void a_strategy_is_of_a_cluster(void **state)
{
    (void)state;
    cadre_cluster_spec *spec = spec_of("{\"worker\": [\"127.0.0.1:1\"]}");
    cadre_cluster_resolver *resolver;
    cadre_strategy *strategy;
    OK(cadre_init(NULL, NULL));
    OK(cadre_cluster_resolver_simple(spec, "worker", 0, &resolver));
    OK(cadre_cluster_resolver_use(resolver));
    cadre_cluster_resolver_release(resolver);
    cadre_cluster_spec_release(spec);
    OK(cadre_strategy_default(&strategy));
    assert_int_equal(cadre_world_size(), 1);
    OK(cadre_cluster_resolver_cadre(&resolver));
    assert_int_equal(cadre_cluster_spec_num_jobs(cadre_cluster_resolver_spec(resolver)), 0);
    cadre_cluster_resolver_release(resolver);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cluster_has_jobs_and_tasks),
        cmocka_unit_test(a_cluster_is_put_together),
        cmocka_unit_test(each_task_has_its_part),
        cmocka_unit_test(tf_config_says),
        cmocka_unit_test(slurm_says),
        cmocka_unit_test(a_program_says),
        cmocka_unit_test(a_strategy_is_of_a_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
