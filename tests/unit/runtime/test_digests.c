/* SPDX-License-Identifier: Apache-2.0
 * Replicas whose states differ are found and named; those whose states are equal are not. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "tests/lib/program.h"
#include "training.h"
#include "worker/library/runtime/digests/digests.h"
#include "worker/library/runtime/digests/digests_part.h"
#include "worker/library/runtime/state/layout/state_hash.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

static const char *self;

/* --- a program --- */

/* In step `at` replica `who` writes another number into `variable`. */
struct fault {
    cadre_variable *variable;
    cadre_variable *other;
    uint64_t at;
    uint32_t who; /* UINT32_MAX: none */
    bool silent;  /* no replica makes a collective */
};

static cadre_status write_numbers(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const struct fault *fault = user;
    uint64_t position = cadre_replica_strategy(replica)->step.position;
    cadre_status status =
        fault->silent ? CADRE_OK : cadre_all_reduce(replica, CADRE_SUM, NULL, 0, NULL);
    if (status != CADRE_OK) {
        return status;
    }
    float *written = cadre_variable_write(replica, fault->variable);
    float *counted = cadre_variable_write(replica, fault->other);
    if (written == NULL || counted == NULL) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    bool wrong = position == fault->at && cadre_replica_id(replica) == fault->who;
    written[0] = (float)position + (wrong ? 0.5f : 0);
    counted[0] += 1;
    return CADRE_OK;
}

static struct fault variables_of(cadre_strategy *strategy)
{
    struct fault fault = {.at = 0, .who = UINT32_MAX};
    assert_public_ok(
        cadre_variable_create(strategy, "written", CADRE_F32, 0, NULL, NULL, &fault.variable));
    assert_public_ok(
        cadre_variable_create(strategy, "counted", CADRE_F32, 0, NULL, NULL, &fault.other));
    return fault;
}

static cadre_status run(cadre_strategy *strategy, struct fault *fault)
{
    return cadre_run(strategy, write_numbers, fault, NULL, 0, NULL);
}

/* --- by hand --- */

static void two_that_are_the_same_go_on(void **state)
{
    (void)state;
    for (int silent = 0; silent < 2; silent++) {
        cadre_strategy *strategy = training_strategy(2);
        struct fault fault = variables_of(strategy);
        fault.silent = silent == 1;
        for (uint64_t i = 0; i < 50; i++) {
            assert_public_ok(run(strategy, &fault));
            if (i < 2) { /* nothing is measured before: each is compared */
                assert_int_equal(strategy->step.verified.position, i);
            }
            assert_true(strategy->step.verified.digest != 0);
            assert_true(strategy->step.verified.position <= i);
        }
        assert_int_equal(cadre_finish(strategy), 0);
    }
}

static void of_two_that_differ_none_knows_who_is_right(void **state)
{
    (void)state;
    for (uint32_t who = 0; who < 2; who++) {
        for (int silent = 0; silent < 2; silent++) {
            cadre_strategy *strategy = training_strategy(2);
            struct fault fault = variables_of(strategy);
            fault.who = who;
            fault.silent = silent == 1;
            assert_public_ok(run(strategy, &fault));
            for (int i = 0; i < 2; i++) { /* nothing mends it */
                assert_public_error(run(strategy, &fault), CADRE_DATA_LOSS,
                    "the replicas' states differ after 1 steps: replica 0 and replica 1 do not "
                    "hold the same in variable 'written', and no state is that of most replicas; "
                    "look for an uninitialised value");
            }
            assert_int_equal(strategy_position(strategy), 1);
            assert_int_equal(cadre_finish(strategy), 1);
        }
    }
}

static void the_one_that_is_not_as_most_is_named(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(5);
    struct fault fault = variables_of(strategy);
    fault.who = 3;
    assert_public_ok(run(strategy, &fault));
    assert_public_error(run(strategy, &fault), CADRE_DATA_LOSS,
        "differ after 1 steps: replica 3 does not hold in variable 'written' what the other 4 "
        "hold");
    cadre_strategy_release(strategy);
    strategy = training_strategy(5);
    fault = variables_of(strategy);
    assert_public_ok(run(strategy, &fault));
    *(float *)fault.other->components[2].value = 100;
    *(float *)fault.other->components[4].value = 200;
    assert_public_error(run(strategy, &fault), CADRE_DATA_LOSS,
        "replica 2 and 1 other do not hold in variable 'counted' what the other 3 hold");
    cadre_strategy_release(strategy);
}

