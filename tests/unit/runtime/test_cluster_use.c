/* SPDX-License-Identifier: Apache-2.0
 * The cluster that a program sets for itself, and the cluster of its job. Each program is a child
 * process, because a process initialises once. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cadre/parameter_server.h"
#include "tests/lib/test.h"
#include "training.h"

#define TASKS 2

/* In a child: what does not hold ends it. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%d: %s (%s)\n", __LINE__, #condition, cadre_error_message());         \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static bool refused(cadre_status status, cadre_status code, const char *part)
{
    return status == code && strstr(cadre_error_message(), part) != NULL;
}

static cadre_cluster_resolver *resolver_of(const char *cluster, const char *type, uint32_t id)
{
    cadre_cluster_spec *spec;
    cadre_cluster_resolver *resolver;
    REQUIRE(cadre_cluster_spec_from_json(cluster, &spec) == CADRE_OK);
    REQUIRE(cadre_cluster_resolver_simple(spec, type, id, &resolver) == CADRE_OK);
    cadre_cluster_spec_release(spec);
    return resolver;
}

static cadre_status use(const char *cluster, const char *type, uint32_t id)
{
    cadre_cluster_resolver *resolver = resolver_of(cluster, type, id);
    cadre_status status = cadre_cluster_resolver_use(resolver);
    cadre_cluster_resolver_release(resolver);
    return status;
}

/* Runs `program` in a child of its own with a folder of its own; its process id. */
static pid_t start(
    void (*program)(const char *cluster, uint32_t task), const char *cluster, uint32_t task)
{
    const char *folder = test_temp_dir();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("CADRE_OUTPUT_DIR", folder, 1);
        setenv("CADRE_CLUSTER_WAIT_S", "30", 1);
        program(cluster, task);
        _exit(0);
    }
    return child;
}

static void check_end(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Ports without a listener. */
static void free_ports(uint16_t ret_ports[], size_t count)
{
    int fds[TASKS + 2];
    assert_true(count <= sizeof fds / sizeof fds[0]);
    for (size_t i = 0; i < count; i++) {
        struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t bytes = sizeof address;
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(fds[i], (struct sockaddr *)&address, bytes), 0);
        assert_int_equal(getsockname(fds[i], (struct sockaddr *)&address, &bytes), 0);
        ret_ports[i] = ntohs(address.sin_port);
    }
    for (size_t i = 0; i < count; i++) {
        close(fds[i]);
    }
}

static void make_a_cluster(char json[128])
{
    uint16_t ports[TASKS];
    free_ports(ports, TASKS);
    snprintf(json, 128, "{\"worker\": [\"127.0.0.1:%u\", \"localhost:%u\"]}", (unsigned)ports[0],
        (unsigned)ports[1]);
}

/* --- alone --- */

static void run_alone(const char *cluster, uint32_t task)
{
    cadre_cluster_resolver *resolver = NULL;
    cadre_strategy *strategy;
    (void)cluster;
    (void)task;
    REQUIRE(refused(use("{}", NULL, CADRE_TASK_NONE), CADRE_FAILED_PRECONDITION, "cadre_init"));
    REQUIRE(refused(
        cadre_cluster_resolver_cadre(&resolver), CADRE_FAILED_PRECONDITION, "without a strategy"));
    REQUIRE(cadre_init(NULL, NULL) == CADRE_OK);
    REQUIRE(refused(cadre_cluster_resolver_use(NULL), CADRE_INVALID_ARGUMENT, "resolver NULL"));
    REQUIRE(refused(
        use("{\"worker\": [\"a:1\", \"b:1\"]}", "worker", 2), CADRE_INVALID_ARGUMENT, "index 2"));
    REQUIRE(cadre_world_size() == 1);
    REQUIRE(use("{\"worker\": [\"127.0.0.1:1\", \"127.0.0.1:2\"]}", "worker", 0) == CADRE_OK);
    REQUIRE(cadre_world_size() == 2);
    REQUIRE(use("{\"worker\": [\"127.0.0.1:1\"]}", "worker", 0) == CADRE_OK); /* the last counts */
    REQUIRE(cadre_world_size() == 1);
    REQUIRE(cadre_strategy_default(&strategy) == CADRE_OK);
    REQUIRE(refused(use("{}", NULL, 0), CADRE_FAILED_PRECONDITION, "after the strategy"));
    REQUIRE(cadre_cluster_resolver_cadre(&resolver) == CADRE_OK);
    REQUIRE(cadre_cluster_spec_num_jobs(cadre_cluster_resolver_spec(resolver)) == 0);
    REQUIRE(cadre_cluster_resolver_task_type(resolver) == NULL);
    cadre_cluster_resolver_release(resolver);
    REQUIRE(cadre_finish(strategy) == 0);
}

static void a_program_may_say_which_cluster_it_is_of(void **state)
{
    (void)state;
    check_end(start(run_alone, NULL, 0));
}

/* --- together --- */

static cadre_status count(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    CADRE_TRY(cadre_tensor_from_i64(1, &outputs[0]));
    return cadre_all_reduce(replica, CADRE_SUM, &outputs[0], 1, NULL);
}

