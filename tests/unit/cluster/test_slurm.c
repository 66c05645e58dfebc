/* SPDX-License-Identifier: Apache-2.0
 * Slurm's lists and variables. */
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "worker/library/cluster/slurm.h"

static void check_hosts(const char *text, const char *wanted)
{
    struct slurm_hosts hosts;
    struct cadre_error error = {0};
    char joined[1024] = "";
    char *end = joined;
    assert_ok(slurm_hosts_expand(text, &hosts, &error), &error);
    for (size_t i = 0; i < hosts.count; i++) {
        end = stpcpy(stpcpy(end, i == 0 ? "" : " "), hosts.names[i]);
    }
    assert_string_equal(joined, wanted);
    slurm_hosts_clear(&hosts);
}

static void lists_of_hosts_are_expanded(void **state)
{
    (void)state;
    check_hosts("n[1-2],m5,o[3-4,6,7-9]", "n1 n2 m5 o3 o4 o6 o7 o8 o9");
    check_hosts("node", "node");
    check_hosts("gpu-1.cluster_a", "gpu-1.cluster_a");
    check_hosts("n[08-11]", "n08 n09 n10 n11");
    check_hosts("n[8-11]", "n8 n9 n10 n11");
    check_hosts("n[001,3]", "n001 n3");
    check_hosts("n[1]x", "n1x");
    check_hosts("r[0-1]n[1-2]", "r0n1 r0n2 r1n1 r1n2");
    check_hosts("[1-3]", "1 2 3");
    check_hosts("n[5-5]", "n5");
    check_hosts("a,a", "a a");
}

static void bad_lists_of_hosts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        cadre_status code;
        const char *part;
    } cases[] = {
        {"", CADRE_INVALID_ARGUMENT, "a name is expected here"},
        {",", CADRE_INVALID_ARGUMENT, "byte 0"},
        {"a,", CADRE_INVALID_ARGUMENT, "byte 2"},
        {"a,,b", CADRE_INVALID_ARGUMENT, "byte 2"},
        {"a b", CADRE_INVALID_ARGUMENT, "this byte is not"},
        {"a]", CADRE_INVALID_ARGUMENT, "this byte is not"},
        {"n[1-2", CADRE_INVALID_ARGUMENT, "not closed"},
        {"n[", CADRE_INVALID_ARGUMENT, "not closed"},
        {"n[]", CADRE_INVALID_ARGUMENT, "a number"},
        {"n[1,]", CADRE_INVALID_ARGUMENT, "a number"},
        {"n[1-]", CADRE_INVALID_ARGUMENT, "a number"},
        {"n[-1]", CADRE_INVALID_ARGUMENT, "a number"},
        {"n[a-b]", CADRE_INVALID_ARGUMENT, "a number"},
        {"n[1-2-3]", CADRE_INVALID_ARGUMENT, "a comma"},
        {"n[[1]]", CADRE_INVALID_ARGUMENT, "a number"},
        {"n[2-1]", CADRE_INVALID_ARGUMENT, "backwards"},
        {"n[1234567890]", CADRE_INVALID_ARGUMENT, "too long"},
        {"n[0-999999999]", CADRE_RESOURCE_EXHAUSTED, "16384"},
        {"n[0-99][0-99][0-99]", CADRE_RESOURCE_EXHAUSTED, "16384"},
        {"n[1-2]\xff", CADRE_INVALID_ARGUMENT, "this byte is not"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slurm_hosts hosts;
        struct cadre_error error = {0};
        assert_error(slurm_hosts_expand(cases[i].text, &hosts, &error), cases[i].code, &error,
            cases[i].part);
        slurm_hosts_clear(&hosts);
    }
}

static void long_names_and_lists_are_refused(void **state)
{
    (void)state;
    char name[400];
    char brackets[3 * 300 + 1];
    struct slurm_hosts hosts;
    struct cadre_error error = {0};
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_error(
        slurm_hosts_expand(name, &hosts, &error), CADRE_INVALID_ARGUMENT, &error, "too long");
    slurm_hosts_clear(&hosts);
    for (size_t i = 0; i < 300; i++) {
        memcpy(brackets + 3 * i, "[1]", 4);
    }
    assert_error(
        slurm_hosts_expand(brackets, &hosts, &error), CADRE_INVALID_ARGUMENT, &error, "too long");
    slurm_hosts_clear(&hosts);
    char *text = calloc(CADRE_CLUSTER_TEXT_BYTES_MAX + 2, 1);
    memset(text, 'n', CADRE_CLUSTER_TEXT_BYTES_MAX + 1);
    assert_error(
        slurm_hosts_expand(text, &hosts, &error), CADRE_RESOURCE_EXHAUSTED, &error, "longer than");
    slurm_hosts_clear(&hosts);
    free(text);
}

