/* SPDX-License-Identifier: Apache-2.0
 * Which task of a cluster a program is, and what keeps it from being one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/cluster/cluster_member.h"

static struct environment environment;

static cadre_cluster_resolver *resolver_of(const char *cluster, const char *type, uint32_t id)
{
    cadre_cluster_spec *spec;
    cadre_cluster_resolver *resolver;
    assert_int_equal(cadre_cluster_spec_from_json(cluster, &spec), CADRE_OK);
    assert_int_equal(cadre_cluster_resolver_simple(spec, type, id, &resolver), CADRE_OK);
    cadre_cluster_spec_release(spec);
    return resolver;
}

static cadre_status open_member(const char *cluster, const char *type, uint32_t id,
    struct cluster_member **ret_member, struct cadre_error *error)
{
    cadre_cluster_resolver *resolver = resolver_of(cluster, type, id);
    cadre_status status =
        cluster_member_open(resolver, CLUSTER_PS_JOB, &environment, ret_member, error);
    cadre_cluster_resolver_release(resolver); /* it was copied */
    return status;
}

/* The environment of the test. */
static cadre_status find_member(struct cluster_member **ret_member, struct cadre_error *error)
{
    cadre_cluster_resolver *resolver;
    *ret_member = NULL;
    CADRE_TRY(cluster_find(&environment, &resolver, error));
    if (resolver == NULL) {
        return CADRE_OK;
    }
    cadre_status status =
        cluster_member_open(resolver, CLUSTER_PS_JOB, &environment, ret_member, error);
    cadre_cluster_resolver_release(resolver);
    return status;
}

static int clear(void **state)
{
    (void)state;
    memset(&environment, 0, sizeof environment);
    unsetenv("TF_CONFIG");
    unsetenv("SLURM_PROCID");
    unsetenv("SLURM_NTASKS");
    unsetenv("SLURM_STEP_NUM_TASKS");
    unsetenv("SLURM_JOB_NODELIST");
    unsetenv("SLURM_STEP_NODELIST");
    unsetenv("SLURM_NODELIST");
    unsetenv("SLURM_TASKS_PER_NODE");
    unsetenv("SLURM_STEP_TASKS_PER_NODE");
    return 0;
}

static const char four[] = "{\"chief\": [\"127.0.0.1:1\"], \"worker\": [\"localhost:2\", "
                           "\"[::1]:3\"], \"evaluator\": [\"e:5\"]}";
static const char ps_job[] =
    "{\"chief\": [\"127.0.0.1:1\"], \"worker\": [\"localhost:2\", \"[::1]:3\"], "
    "\"ps\": [\"127.0.0.1:4\", \"127.0.0.1:5\"], \"evaluator\": [\"127.0.0.1:6\"]}";

static void a_task_knows_its_place(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct cluster_member *member;
    char text[CLUSTER_MEMBER_TEXT_BYTES];
    char host[LIMIT_ADDRESS_BYTES];
    environment.cluster_wait_us = 7;
    environment.cluster_grace_us = 8;
    assert_ok(open_member(four, "worker", 1, &member, &error), &error);
    assert_int_equal(member->member_id, 2);
    assert_int_equal(member->tasks, 3);
    assert_int_equal(member->wait_us, 7);
    assert_int_equal(member->grace_us, 8);
    assert_false(member->keyed);
    assert_string_equal(cluster_member_text(member, 0, text), "task 0 (chief 0 at 127.0.0.1:1)");
    assert_string_equal(cluster_member_text(member, 2, text), "task 2 (worker 1 at [::1]:3)");
    cluster_address_host(&member->own, host);
    assert_string_equal(host, "::1");
    cluster_member_close(member);
    assert_ok(open_member(four, "worker", 0, &member, &error), &error);
    cluster_address_host(&member->own, host);
    assert_string_equal(host, "127.0.0.1");
    cluster_member_close(member);
    environment.mesh_host_given = true;
    snprintf(environment.mesh_host, sizeof environment.mesh_host, "127.0.0.9");
    assert_ok(open_member(four, "worker", 0, &member, &error), &error);
    cluster_address_host(&member->own, host);
    assert_string_equal(host, "127.0.0.9");
    cluster_member_close(member);
}