/* One that paused, and whose state is another one now, may have passed that on to all others. */
static void what_changed_where_it_paused_still_is_found(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct fault fault = variables_of(strategy);
    strategy->digests->interval.fixed = 1;
    assert_public_ok(run(strategy, &fault));
    strategy->digests->paused = (struct verified){.position = 0, .digest = 4711};
    assert_public_ok(run(strategy, &fault)); /* that step is applied */
    strategy->digests->paused =
        (struct verified){.position = 2, .digest = state_digest(&strategy->digests->hashes[0])};
    assert_public_error(run(strategy, &fault), CADRE_DATA_LOSS,
        "differ after 2 steps: replica 0 and 1 other do not hold in their variables what they held "
        "before that step when the job regrouped; look");
    cadre_strategy_release(strategy);
    /* One of several, when it was hashed at the pause. */
    strategy = training_strategy(3);
    fault = variables_of(strategy);
    assert_public_ok(run(strategy, &fault));
    struct verified *paused = &strategy->digests->paused;
    paused->position = 1;
    fault_arm("state_hash.flip", 1);
    assert_int_equal(digests_at_end(strategy, &paused->digest, &(struct cadre_error){0}), CADRE_OK);
    assert_true(fault_disarm());
    assert_public_error(run(strategy, &fault), CADRE_DATA_LOSS,
        " does not hold in variable 'counted' what it held before that step when the job "
        "regrouped");
    cadre_strategy_release(strategy);
}

/* Collectives of other kinds send it in a call of their own. */
static cadre_status broadcast_first(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    return cadre_broadcast(replica, 0, NULL, 0);
}

static cadre_status start_first(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    cadre_collective *started;
    cadre_status status = cadre_all_reduce_start(replica, CADRE_SUM, NULL, 0, NULL, &started);
    return status == CADRE_OK ? cadre_collective_wait(started) : status;
}

static void whatever_the_first_collective_is(void **state)
{
    (void)state;
    static const cadre_replica_function functions[2] = {broadcast_first, start_first};
    for (int i = 0; i < 2; i++) {
        cadre_strategy *strategy = training_strategy(3);
        struct fault fault = variables_of(strategy);
        assert_public_ok(cadre_run(strategy, functions[i], NULL, NULL, 0, NULL));
        assert_true(strategy->step.verified.digest != 0);
        *(float *)fault.other->components[1].value = 100;
        assert_public_error(cadre_run(strategy, functions[i], NULL, NULL, 0, NULL), CADRE_DATA_LOSS,
            "replica 1 does not hold in variable 'counted' what the other 2 hold");
        cadre_strategy_release(strategy);
    }
}

static void what_differs_is_not_saved(void **state)
{
    (void)state;
    for (int wait = 0; wait < 2; wait++) {
        cadre_strategy *strategy = training_strategy(3);
        struct fault fault = variables_of(strategy);
        assert_public_ok(run(strategy, &fault));
        assert_public_ok(cadre_save(strategy, wait == 1));
        assert_int_equal(strategy->step.verified.position, 1);
        assert_public_ok(run(strategy, &fault));
        *(float *)fault.other->components[2].value = 100;
        assert_public_error(cadre_save(strategy, wait == 1), CADRE_DATA_LOSS,
            "after 2 steps: replica 2 does not hold in variable 'counted' what the other 2 hold");
        assert_public_error(run(strategy, &fault), CADRE_DATA_LOSS, "after 2 steps");
        assert_int_equal(cadre_finish(strategy), 1);
    }
}

static void what_differs_at_the_end_is_reported(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct fault fault = variables_of(strategy);
    assert_public_ok(run(strategy, &fault));
    *(float *)fault.other->components[1].value = 100;
    assert_int_equal(cadre_finish(strategy), 1);
    assert_non_null(strstr(cadre_error_message(),
        "after 1 steps: replica 0 and replica 1 do not hold the same in variable "
        "'counted'"));
}

