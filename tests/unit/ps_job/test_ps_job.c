/* SPDX-License-Identifier: Apache-2.0
 * A ps job of processes under daemons: a chief, two workers, two servers and an evaluator are this
 * program, each by its environment. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cadre/cluster_coordinator.h"
#include "cadre/served.h"
#include "cadre/program.h"
#include "ps_job_daemon.h"
#include "tests/lib/program.h"
#include "tests/lib/test.h"
#include "tests/unit/served/memory.h"

#define ROWS     6
#define CLOSURES 60 /* of a step; 3 steps */

static const struct ps_job ps_job = {.workers = 2, .servers = 2, .evaluators = 1};
static const char *self;

/* --- the program --- */

static cadre_status train(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_variable *variable;
    float gradient[ROWS];
    (void)closure;
    (void)outputs;
    (void)user;
    for (int i = 0; i < ROWS; i++) {
        gradient[i] = -1;
    }
    CADRE_TRY(cadre_variable_find(NULL, "w", &variable));
    return memory_push(variable, gradient, NULL);
}

static int lead(void)
{
    cadre_strategy *strategy;
    cadre_variable *variable;
    const int64_t dims[] = {ROWS};
    float values[ROWS];
    const cadre_parameter_server_options options = {
        .partitioner = {.kind = CADRE_PARTITIONER_FIXED, .shards = 2}};
    const cadre_optimizer_options sgd = {.kind = CADRE_OPTIMIZER_SGD, .rate = 1};
    CADRE_CHECK(cadre_strategy_parameter_server(&options, &strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "w", CADRE_F32, 1, dims, NULL, &variable));
    CADRE_CHECK(memory_train(strategy, variable, &sgd));
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < CLOSURES; i++) {
            CADRE_CHECK(cadre_schedule(strategy, "train", NULL, 0, NULL));
        }
        CADRE_CHECK(cadre_join(strategy));
    }
    CADRE_CHECK(memory_pull(variable, values));
    printf("trained to %g and %g\n", (double)values[0], (double)values[ROWS - 1]);
    fflush(stdout);
    return cadre_finish(strategy);
}

static int evaluate(void)
{
    cadre_strategy *strategy;
    uint64_t step = 0;
    while (cadre_next_evaluation(0, &step)) {
        cadre_variable *variable;
        float values[ROWS];
        if (cadre_variable_find(NULL, "w", &variable) == CADRE_OK) {
            CADRE_CHECK(memory_pull(variable, values));
            CADRE_CHECK(cadre_report_evaluation("value", (double)values[0]));
            if (cadre_strategy_parameter_server(NULL, &strategy) != CADRE_FAILED_PRECONDITION ||
                strstr(cadre_error_message(), "its loop is cadre_next_evaluation") == NULL) {
                return 3; /* and not that it is to end what it has not begun */
            }
            printf("step %llu\n", (unsigned long long)step);
        }
    }
    return cadre_evaluator_finish();
}

/* What is refused in a task of a ps job, whichever it is. */
static int misuse(void)
{
    cadre_strategy *strategy;
    if (cadre_task_type_of() != CADRE_TASK_CHIEF) {
        cadre_strategy_parameter_server(NULL, &strategy);
        printf("parameter server: %s\n", cadre_error_message());
        cadre_strategy_default(&strategy);
        printf("default: %s\n", cadre_error_message());
    }
    cadre_strategy_mirrored(1, &strategy);
    printf("mirrored: %s\n", cadre_error_message());
    if (!cadre_task_serves()) {
        printf("serve: %d\n", cadre_serve());
    }
    return 0;
}

static int run_task(const char *what)
{
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_function_register("train", train, NULL));
    printf("type %d index %u\n", (int)cadre_task_type_of(), cadre_task_index());
    if (strcmp(what, "misuse") == 0) {
        return misuse();
    }
    if (cadre_task_serves()) {
        return cadre_serve();
    }
    return cadre_task_type_of() == CADRE_TASK_EVALUATOR ? evaluate() : lead();
}

/* --- the test --- */