static void a_ps_job_is_in_order_of_slots(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        uint32_t id;
        enum role role;
        uint32_t member_id;
    } cases[] = {
        {"chief", 0, ROLE_CHIEF, 0},
        {"worker", 1, ROLE_WORKER, 2},
        {"ps", 0, ROLE_SERVER, 3},
        {"ps", 1, ROLE_SERVER, 4},
        {"evaluator", 0, ROLE_EVALUATOR, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        struct cluster_member *member;
        char text[CLUSTER_MEMBER_TEXT_BYTES];
        assert_ok(open_member(ps_job, cases[i].type, cases[i].id, &member, &error), &error);
        assert_int_equal(member->member_id, cases[i].member_id);
        assert_int_equal(member->role, cases[i].role);
        assert_int_equal(member->tasks, 6);
        assert_int_equal(member->ps_job.servers, 2);
        assert_int_equal(member->ps_job.evaluators, 1);
        assert_string_equal(cluster_member_text(member, 4, text), "task 4 (ps 1 at 127.0.0.1:5)");
        cluster_member_close(member);
    }
}

/* Without the ps tasks the chief and the workers are a job of their own. */
static void peers_leave_ps_tasks_out(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        uint32_t id;
        uint32_t member_id;
    } cases[] = {{"chief", 0, 0}, {"worker", 0, 1}, {"worker", 1, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        struct cluster_member *member;
        cadre_cluster_resolver *resolver = resolver_of(ps_job, cases[i].type, cases[i].id);
        assert_ok(
            cluster_member_open(resolver, CLUSTER_PEERS, &environment, &member, &error), &error);
        assert_int_equal(member->member_id, cases[i].member_id);
        assert_int_equal(member->tasks, 3);
        assert_int_equal(member->role, ROLE_NONE);
        cluster_member_close(member);
        cadre_cluster_resolver_release(resolver);
    }
    struct cadre_error error = {0};
    struct cluster_member *member;
    cadre_cluster_resolver *resolver = resolver_of(ps_job, "ps", 1);
    assert_error(cluster_member_open(resolver, CLUSTER_PEERS, &environment, &member, &error),
        CADRE_FAILED_PRECONDITION, &error, "ps 1 of the cluster");
    cadre_cluster_resolver_release(resolver);
    resolver = resolver_of(ps_job, "evaluator", 0);
    assert_ok(cluster_member_open(resolver, CLUSTER_PEERS, &environment, &member, &error), &error);
    assert_null(member);
    cadre_cluster_resolver_release(resolver);
}

static void who_is_a_job_by_itself(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        const char *type;
        uint32_t id;
    } cases[] = {
        {"{}", NULL, CADRE_TASK_NONE},
        {"{\"worker\": [\"a:1\"]}", "worker", 0},
        {"{\"worker\": [\"a:1\"]}", NULL, CADRE_TASK_NONE},
        {four, "evaluator", 0},
        {"{\"worker\": [\"a:1\", \"b:1\"]}", "evaluator", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        struct cluster_member *member;
        assert_ok(
            open_member(cases[i].cluster, cases[i].type, cases[i].id, &member, &error), &error);
        assert_null(member);
    }
}