/* The writer hashes its copy: the digest must be the one that the replicas exchange. */
static void a_checkpoint_has_the_digest_that_was_compared(void **state)
{
    (void)state;
    for (uint32_t replicas = 1; replicas <= 2; replicas++) {
        uint64_t mine = 7;
        struct cadre_error error;
        char path[TEST_PATH_BYTES];
        char wanted[64];
        char *text;
        size_t size;
        cadre_variable *words;
        cadre_strategy *strategy = training_strategy(replicas);
        struct fault fault = variables_of(strategy);
        assert_public_ok(
            cadre_variable_create(strategy, "words", CADRE_STRING, 0, NULL, NULL, &words));
        assert_public_ok(cadre_state_register(strategy, "mine", &mine, sizeof mine));
        assert_public_ok(run(strategy, &fault));
        assert_public_ok(run(strategy, &fault));
        assert_public_ok(cadre_save(strategy, true));
        struct state_hashes hashes = {0};
        assert_ok(state_hash_all(strategy, replicas - 1, &hashes, &error), &error);
        uint64_t digest = state_digest(&hashes);
        state_hashes_clear(&hashes);
        assert_int_equal(cadre_finish(strategy), 0);
        test_path(path, training_folder(), "checkpoint-2.json");
        assert_ok(file_read(path, 65536, &text, &size, &error), &error);
        snprintf(wanted, sizeof wanted, "\"digest\":\"%016llx\"", (unsigned long long)digest);
        assert_non_null(strstr(text, wanted));
        free(text);
    }
}

/* --- as a job --- */

static int exit_of(cadre_strategy *strategy, cadre_status status)
{
    if (status != CADRE_OK) {
        fprintf(stderr, "%s: %s\n", cadre_status_name(status), cadre_error_message());
        cadre_strategy_release(strategy);
        return 3;
    }
    return cadre_finish(strategy);
}

static cadre_status task_of(const char *what, cadre_strategy *strategy)
{
    static uint64_t mine;
    bool off = strcmp(what, "off") == 0;
    struct fault fault = {.who = strcmp(what, "registered") == 0 ? UINT32_MAX : 1, .at = 4};
    struct fault variables = {.who = UINT32_MAX};
    CADRE_CHECK(
        cadre_variable_create(strategy, "written", CADRE_F32, 0, NULL, NULL, &variables.variable));
    CADRE_CHECK(
        cadre_variable_create(strategy, "counted", CADRE_F32, 0, NULL, NULL, &variables.other));
    CADRE_CHECK(cadre_state_register(strategy, "mine", &mine, sizeof mine));
    fault.variable = variables.variable;
    fault.other = variables.other;
    fault.who = strcmp(what, "clean") == 0 || strcmp(what, "every") == 0 ? UINT32_MAX : fault.who;
    for (uint64_t i = 0; i < 12; i++) {
        bool flips = strcmp(what, "registered") == 0 && i == 4 && strategy->roster.rank == 1;
        mine = i + (flips ? 1000 : 0);
        CADRE_TRY(run(strategy, &fault));
        mine = i;
        const struct verified *verified = &strategy->step.verified;
        uint64_t every = strcmp(what, "every") == 0 ? i / 5 * 5 : verified->position;
        if (off != (verified->digest == 0) || verified->position != every) {
            return cadre_fail(
                CADRE_INTERNAL, "step %d verified %d", (int)i, (int)verified->position);
        }
    }
    return CADRE_OK;
}

static int task(const char *what)
{
    cadre_strategy *strategy;
    if (strcmp(what, "off") == 0) {
        setenv("CADRE_VERIFY_STATE", "off", 1);
    } else if (strcmp(what, "every") == 0) {
        setenv("CADRE_VERIFY_STATE", "5", 1);
    } else {
        setenv("CADRE_VERIFY_STATE", "1", 1);
    }
    if (cadre_init(NULL, NULL) != CADRE_OK || cadre_strategy_default(&strategy) != CADRE_OK) {
        fprintf(stderr, "%s\n", cadre_error_message());
        return 2;
    }
    return exit_of(strategy, task_of(what, strategy));
}

static void tasks_that_are_the_same_go_on(void **state)
{
    (void)state;
    job_must_succeed(self, "clean", 3, 1);
    job_must_succeed(self, "clean", 2, 2);
    job_must_succeed(self, "every", 2, 1);
    job_must_succeed(self, "every", 1, 3);
}

static void none_compares_where_it_is_off(void **state)
{
    (void)state;
    job_must_succeed(self, "off", 2, 1);
    job_must_succeed(self, "off", 1, 2);
}