/* The default strategy is one replica of this process, whatever job that is a task of. */
static bool default_counts_one(void)
{
    cadre_per_replica *counted;
    cadre_strategy *it = cadre_strategy_current();
    REQUIRE(it != NULL && !cadre_has_strategy());
    REQUIRE(cadre_run(it, count, NULL, NULL, 1, &counted) == CADRE_OK);
    const cadre_tensor *sum = cadre_local_results(counted, 0)[0];
    return *(const int64_t *)cadre_tensor_const_data(sum) == 1;
}

static void run_together(const char *cluster, uint32_t task)
{
    cadre_cluster_resolver *resolver;
    cadre_strategy *strategy;
    cadre_per_replica *counted;
    REQUIRE(cadre_init(NULL, NULL) == CADRE_OK);
    REQUIRE(default_counts_one());
    REQUIRE(use(cluster, "worker", task) == CADRE_OK);
    REQUIRE(cadre_world_size() == TASKS && default_counts_one());
    REQUIRE(refused(cadre_strategy_mirrored(2, &strategy), CADRE_FAILED_PRECONDITION,
        "for one task and this job has 2"));
    REQUIRE(cadre_strategy_default(&strategy) == CADRE_OK);
    REQUIRE(cadre_rank() == task && cadre_world_size() == TASKS);
    REQUIRE(cadre_strategy_is_chief(strategy) == (task == 0));
    REQUIRE(cadre_run(strategy, count, NULL, NULL, 1, &counted) == CADRE_OK);
    const cadre_tensor *sum = cadre_local_results(counted, 0)[0];
    REQUIRE(*(const int64_t *)cadre_tensor_const_data(sum) == TASKS);
    REQUIRE(cadre_cluster_resolver_cadre(&resolver) == CADRE_OK);
    REQUIRE(strcmp(cadre_cluster_resolver_task_type(resolver), "worker") == 0);
    REQUIRE(cadre_cluster_resolver_task_id(resolver) == task);
    REQUIRE(cadre_cluster_spec_num_tasks(cadre_cluster_resolver_spec(resolver), "worker") == TASKS);
    cadre_cluster_resolver_release(resolver);
    REQUIRE(default_counts_one() && cadre_world_size() == TASKS);
    REQUIRE(cadre_finish(strategy) == 0);
    REQUIRE(refused(
        cadre_strategy_default(&strategy), CADRE_FAILED_PRECONDITION, "had its strategy already"));
    REQUIRE(refused(use("{}", NULL, 0), CADRE_FAILED_PRECONDITION, "after the strategy"));
}

static void programs_of_one_cluster_are_one_job(void **state)
{
    (void)state;
    char cluster[128];
    pid_t children[TASKS];
    make_a_cluster(cluster);
    for (uint32_t task = 0; task < TASKS; task++) {
        children[task] = start(run_together, cluster, task);
    }
    for (uint32_t task = 0; task < TASKS; task++) {
        check_end(children[task]);
    }
}

/* --- with ps tasks that the strategy leaves out --- */

#define PARTS_MAX 4

/* A cluster of these jobs at free ports, and the task of one of its programs, as TF_CONFIG. */
static void tf_config(char *config, size_t size, const char *format, const uint16_t ports[],
    const char *type, uint32_t index)
{
    char cluster[320];
    snprintf(cluster, sizeof cluster, format, (unsigned)ports[0], (unsigned)ports[1],
        (unsigned)ports[2], (unsigned)ports[3]);
    snprintf(config, size, "{\"cluster\": %s, \"task\": {\"type\": \"%s\", \"index\": %u}}",
        cluster, type, (unsigned)index);
}

/* The documents' sample: two workers and a ps, and a strategy of the workers. */
static const char sample[] = "{\"worker\": [\"localhost:%u\", \"localhost:%u\"], "
                             "\"ps\": [\"localhost:%u\"]}";
static const char whole[] =
    "{\"chief\": [\"localhost:%u\"], \"worker\": [\"localhost:%u\"], \"ps\": "
    "[\"localhost:%u\", \"localhost:%u\"]}";

static void run_without_servers(const char *config, uint32_t task)
{
    cadre_strategy *strategy;
    cadre_cluster_resolver *resolver;
    cadre_per_replica *counted;
    setenv("TF_CONFIG", config, 1);
    REQUIRE(cadre_init(NULL, NULL) == CADRE_OK);
    REQUIRE(cadre_strategy_multi_worker_mirrored(1, &strategy) == CADRE_OK);
    REQUIRE(cadre_rank() == task && cadre_world_size() == TASKS);
    REQUIRE(cadre_task_type_of() == CADRE_TASK_REPLICA);
    REQUIRE(cadre_run(strategy, count, NULL, NULL, 1, &counted) == CADRE_OK);
    const cadre_tensor *sum = cadre_local_results(counted, 0)[0];
    REQUIRE(*(const int64_t *)cadre_tensor_const_data(sum) == TASKS);
    REQUIRE(cadre_cluster_resolver_cadre(&resolver) == CADRE_OK);
    const char *type = cadre_cluster_resolver_task_type(resolver);
    REQUIRE(strstr(config, type) != NULL && strcmp(type, "ps") != 0);
    REQUIRE(cadre_cluster_spec_num_tasks(cadre_cluster_resolver_spec(resolver), "ps") > 0);
    cadre_cluster_resolver_release(resolver);
    REQUIRE(cadre_finish(strategy) == 0);
    REQUIRE(refused(cadre_strategy_multi_worker_mirrored(1, &strategy), CADRE_FAILED_PRECONDITION,
        "had its strategy already"));
}