static void what_is_no_cluster(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        const char *type;
        uint32_t id;
        cadre_status code;
        const char *part;
    } cases[] = {
        {four, "ps", 0, CADRE_INVALID_ARGUMENT, "no such job"},
        {ps_job, "ps", 2, CADRE_INVALID_ARGUMENT, "index 2"},
        {ps_job, NULL, 0, CADRE_INVALID_ARGUMENT, "6 chief, worker, ps and evaluator tasks"},
        {"{\"chief\": [\"a:1\"], \"ps\": [\"b:1\", \"c:1\"]}", "chief", 0,
            CADRE_FAILED_PRECONDITION, "2 ps tasks and no worker task"},
        {"{\"worker\": [\"a:1\"], \"ps\": [\"b:1\"]}", "worker", 0, CADRE_FAILED_PRECONDITION,
            "no chief task"},
        {"{\"chief\": [\"a:1\", \"b:1\"], \"worker\": [\"c:1\"], \"ps\": [\"d:1\"]}", "chief", 0,
            CADRE_INVALID_ARGUMENT, "2 tasks in its job 'chief'"},
        {"{\"chief\": [\"a:1\"], \"worker\": [\"c:1\"], \"ps\": [\"d:1\"]}", "evaluator", 0,
            CADRE_INVALID_ARGUMENT, "no job \"evaluator\""},
        {"{\"chief\": [\"127.0.0.1:1\"], \"worker\": [\"127.0.0.1:2\"], "
         "\"ps\": {\"0\": \"127.0.0.1:3\", \"2\": \"127.0.0.1:4\"}}",
            "chief", 0, CADRE_INVALID_ARGUMENT, "'ps' of the cluster has gaps"},
        {"{\"chief\": [\"127.0.0.1:1\"], \"worker\": [\"127.0.0.1:2\"], \"ps\": [\"127.0.0.1:2\"]}",
            "chief", 0, CADRE_INVALID_ARGUMENT, "have the address 127.0.0.1:2"},
        {four, NULL, 0, CADRE_INVALID_ARGUMENT, "it is not set which of them"},
        {four, "worker", 2, CADRE_INVALID_ARGUMENT, "index 2"},
        {four, "worker", CADRE_TASK_NONE, CADRE_INVALID_ARGUMENT, "index -1"},
        {four, "boss", 0, CADRE_INVALID_ARGUMENT, "'boss'"},
        {"{\"master\": [\"a:1\"], \"worker\": [\"b:1\"]}", "worker", 0, CADRE_INVALID_ARGUMENT,
            "'master'"},
        {"{\"worker\": {\"0\": \"127.0.0.1:1\", \"2\": \"127.0.0.1:2\"}}", "worker", 0,
            CADRE_INVALID_ARGUMENT, "gaps"},
        {"{\"worker\": [\"127.0.0.1:1\", \"127.0.0.1:1\"]}", "worker", 0, CADRE_INVALID_ARGUMENT,
            "two tasks of the cluster have the address 127.0.0.1:1"},
        {"{\"worker\": [\"127.0.0.1:1\", \"127.0.0.1\"]}", "worker", 0, CADRE_INVALID_ARGUMENT,
            "HOST:PORT"},
        {"{\"worker\": [\"127.0.0.1:1\", \"::1:2\"]}", "worker", 0, CADRE_INVALID_ARGUMENT,
            "HOST:PORT"},
        {"{\"worker\": [\"127.0.0.1:1\", \"a:0\"]}", "worker", 0, CADRE_INVALID_ARGUMENT,
            "HOST:PORT"},
        {"{\"worker\": [\"127.0.0.1:1\", \"a:65536\"]}", "worker", 0, CADRE_INVALID_ARGUMENT,
            "HOST:PORT"},
        {"{\"worker\": [\"127.0.0.1:1\", \":7\"]}", "worker", 0, CADRE_INVALID_ARGUMENT,
            "HOST:PORT"},
        {"{\"worker\": [\"127.0.0.1:1\", \"a:7x\"]}", "worker", 0, CADRE_INVALID_ARGUMENT,
            "HOST:PORT"},
        {"{\"worker\": [\"no.such.host.invalid:1\", \"127.0.0.1:2\"]}", "worker", 0,
            CADRE_UNAVAILABLE, "no.such.host.invalid"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cadre_error error = {0};
        struct cluster_member *member;
        assert_error(open_member(cases[i].cluster, cases[i].type, cases[i].id, &member, &error),
            cases[i].code, &error, cases[i].part);
        assert_null(member);
    }
}