static void counts_are_expanded(void **state)
{
    (void)state;
    static const uint32_t wanted[] = {2, 2, 2, 1, 16384};
    static const char *const bad[] = {"", "0", "-1", "a", "2,", ",2", "2(x0)", "2(x)", "2(x2",
        "2(2)", "2(x2)3", "2 ", "16385", "99999999999999999999", "1(x16385)", "1(x16384),1"};
    uint32_t *counts;
    size_t count;
    struct cadre_error error = {0};
    assert_ok(slurm_counts_expand("2(x3),1,16384", &counts, &count, &error), &error);
    assert_int_equal(count, 5);
    assert_memory_equal(counts, wanted, sizeof wanted);
    free(counts);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_error(slurm_counts_expand(bad[i], &counts, &count, &error), CADRE_INVALID_ARGUMENT,
            &error, "write them as in 2(x3),1");
        free(counts);
    }
}

static const struct slurm_variables five = {
    .rank = "3", .tasks = "5", .hosts = "n[1-3]", .per_host = "2(x2),1"};

static const char *address_of(const struct slurm_task *place, const char *job, uint32_t index)
{
    const struct cluster_job *found = cluster_spec_find(place->spec, job);
    return found == NULL ? NULL : cluster_job_address(found, index);
}

static void ranks_fill_one_host_after_the_other(void **state)
{
    (void)state;
    static const char *const wanted[] = {"n1:8888", "n1:8889", "n2:8888", "n2:8889", "n3:8888"};
    struct slurm_task place;
    struct cadre_error error = {0};
    cadre_slurm_options options = {.gpus_per_node = 4};
    assert_ok(slurm_resolve(&five, &options, &place, &error), &error);
    for (uint32_t i = 0; i < 5; i++) {
        assert_string_equal(address_of(&place, "worker", i), wanted[i]);
    }
    assert_string_equal(place.task_type, "worker");
    assert_int_equal(place.task_id, 3);
    assert_int_equal(place.gpus, 2);
    assert_int_equal(place.gpu_first, 2);
    cadre_cluster_spec_release(place.spec);
}