static void workers_train_beside_ps_tasks(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        const char *types[TASKS];
        uint32_t indices[TASKS];
    } cases[] = {{sample, {"worker", "worker"}, {0, 1}}, {whole, {"chief", "worker"}, {0, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pid_t children[TASKS];
        uint16_t ports[PARTS_MAX];
        free_ports(ports, PARTS_MAX);
        for (uint32_t task = 0; task < TASKS; task++) {
            char config[512];
            tf_config(config, sizeof config, cases[i].cluster, ports, cases[i].types[task],
                cases[i].indices[task]);
            children[task] = start(run_without_servers, config, task);
        }
        for (uint32_t task = 0; task < TASKS; task++) {
            check_end(children[task]);
        }
    }
}

/* Without a chief the error has what is missing and what to do. */
static void run_without_chief(const char *config, uint32_t task)
{
    cadre_strategy *strategy;
    setenv("TF_CONFIG", config, 1);
    REQUIRE(cadre_init(NULL, NULL) == CADRE_OK);
    REQUIRE(refused(cadre_strategy_parameter_server(NULL, &strategy), CADRE_FAILED_PRECONDITION,
        "no chief task"));
    REQUIRE(strstr(cadre_error_message(), "add a job \"chief\"") != NULL);
    REQUIRE(strstr(cadre_error_message(), "cadre_strategy_multi_worker_mirrored") != NULL);
    REQUIRE(refused(cadre_strategy_default(&strategy), CADRE_FAILED_PRECONDITION, "no chief task"));
    REQUIRE(cadre_serve() == 1 && strstr(cadre_error_message(), "no chief task") != NULL);
    REQUIRE(cadre_world_size() == (task == 0 ? 2 : 1));
    REQUIRE(cadre_task_serves() == (task != 0));
    if (task != 0) { /* the ps */
        REQUIRE(cadre_task_type_of() == CADRE_TASK_PS && cadre_task_index() == 0);
        REQUIRE(refused(cadre_strategy_multi_worker_mirrored(1, &strategy),
            CADRE_FAILED_PRECONDITION, "ps 0 of the cluster"));
    }
}

static void a_strategy_that_needs_a_chief_says_so(void **state)
{
    (void)state;
    static const uint16_t ports[PARTS_MAX] = {1, 2, 3, 4};
    char config[512];
    tf_config(config, sizeof config, sample, ports, "worker", 0);
    check_end(start(run_without_chief, config, 0));
    tf_config(config, sizeof config, sample, ports, "ps", 0);
    check_end(start(run_without_chief, config, 1));
}

/* A ps of a whole ps job, and one worker beside a ps: by itself, and yet no ps job of threads. */
static void run_beside(const char *config, uint32_t task)
{
    cadre_strategy *strategy;
    setenv("TF_CONFIG", config, 1);
    REQUIRE(cadre_init(NULL, NULL) == CADRE_OK);
    if (task == 0) {
        REQUIRE(refused(cadre_strategy_multi_worker_mirrored(1, &strategy),
            CADRE_FAILED_PRECONDITION, "ps 1 of the cluster"));
        REQUIRE(cadre_task_type_of() == CADRE_TASK_PS && cadre_task_index() == 1);
        return;
    }
    REQUIRE(refused(cadre_strategy_parameter_server(NULL, &strategy), CADRE_FAILED_PRECONDITION,
        "no chief task"));
    REQUIRE(cadre_strategy_multi_worker_mirrored(2, &strategy) == CADRE_OK);
    REQUIRE(cadre_strategy_num_replicas_in_sync(strategy) == 2);
    REQUIRE(cadre_finish(strategy) == 0);
}

static void tasks_beside_the_workers(void **state)
{
    (void)state;
    static const uint16_t ports[PARTS_MAX] = {1, 2, 3, 4};
    char config[512];
    tf_config(config, sizeof config, whole, ports, "ps", 1);
    check_end(start(run_beside, config, 0));
    tf_config(config, sizeof config, "{\"worker\": [\"localhost:%u\"], \"ps\": [\"localhost:%u\"]}",
        ports, "worker", 0);
    check_end(start(run_beside, config, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_may_say_which_cluster_it_is_of),
        cmocka_unit_test(programs_of_one_cluster_are_one_job),
        cmocka_unit_test(workers_train_beside_ps_tasks),
        cmocka_unit_test(a_strategy_that_needs_a_chief_says_so),
        cmocka_unit_test(tasks_beside_the_workers),
    };
    unsetenv("TF_CONFIG");
    unsetenv("SLURM_PROCID");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