static void long_addresses_are_refused(void **state)
{
    (void)state;
    char cluster[400];
    char host[160];
    struct cadre_error error = {0};
    struct cluster_member *member;
    memset(host, 'h', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    snprintf(cluster, sizeof cluster, "{\"worker\": [\"127.0.0.1:1\", \"%s:1\"]}", host);
    assert_error(open_member(cluster, "worker", 0, &member, &error), CADRE_INVALID_ARGUMENT, &error,
        "161 bytes");
}

/* Addresses without a host, so that no name is resolved and no host answers. */
static const char apart[] = "{\"worker\": [\"192.0.2.1:1\", \"192.0.2.2:1\"]}";

/* "127.1" is no numeric address to inet_pton, and to getaddrinfo a name of 127.0.0.1. */
static void a_name_that_only_this_host_reaches(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct cluster_member *member;
    static const char cluster[] = "{\"worker\": [\"127.1:1\", \"192.0.2.2:1\"]}";
    static const char local[] = "{\"worker\": [\"127.1:1\", \"localhost:2\"]}";
    environment.cluster_insecure = true;
    assert_error(open_member(cluster, "worker", 0, &member, &error), CADRE_FAILED_PRECONDITION,
        &error,
        "its own name '127.1' means 127.0.0.1 (see /etc/hosts), where the task at 192.0.2.2:1");
    assert_ok(open_member(local, "worker", 0, &member, &error), &error);
    cluster_member_close(member);
    environment.mesh_host_given = true;
    snprintf(environment.mesh_host, sizeof environment.mesh_host, "192.0.2.1");
    assert_ok(open_member(cluster, "worker", 0, &member, &error), &error);
    cluster_member_close(member);
}

static void over_a_network_there_must_be_a_key(void **state)
{
    (void)state;
    static const char *const half[] = {"{\"worker\": [\"127.0.0.1:1\", \"192.0.2.2:1\"]}",
        "{\"worker\": [\"192.0.2.1:1\", \"127.0.0.1:1\"]}"};
    struct cadre_error error = {0};
    struct cluster_member *member;
    char path[TEST_PATH_BYTES];
    assert_error(open_member(apart, "worker", 1, &member, &error), CADRE_FAILED_PRECONDITION,
        &error, "CADRE_CLUSTER_KEY_FILE");
    for (size_t i = 0; i < 2; i++) {
        assert_error(open_member(half[i], "worker", 1, &member, &error), CADRE_FAILED_PRECONDITION,
            &error, "CADRE_CLUSTER_INSECURE=1");
    }
    environment.cluster_insecure = true;
    assert_ok(open_member(apart, "worker", 1, &member, &error), &error);
    assert_false(member->keyed);
    cluster_member_close(member);
    environment.cluster_insecure = false;
    test_path(path, test_temp_dir(), "key");
    snprintf(environment.cluster_key_path, sizeof environment.cluster_key_path, "%s", path);
    assert_error(open_member(apart, "worker", 1, &member, &error), CADRE_NOT_FOUND, &error, path);
    test_write(path, "thirty-one bytes are not enough");
    assert_error(open_member(apart, "worker", 1, &member, &error), CADRE_INVALID_ARGUMENT, &error,
        "31 bytes");
    test_write(path, "but with thirty-two it will do ok");
    assert_ok(open_member(apart, "worker", 1, &member, &error), &error);
    assert_true(member->keyed);
    cluster_member_close(member);
}

static void all_know_the_cluster_by_its_addresses(void **state)
{
    (void)state;
    static const char *const others[] = {"{\"worker\": [\"127.0.0.1:1\", \"127.0.0.1:3\"]}",
        "{\"worker\": [\"127.0.0.1:2\", \"127.0.0.1:1\"]}",
        "{\"worker\": [\"127.0.0.1:1\", \"127.0.0.1:2\", \"127.0.0.1:3\"]}"};
    struct cadre_error error = {0};
    struct cluster_member *one;
    struct cluster_member *other;
    static const char two[] = "{\"worker\": [\"127.0.0.1:1\", \"127.0.0.1:2\"]}";
    static const char served[] =
        "{\"worker\": [\"127.0.0.1:1\", \"127.0.0.1:2\"], \"evaluator\": [\"e:1\"]}";
    assert_ok(open_member(two, "worker", 0, &one, &error), &error);
    assert_ok(open_member(served, "worker", 1, &other, &error), &error);
    assert_memory_equal(one->cluster, other->cluster, sizeof one->cluster);
    cluster_member_close(other);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_ok(open_member(others[i], "worker", 0, &other, &error), &error);
        assert_memory_not_equal(one->cluster, other->cluster, sizeof one->cluster);
        cluster_member_close(other);
    }
    cluster_member_close(one);
}