static void jobs_take_the_ranks_in_order(void **state)
{
    (void)state;
    static const cadre_slurm_job jobs[] = {{"ps", 1}, {"chief", 0}, {"worker", 4}};
    struct slurm_task place;
    struct cadre_error error = {0};
    cadre_slurm_options options = {.jobs = jobs, .job_count = 3, .port_base = 40000};
    assert_ok(slurm_resolve(&five, &options, &place, &error), &error);
    assert_string_equal(address_of(&place, "ps", 0), "n1:40000");
    assert_string_equal(address_of(&place, "worker", 0), "n1:40001");
    assert_string_equal(address_of(&place, "worker", 3), "n3:40000");
    assert_null(cluster_spec_find(place.spec, "chief"));
    assert_string_equal(place.task_type, "worker");
    assert_int_equal(place.task_id, 2);
    assert_int_equal(place.gpus, 0);
    cadre_cluster_spec_release(place.spec);
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    static const cadre_slurm_job four[] = {{"worker", 4}};
    static const cadre_slurm_job nameless[] = {{NULL, 5}};
    static const struct {
        struct slurm_variables variables;
        cadre_slurm_options options;
        cadre_status code;
        const char *part;
    } cases[] = {
        {{.tasks = "5", .hosts = "n[1-3]", .per_host = "2(x2),1"}, {0}, CADRE_FAILED_PRECONDITION,
            "SLURM_PROCID is not set"},
        {{.rank = "0", .hosts = "n", .per_host = "1"}, {0}, CADRE_FAILED_PRECONDITION,
            "SLURM_NTASKS"},
        {{.rank = "0", .tasks = "1", .per_host = "1"}, {0}, CADRE_FAILED_PRECONDITION, "NODELIST"},
        {{.rank = "0", .tasks = "1", .hosts = "n"}, {0}, CADRE_FAILED_PRECONDITION,
            "TASKS_PER_NODE"},
        {{.rank = "5", .tasks = "5", .hosts = "n", .per_host = "5"}, {0}, CADRE_INVALID_ARGUMENT,
            "SLURM_PROCID is 5"},
        {{.rank = "-1", .tasks = "5", .hosts = "n", .per_host = "5"}, {0}, CADRE_INVALID_ARGUMENT,
            "SLURM_PROCID is '-1'"},
        {{.rank = "0", .tasks = "0", .hosts = "n", .per_host = "1"}, {0}, CADRE_INVALID_ARGUMENT,
            "the step has 0 tasks"},
        {{.rank = "0", .tasks = "many", .hosts = "n", .per_host = "1"}, {0}, CADRE_INVALID_ARGUMENT,
            "'many'"},
        {{.rank = "0", .tasks = "4", .hosts = "n[1-2]", .per_host = "2(x3)"}, {0},
            CADRE_INVALID_ARGUMENT, "2 hosts"},
        {{.rank = "0", .tasks = "5", .hosts = "n[1-2]", .per_host = "2(x2)"}, {0},
            CADRE_INVALID_ARGUMENT, "room for 4"},
        {{.rank = "0", .tasks = "4", .hosts = "n[1-2]"}, {.tasks_per_node = 3},
            CADRE_INVALID_ARGUMENT, "room for 6"},
        {{.rank = "0", .tasks = "4", .hosts = "n[", .per_host = "4"}, {0}, CADRE_INVALID_ARGUMENT,
            "not closed"},
        {{.rank = "0", .tasks = "5", .hosts = "n", .per_host = "5"}, {.jobs = four, .job_count = 1},
            CADRE_INVALID_ARGUMENT, "the jobs have 4"},
        {{.rank = "0", .tasks = "5", .hosts = "n", .per_host = "5"},
            {.jobs = nameless, .job_count = 1}, CADRE_INVALID_ARGUMENT, "a job's name"},
        {{.rank = "0", .tasks = "5", .hosts = "n", .per_host = "5"}, {.port_base = 65532},
            CADRE_INVALID_ARGUMENT, "no ports"},
        {{.rank = "0", .tasks = "5", .hosts = "n", .per_host = "5"},
            {.gpus_per_node = 8, .gpus_per_task = 2}, CADRE_INVALID_ARGUMENT,
            "need 2 GPUs each, and a host has 8"},
        {{.rank = "0", .tasks = "5", .hosts = "n", .per_host = "5", .gpus = "x"}, {0},
            CADRE_INVALID_ARGUMENT, "SLURM_GPUS_ON_NODE"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct slurm_task place;
        struct cadre_error error = {0};
        assert_error(slurm_resolve(&cases[i].variables, &cases[i].options, &place, &error),
            cases[i].code, &error, cases[i].part);
        assert_null(place.spec);
    }
}

static void the_step_comes_before_the_job(void **state)
{
    (void)state;
    static const char *const names[] = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS",
        "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_TASKS_PER_NODE",
        "SLURM_TASKS_PER_NODE", "SLURM_GPUS_ON_NODE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsetenv(names[i]);
    }
    struct slurm_variables variables = slurm_variables_read();
    assert_false(slurm_variables_several(&variables));
    setenv("SLURM_PROCID", "1", 1);
    setenv("SLURM_NTASKS", "4", 1);
    variables = slurm_variables_read();
    assert_true(slurm_variables_several(&variables)); /* though their hosts are not given */
    setenv("SLURM_NODELIST", "old", 1);
    setenv("SLURM_TASKS_PER_NODE", "4", 1);
    variables = slurm_variables_read();
    assert_true(slurm_variables_several(&variables));
    assert_string_equal(variables.hosts, "old");
    setenv("SLURM_JOB_NODELIST", "job", 1);
    assert_string_equal(slurm_variables_read().hosts, "job");
    setenv("SLURM_STEP_NODELIST", "step", 1);
    setenv("SLURM_STEP_TASKS_PER_NODE", "1", 1);
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    variables = slurm_variables_read();
    assert_string_equal(variables.hosts, "step");
    assert_string_equal(variables.per_host, "1");
    assert_false(slurm_variables_several(&variables));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_hosts_are_expanded),
        cmocka_unit_test(bad_lists_of_hosts_are_refused),
        cmocka_unit_test(long_names_and_lists_are_refused),
        cmocka_unit_test(counts_are_expanded),
        cmocka_unit_test(ranks_fill_one_host_after_the_other),
        cmocka_unit_test(jobs_take_the_ranks_in_order),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(the_step_comes_before_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