static void a_task_that_differs_is_named(void **state)
{
    (void)state;
    job_must_fail(self, "flips", 3, 1,
        "replica 1 (task 1) does not hold in variable 'written' what the other 2 hold");
    job_must_fail(self, "registered", 3, 1,
        "replica 1 (task 1) does not hold in the registered state 'mine' what the other 2 hold");
}

/* --- a job that goes on --- */

static const char *marker; /* of the task: a file that is there once a fault was made */

/* Once in all attempts of the job. */
static bool makes_fault(void)
{
    int fd = open(marker, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

static cadre_status flip(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    const struct fault *fault = user;
    uint64_t position = cadre_replica_strategy(replica)->step.position;
    cadre_status status = write_numbers(replica, inputs, outputs, user);
    if (status == CADRE_OK && position == fault->at && cadre_replica_id(replica) == 1 &&
        makes_fault()) {
        uint8_t *bytes = cadre_variable_write(replica, fault->other);
        bytes[0] ^= 1;
    }
    return status;
}

static int task_that_flips_once(const char *path)
{
    cadre_strategy *strategy;
    struct fault fault = {.who = UINT32_MAX};
    marker = path;
    setenv("CADRE_VERIFY_STATE", "3", 1);
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(
        cadre_variable_create(strategy, "written", CADRE_F32, 0, NULL, NULL, &fault.variable));
    CADRE_CHECK(cadre_variable_create(strategy, "counted", CADRE_F32, 0, NULL, NULL, &fault.other));
    fault.at = 16;
    while (cadre_strategy_position(strategy) < 30) {
        CADRE_CHECK(cadre_run(strategy, flip, &fault, NULL, 0, NULL));
    }
    if (*(const float *)cadre_variable_read(NULL, fault.other) != 30) {
        return 4;
    }
    return cadre_finish(strategy);
}

static cadre_status count_up(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    float *counted = cadre_variable_write(replica, user);
    if (counted == NULL) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    counted[0] += 1;
    return CADRE_OK;
}

/* The third task dies once, and comes back; before its first step one bit of it is another. */
static int task_that_joins(const char *path)
{
    static int32_t numbers[60];
    char dies[TEST_PATH_BYTES];
    const int64_t rows = 60;
    cadre_strategy *strategy;
    cadre_variable *counted;
    cadre_tensor *tensor;
    cadre_distributed_dataset *data;
    cadre_per_replica *batch;
    snprintf(dies, sizeof dies, "%s.dies", path);
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_variable_create(strategy, "counted", CADRE_F32, 0, NULL, NULL, &counted));
    CADRE_CHECK(cadre_tensor_from_data(CADRE_I32, 1, &rows, numbers, &tensor));
    cadre_dataset *few = cadre_dataset_batch(cadre_dataset_tensor_slices(&tensor, 1), 3, false);
    CADRE_CHECK(cadre_distribute_dataset(strategy, few, NULL, &data));
    cadre_tensor_release(tensor);
    bool third = strcmp(getenv("CADRE_SLOT"), "2") == 0;
    bool came = false;
    while (cadre_next_epoch(data, 1, NULL)) {
        while (cadre_next(data, &batch) == CADRE_OK) {
            uint64_t position = cadre_strategy_position(strategy);
            marker = dies;
            if (third && position == 7 && makes_fault()) {
                _exit(1);
            }
            marker = path;
            if (third && !came && position > 0 && makes_fault()) {
                *(uint8_t *)counted->components[0].value ^= 1;
            }
            came = true;
            CADRE_CHECK(cadre_run(strategy, count_up, counted, batch, 0, NULL));
        }
    }
    return *(const float *)cadre_variable_read(NULL, counted) != 20 ? 4 : cadre_finish(strategy);
}

static void a_joiner_that_differs_by_a_bit_is_found(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct job_end end;
    test_path(path, test_temp_dir(), "fault");
    const char *arguments[] = {"join", path};
    const struct local_options options = {.program = self,
        .arguments = arguments,
        .argument_count = 2,
        .tasks = 3,
        .replicas = 1,
        .output = test_temp_dir(),
        .max_restarts = 5,
        .checkpoint_every = 5,
        .checkpoints_kept = 10,
        .grace_us = 1000000};
    job_run(&options, &end);
    if (end.exit_code != 0 || access(path, F_OK) != 0 ||
        strstr(end.messages, "in variable 'counted'") == NULL) {
        job_wrong("join", &end);
    }
}

/* All are started again from the newest checkpoint that was verified, and end as if nothing had
 * been. */
static void a_job_goes_on_from_what_was_verified(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct job_end end;
    for (uint32_t tasks = 2; tasks <= 3; tasks++) {
        test_path(path, test_temp_dir(), "fault");
        const char *arguments[] = {"once", path};
        const struct local_options options = {.program = self,
            .arguments = arguments,
            .argument_count = 2,
            .tasks = tasks,
            .replicas = 1,
            .output = test_temp_dir(),
            .max_restarts = 3,
            .checkpoint_every = 5,
            .checkpoints_kept = 10,
            .grace_us = 1000000};
        job_run(&options, &end);
        if (end.exit_code != 0 || access(path, F_OK) != 0 ||
            strstr(end.messages, "in variable 'counted'") == NULL) {
            job_wrong("once", &end);
        }
    }
}

/* --- as a cluster by hand --- */

#define TASKS_MAX 3

static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* Each task ends with `exit_code`, and prints `part`. */
static void run_cluster(const char *what, uint32_t tasks, int exit_code, const char *part)
{
    static char config[TASKS_MAX][512];
    static char output[TASKS_MAX][TEST_PATH_BYTES + 32];
    static struct program programs[TASKS_MAX];
    char addresses[256] = "";
    const char *argv[] = {self, what, NULL};
    for (uint32_t i = 0; i < tasks; i++) {
        size_t used = strlen(addresses);
        snprintf(addresses + used, sizeof addresses - used, "%s\"127.0.0.1:%u\"", i > 0 ? ", " : "",
            free_port());
    }
    for (uint32_t i = 0; i < tasks; i++) {
        snprintf(config[i], sizeof config[i],
            "TF_CONFIG={\"cluster\": {\"worker\": [%s]}, "
            "\"task\": {\"type\": \"worker\", \"index\": %u}}",
            addresses, i);
        snprintf(output[i], sizeof output[i], "CADRE_OUTPUT_DIR=%s", test_temp_dir());
        const char *environment[] = {config[i], output[i], NULL};
        program_start(
            &(struct program_spec){.argv = argv, .environment = environment}, &programs[i]);
    }
    for (uint32_t i = 0; i < tasks; i++) {
        struct program_result result;
        program_finish(&programs[i], PROGRAM_DEADLINE_US, &result);
        if (result.exit_code != exit_code || strstr(result.err, part) == NULL) {
            fail_msg("%s: task %u of %u: exit code %d, said\n%s%s", what, i, tasks,
                result.exit_code, result.out, result.err);
        }
        program_result_free(&result);
    }
}

/* No daemon can start them again: it is final, and all print the same. */
static void all_tasks_by_hand_end(void **state)
{
    (void)state;
    run_cluster("clean", 2, 0, "");
    run_cluster("flips", 2, 3,
        "DATA_LOSS: the replicas' states differ after 5 steps: replica 0 (task 0) and replica 1 "
        "(task 1) do not hold the same in variable 'written'");
    run_cluster("registered", 3, 3,
        "DATA_LOSS: the replicas' states differ after 4 steps: replica 1 (task 1) does not hold "
        "in the registered state 'mine' what the other 2 hold; look for");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_that_are_the_same_go_on),
        cmocka_unit_test(of_two_that_differ_none_knows_who_is_right),
        cmocka_unit_test(the_one_that_is_not_as_most_is_named),
        cmocka_unit_test(what_changed_where_it_paused_still_is_found),
        cmocka_unit_test(whatever_the_first_collective_is),
        cmocka_unit_test(what_differs_is_not_saved),
        cmocka_unit_test(what_differs_at_the_end_is_reported),
        cmocka_unit_test(a_checkpoint_has_the_digest_that_was_compared),
        cmocka_unit_test(tasks_that_are_the_same_go_on),
        cmocka_unit_test(none_compares_where_it_is_off),
        cmocka_unit_test(a_task_that_differs_is_named),
        cmocka_unit_test(a_job_goes_on_from_what_was_verified),
        cmocka_unit_test(a_joiner_that_differs_by_a_bit_is_found),
        cmocka_unit_test(all_tasks_by_hand_end),
    };
    self = argv[0];
    if (argc > 2) {
        return strcmp(argv[1], "join") == 0 ? task_that_joins(argv[2])
                                            : task_that_flips_once(argv[2]);
    }
    if (argc > 1) {
        return task(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