static void set_slurm(void)
{
    setenv("SLURM_PROCID", "1", 1);
    setenv("SLURM_NTASKS", "2", 1);
    setenv("SLURM_JOB_NODELIST", "localhost", 1);
    setenv("SLURM_TASKS_PER_NODE", "2", 1);
}

static void the_environment_says_which_cluster(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct cluster_member *member;
    assert_ok(find_member(&member, &error), &error);
    assert_null(member);
    set_slurm();
    environment.cluster_port = 4000;
    assert_ok(find_member(&member, &error), &error);
    assert_int_equal(member->member_id, 1);
    assert_string_equal(cluster_member_address(member, 1), "localhost:4001");
    cluster_member_close(member);
    setenv("TF_CONFIG",
        "{\"cluster\": {\"worker\": [\"127.0.0.1:1\", \"127.0.0.1:2\"]}, \"task\": {\"type\": "
        "\"worker\", \"index\": 0}}",
        1);
    assert_ok(find_member(&member, &error), &error);
    assert_int_equal(member->member_id, 0); /* TF_CONFIG goes before */
    cluster_member_close(member);
    setenv("TF_CONFIG", "[", 1);
    assert_error(find_member(&member, &error), CADRE_INVALID_ARGUMENT, &error, "TF_CONFIG");
    assert_null(member);
    environment.cluster_ignored = true;
    assert_ok(find_member(&member, &error), &error);
    assert_null(member);
    environment.cluster_ignored = false;
    unsetenv("TF_CONFIG");
    setenv("SLURM_TASKS_PER_NODE", "3", 1);
    assert_error(
        find_member(&member, &error), CADRE_INVALID_ARGUMENT, &error, "CADRE_CLUSTER=none");
}

/* Each of them would train alone, without a message. */
static void tasks_of_slurm_without_hosts(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct cluster_member *member;
    set_slurm();
    unsetenv("SLURM_JOB_NODELIST");
    assert_error(
        find_member(&member, &error), CADRE_FAILED_PRECONDITION, &error, "SLURM_JOB_NODELIST");
    assert_non_null(strstr(error.text, "CADRE_CLUSTER=none"));
    assert_null(member);
    setenv("SLURM_NTASKS", "1", 1);
    assert_ok(find_member(&member, &error), &error);
    assert_null(member);
    setenv("SLURM_NTASKS", "2", 1);
    environment.cluster_ignored = true;
    assert_ok(find_member(&member, &error), &error);
    assert_null(member);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_task_knows_its_place, clear),
        cmocka_unit_test_setup(a_ps_job_is_in_order_of_slots, clear),
        cmocka_unit_test_setup(peers_leave_ps_tasks_out, clear),
        cmocka_unit_test_setup(who_is_a_job_by_itself, clear),
        cmocka_unit_test_setup(what_is_no_cluster, clear),
        cmocka_unit_test_setup(long_addresses_are_refused, clear),
        cmocka_unit_test_setup(a_name_that_only_this_host_reaches, clear),
        cmocka_unit_test_setup(over_a_network_there_must_be_a_key, clear),
        cmocka_unit_test_setup(all_know_the_cluster_by_its_addresses, clear),
        cmocka_unit_test_setup(the_environment_says_which_cluster, clear),
        cmocka_unit_test_setup(tasks_of_slurm_without_hosts, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