static void start(const struct ps_job_daemon *daemon, const char *folder, uint32_t slot,
    const char *what, struct program *ret_program)
{
    char settings[6][TEST_PATH_BYTES];
    enum role role = ps_job_role(&ps_job, slot);
    snprintf(settings[0], sizeof settings[0], "CADRE_SOCKET=%s/%u", folder, slot);
    snprintf(settings[1], sizeof settings[1], "CADRE_SLOT=%u", slot);
    snprintf(settings[2], sizeof settings[2], "CADRE_TASK_TYPE=%s", role_name(role));
    snprintf(settings[3], sizeof settings[3], "CADRE_TASK_INDEX=%u",
        slot - ps_job_first_slot(&ps_job, role));
    snprintf(settings[4], sizeof settings[4], "CADRE_INCARNATION=%llu",
        (unsigned long long)ps_job_daemon_incarnation(daemon, slot));
    snprintf(settings[5], sizeof settings[5], "CADRE_OUTPUT_DIR=%s", folder);
    const char *const argv[] = {self, what, NULL};
    const char *const environment[] = {settings[0], settings[1], settings[2], settings[3],
        settings[4], settings[5], "CADRE_JOB=1", "CADRE_TASKS=1", "CADRE_WORKERS=2",
        "CADRE_SERVERS=2", "CADRE_EVALUATORS=1", "CADRE_STRATEGY=parameter_server", NULL};
    program_start(&(struct program_spec){.argv = argv, .environment = environment}, ret_program);
}

static void check_end(struct program *program, uint32_t slot, const char *part)
{
    struct program_result result;
    program_finish(program, PROGRAM_DEADLINE_US, &result);
    if (result.exit_code != 0 || strstr(result.out, part) == NULL) {
        print_error("slot %u exit code %d\n%s%s\n", slot, result.exit_code, result.out, result.err);
    }
    assert_int_equal(result.exit_code, 0);
    assert_non_null(strstr(result.out, part));
    program_result_free(&result);
}

static bool is_evaluated(void *data)
{
    unsigned count = 0;
    return ps_job_daemon_metric(data, &count) == 3 * CLOSURES && count > 0;
}

static void a_ps_job_of_processes_trains(void **state)
{
    (void)state;
    static const char *const parts[] = {"trained to 180 and 180", "type 2 index 0",
        "type 2 index 1", "type 3 index 0", "type 3 index 1", "type 4 index 0"};
    char folder[TEST_PATH_BYTES];
    char path[TEST_PATH_BYTES];
    char failure[LIMIT_TEXT_BYTES];
    struct program programs[6];
    snprintf(folder, sizeof folder, "%s", test_temp_dir());
    struct ps_job_daemon *daemon = ps_job_daemon_open(&ps_job, folder);
    for (uint32_t i = 0; i < 6; i++) {
        start(daemon, folder, (i + 3) % 6, "task", &programs[(i + 3) % 6]);
    }
    for (uint32_t slot = 0; slot < 6; slot++) {
        check_end(&programs[slot], slot, parts[slot]);
    }
    ps_job_daemon_failure(daemon, failure);
    assert_string_equal(failure, "");
    /* The last evaluation is of the state that the chief left. */
    assert_true(test_wait(is_evaluated, daemon, PROGRAM_DEADLINE_US));
    assert_int_equal(access(test_path(path, folder, "checkpoint-3.safetensors"), R_OK), 0);
    ps_job_daemon_close(daemon);
}

/* One worker does all the work, and the other comes when the chief is done. */
static void who_comes_when_all_is_over_goes(void **state)
{
    (void)state;
    struct program programs[6];
    char folder[TEST_PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", test_temp_dir());
    struct ps_job_daemon *daemon = ps_job_daemon_open(&ps_job, folder);
    static const uint32_t slots[] = {3, 4, 0, 2, 5};
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        start(daemon, folder, slots[i], "task", &programs[slots[i]]);
    }
    check_end(&programs[0], 0, "trained to 180 and 180");
    check_end(&programs[2], 2, "type 2 index 1");
    check_end(&programs[5], 5, "type 4 index 0");
    start(daemon, folder, 1, "task", &programs[1]);
    check_end(&programs[1], 1, "type 2 index 0");
    check_end(&programs[3], 3, "type 3 index 0");
    check_end(&programs[4], 4, "type 3 index 1");
    ps_job_daemon_close(daemon);
}

static void what_a_task_is_not_for_is_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t slot;
        const char *part;
    } cases[] = {
        {0, "mirrored: cadre_strategy_mirrored was called in a task (chief 0)"},
        {0, "serve: 1"},
        {1, "in worker 0 of the job, which has no strategy; return cadre_serve()"},
        {2, "default: cadre_strategy_parameter_server was called in worker 1"},
        {4, "parameter server: cadre_strategy_parameter_server was called in ps 1"},
        {5, "its loop is cadre_next_evaluation"},
        {5, "serve: 1"},
    };
    const char *folder = test_temp_dir();
    struct ps_job_daemon *daemon = ps_job_daemon_open(&ps_job, folder);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct program program;
        start(daemon, folder, cases[i].slot, "misuse", &program);
        check_end(&program, cases[i].slot, cases[i].part);
    }
    ps_job_daemon_close(daemon);
}

/* --- without daemons --- */

/* Different ones: none is free for another before all are found. */
static void find_ports(unsigned ret_ports[6])
{
    int fds[6];
    for (int i = 0; i < 6; i++) {
        struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t bytes = sizeof address;
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        assert_int_equal(bind(fds[i], (struct sockaddr *)&address, sizeof address), 0);
        assert_int_equal(getsockname(fds[i], (struct sockaddr *)&address, &bytes), 0);
        ret_ports[i] = ntohs(address.sin_port);
    }
    for (int i = 0; i < 6; i++) {
        close(fds[i]);
    }
}

static void start_in_cluster(const char *cluster, const char *folder, uint32_t slot,
    const char *what, struct program *ret_program)
{
    char config[1024];
    char output[TEST_PATH_BYTES];
    enum role role = ps_job_role(&ps_job, slot);
    snprintf(config, sizeof config, "TF_CONFIG={%s, \"task\": {\"type\": \"%s\", \"index\": %u}}",
        cluster, role_name(role), slot - ps_job_first_slot(&ps_job, role));
    snprintf(output, sizeof output, "CADRE_OUTPUT_DIR=%s", folder);
    const char *const argv[] = {self, what, NULL};
    const char *const environment[] = {config, output, "CADRE_CLUSTER_WAIT_S=600", NULL};
    program_start(&(struct program_spec){.argv = argv, .environment = environment}, ret_program);
}

static void a_ps_job_is_started_by_hand_on_addresses(void **state)
{
    (void)state;
    static const char *const parts[] = {"trained to 180 and 180", "type 2 index 0",
        "type 2 index 1", "type 3 index 0", "type 3 index 1", "step 3"};
    char cluster[512];
    unsigned ports[6];
    struct program programs[6];
    const char *folder = test_temp_dir();
    find_ports(ports);
    snprintf(cluster, sizeof cluster,
        "\"cluster\": {\"chief\": [\"127.0.0.1:%u\"], \"worker\": [\"127.0.0.1:%u\", "
        "\"127.0.0.1:%u\"], \"ps\": [\"127.0.0.1:%u\", \"127.0.0.1:%u\"], "
        "\"evaluator\": [\"127.0.0.1:%u\"]}",
        ports[0], ports[1], ports[2], ports[3], ports[4], ports[5]);
    for (uint32_t i = 0; i < 6; i++) {
        start_in_cluster(cluster, folder, (i + 2) % 6, "task", &programs[(i + 2) % 6]);
    }
    for (uint32_t slot = 0; slot < 6; slot++) {
        check_end(&programs[slot], slot, parts[slot]);
    }
}

static bool has_failed(void *data)
{
    char text[LIMIT_TEXT_BYTES];
    ps_job_daemon_failure(data, text);
    return text[0] != '\0';
}

/* A ps that cannot have its memory reports why, and the job fails with that. */
static void a_failure_is_reported(void **state)
{
    (void)state;
    char failure[LIMIT_TEXT_BYTES];
    struct program program;
    struct program_result result;
    const char *folder = test_temp_dir();
    struct ps_job_daemon *daemon = ps_job_daemon_open(&ps_job, folder);
    setenv("CADRE_SERVER_MEMORY", "1000", 1);
    start(daemon, folder, 3, "task", &program);
    program_finish(&program, PROGRAM_DEADLINE_US, &result);
    unsetenv("CADRE_SERVER_MEMORY");
    assert_int_equal(result.exit_code, 1);
    assert_true(test_wait(has_failed, daemon, PROGRAM_DEADLINE_US));
    ps_job_daemon_failure(daemon, failure);
    assert_non_null(strstr(result.err, failure));
    program_result_free(&result);
    ps_job_daemon_close(daemon);
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc > 1) {
        return run_task(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ps_job_of_processes_trains),
        cmocka_unit_test(who_comes_when_all_is_over_goes),
        cmocka_unit_test(a_ps_job_is_started_by_hand_on_addresses),
        cmocka_unit_test(what_a_task_is_not_for_is_refused),
        cmocka_unit_test(a_failure_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
