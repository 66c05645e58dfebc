/* SPDX-License-Identifier: Apache-2.0
 * Plain programs: by hand, and as the tasks of a job. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cadre/cadre.h"
#include "job.h"
#include "plain_task.h"
#include "tests/lib/test.h"

static const char *self;

/* --- what every number of tasks does --- */

static void check_reductions(void)
{
    const uint32_t tasks = cadre_world_size();
    const uint32_t rank = cadre_rank();
    const float own[3] = {(float)rank, 1, -(float)rank};
    float sum[3];
    require(cadre_plain_all_reduce(own, sum, 3, CADRE_F32, CADRE_SUM) == CADRE_OK);
    require(sum[0] == (float)(tasks * (tasks - 1) / 2) && sum[1] == (float)tasks);
    require(sum[2] == -sum[0] && own[1] == 1);
    double mean[1] = {(double)rank};
    require(cadre_plain_all_reduce(NULL, mean, 1, CADRE_F64, CADRE_MEAN) == CADRE_OK);
    require(mean[0] == (tasks - 1) / 2.0);
    int32_t most[1] = {(int32_t)rank};
    require(cadre_plain_all_reduce(most, most, 1, CADRE_I32, CADRE_MAX) == CADRE_OK);
    require(most[0] == (int32_t)tasks - 1);
    int64_t least[1] = {(int64_t)rank + 5};
    require(cadre_plain_all_reduce(NULL, least, 1, CADRE_I64, CADRE_MIN) == CADRE_OK);
    require(least[0] == 5);
    uint8_t product[1] = {2};
    require(cadre_plain_all_reduce(NULL, product, 1, CADRE_U8, CADRE_PROD) == CADRE_OK);
    require(product[0] == 1u << tasks);
    require(cadre_plain_all_reduce(NULL, NULL, 0, CADRE_F32, CADRE_SUM) == CADRE_OK);
}

static void check_copies(void)
{
    const uint32_t tasks = cadre_world_size();
    const uint32_t rank = cadre_rank();
    const uint32_t last = tasks - 1;
    int16_t number = rank == last ? 77 : 0;
    require(cadre_plain_broadcast(&number, 1, CADRE_I16, last) == CADRE_OK);
    require(number == 77);
    char secret[] = "............";
    if (rank == 0) {
        memcpy(secret, "between us", 11);
    }
    require(cadre_plain_broadcast(secret, sizeof secret, CADRE_U8, 0) == CADRE_OK);
    require(strcmp(secret, "between us") == 0);
    const uint16_t own[2] = {(uint16_t)rank, (uint16_t)(rank + 100)};
    uint16_t *all = calloc(2 * (size_t)tasks, sizeof *all);
    require(all != NULL);
    require(cadre_plain_all_gather(own, all, 2, CADRE_BF16) == CADRE_OK); /* any bits */
    for (uint32_t i = 0; i < tasks; i++) {
        require(all[2 * i] == i && all[2 * i + 1] == i + 100);
    }
    free(all);
}

/* Large enough for every way that the mesh has, in memory of either kind. */
static void check_large(void)
{
    const size_t count = 300000;
    float *shared = cadre_plain_alloc(count * sizeof *shared);
    float *own = malloc(count * sizeof *own);
    require(shared != NULL && own != NULL && (uintptr_t)shared % CADRE_TENSOR_ALIGN == 0);
    for (size_t i = 0; i < count; i++) {
        own[i] = shared[i] = 1.0f / (float)(i + 1 + cadre_rank());
    }
    require(cadre_plain_all_reduce(NULL, shared, count, CADRE_F32, CADRE_SUM) == CADRE_OK);
    require(cadre_plain_all_reduce(NULL, own, count, CADRE_F32, CADRE_SUM) == CADRE_OK);
    require(memcmp(shared, own, count * sizeof *own) == 0);
    cadre_plain_free(shared);
    cadre_plain_free(NULL);
    require(cadre_plain_alloc(SIZE_MAX) == NULL);
    free(own);
}

static int values(void)
{
    require(cadre_plain_local_rank() == cadre_rank()); /* one host */
    require(cadre_plain_local_size() == cadre_world_size());
    check_reductions();
    check_copies();
    check_large();
    require(cadre_plain_barrier() == CADRE_OK);
    require(cadre_plain_progress(1, 2) == CADRE_OK);
    require(cadre_plain_report("loss", 0.5) == CADRE_OK);
    return cadre_plain_finish();
}

/* --- tasks that differ --- */

static int disagree(void)
{
    float numbers[8] = {1};
    const bool first = cadre_rank() == 0;
    require(cadre_plain_all_reduce(NULL, numbers, first ? 7 : 8, CADRE_F32, CADRE_SUM) ==
            CADRE_INVALID_ARGUMENT);
    require(names_both());
    require((first ? cadre_plain_barrier() : cadre_plain_broadcast(numbers, 4, CADRE_U8, 0)) ==
            CADRE_INVALID_ARGUMENT);
    require(names_both());
    require(cadre_plain_all_reduce(NULL, numbers, 8, CADRE_F32, first ? CADRE_SUM : CADRE_MEAN) ==
            CADRE_INVALID_ARGUMENT);
    require(names_both());
    require(numbers[0] == 1); /* as they were */
    return cadre_plain_finish();
}

/* A call that one of them cannot make harms no other, and none waits for it. */
static int refused(void)
{
    float numbers[8] = {0};
    const bool first = cadre_rank() == 0;
    cadre_dtype dtype = first ? CADRE_STRING : CADRE_F32;
    require(cadre_plain_all_reduce(NULL, numbers, 8, dtype, CADRE_SUM) == CADRE_INVALID_ARGUMENT);
    require(first ? expected_text("string") : names_both());
    require(cadre_plain_broadcast(numbers, 8, CADRE_F32, first ? 2 : 0) == CADRE_INVALID_ARGUMENT);
    require(first ? expected_text("root 2") : names_both());
    require(cadre_plain_broadcast(NULL, 8, CADRE_F32, 0) == CADRE_INVALID_ARGUMENT);
    require(expected_text("data")); /* both of them */
    check_reductions();
    return cadre_plain_finish();
}

static int early_end(void)
{
    signal(SIGTERM, SIG_IGN); /* the other's end stops the job */
    if (cadre_rank() == 0) {
        require(cadre_plain_finish() == 1);
        return 1;
    }
    require(cadre_plain_barrier() == CADRE_INVALID_ARGUMENT);
    require(names_both());
    fprintf(stderr, "both have the error\n");
    return 1;
}

/* --- a task that is lost --- */

static atomic_int aborts;
static _Atomic pthread_t aborted_by;
static char aborted_for[512];

static void on_abort(cadre_status status, const char *reason, void *user)
{
    require(status == CADRE_ABORTED && user == &aborts);
    require(cadre_rank() < 3);          /* of any thread */
    require(cadre_plain_finish() == 1); /* not here */
    snprintf(aborted_for, sizeof aborted_for, "%s", reason);
    atomic_store(&aborted_by, pthread_self());
    atomic_fetch_add(&aborts, 1);
}

static bool has_aborted(void *data)
{
    (void)data;
    return atomic_load(&aborts) > 0;
}

/* Prints what it reaches: the job is stopped meanwhile. */
static int lose(bool calls)
{
    signal(SIGTERM, SIG_IGN);
    require(cadre_on_abort(on_abort, &aborts) == CADRE_OK);
    require(cadre_on_abort(on_abort, &aborts) == CADRE_FAILED_PRECONDITION);
    cadre_status met = cadre_plain_barrier();
    if (cadre_rank() == 1) {
        raise(SIGKILL);
    }
    require(met == CADRE_OK || met == CADRE_ABORTED); /* it may exit before others have left */
    if (!calls) { /* it waits elsewhere, as in a collective of NCCL */
        require(test_wait(has_aborted, NULL, 20000000));
        require(strstr(aborted_for, "task 1") != NULL);
        require(strstr(aborted_for, "signal 9") != NULL);
    }
    char first[512];
    float number = 1;
    require(cadre_plain_all_reduce(NULL, &number, 1, CADRE_F32, CADRE_SUM) == CADRE_ABORTED);
    snprintf(first, sizeof first, "%s", cadre_error_message());
    require(expected_text("rank 1") || expected_text("task 1"));
    require(cadre_plain_barrier() == CADRE_ABORTED && strcmp(first, cadre_error_message()) == 0);
    require(cadre_plain_broadcast(&number, 1, CADRE_STRING, 0) == CADRE_ABORTED);
    require(cadre_plain_progress(1, 1) == CADRE_ABORTED);
    require(test_wait(has_aborted, NULL, 20000000));
    require(cadre_plain_finish() == 1);
    require(atomic_load(&aborts) == 1);
    require(!pthread_equal(atomic_load(&aborted_by), pthread_self()));
    fprintf(stderr, "survivor %u saw it all\n", cadre_rank());
    return 1;
}

/* --- a task that does not come --- */

static int late(void)
{
    signal(SIGTERM, SIG_IGN);
    require(cadre_plain_barrier() == CADRE_OK);
    if (cadre_rank() == 1) {
        for (;;) {
            pause();
        }
    }
    require(cadre_plain_barrier() == CADRE_DEADLINE_EXCEEDED && expected_text("rank 1"));
    require(cadre_plain_barrier() == CADRE_DEADLINE_EXCEEDED && expected_text("rank 1"));
    fprintf(stderr, "no task waits for ever\n");
    return 1;
}

static int task(const char *what)
{
    if (strcmp(what, "replicas") == 0) {
        require(cadre_plain_init(NULL, NULL) == CADRE_FAILED_PRECONDITION);
        require(expected_text("2 replicas"));
        fprintf(stderr, "one in each task\n");
        return 1;
    }
    if (strcmp(what, "late") == 0) {
        setenv("CADRE_COLLECTIVE_TIMEOUT_S", "1", 1);
    }
    require(cadre_plain_init(NULL, NULL) == CADRE_OK);
    return strcmp(what, "values") == 0     ? values()
           : strcmp(what, "disagree") == 0 ? disagree()
           : strcmp(what, "refused") == 0  ? refused()
           : strcmp(what, "early") == 0    ? early_end()
           : strcmp(what, "late") == 0     ? late()
                                           : lose(strcmp(what, "calls") == 0);
}

/* --- tests --- */

static void *bark(void *user)
{
    *(cadre_status *)user = cadre_plain_barrier();
    return NULL;
}

/* The process is a plain program once: one test after the other checks it. */
static void before_the_beginning(void **state)
{
    (void)state;
    float number = 0;
    assert_int_equal(cadre_plain_barrier(), CADRE_FAILED_PRECONDITION);
    assert_true(expected_text("cadre_plain_barrier") && expected_text("cadre_plain_init"));
    assert_int_equal(
        cadre_plain_all_reduce(NULL, &number, 1, CADRE_F32, CADRE_SUM), CADRE_FAILED_PRECONDITION);
    assert_int_equal(cadre_on_abort(on_abort, NULL), CADRE_FAILED_PRECONDITION);
    assert_int_equal(cadre_plain_progress(0, 0), CADRE_FAILED_PRECONDITION);
    assert_int_equal(cadre_plain_report("x", 0), CADRE_FAILED_PRECONDITION);
    assert_int_equal(cadre_plain_finish(), 1);
    assert_int_equal(cadre_plain_local_rank(), 0);
    assert_int_equal(cadre_plain_local_size(), 1);
    void *memory = cadre_plain_alloc(0);
    assert_non_null(memory);
    cadre_plain_free(memory);
}

static void not_beside_a_strategy(void **state)
{
    (void)state;
    cadre_strategy *strategy = NULL;
    assert_int_equal(cadre_init(NULL, NULL), CADRE_OK);
    assert_int_equal(cadre_strategy_mirrored(1, &strategy), CADRE_OK);
    assert_int_equal(cadre_plain_init(NULL, NULL), CADRE_FAILED_PRECONDITION);
    assert_true(expected_text("strategy"));
    cadre_strategy_release(strategy);
}

static void no_strategy_can_be_made(void)
{
    cadre_strategy *strategy = NULL;
    assert_int_equal(cadre_strategy_default(&strategy), CADRE_FAILED_PRECONDITION);
    assert_true(expected_text("cadre_strategy_default") && expected_text("cadre_plain_init"));
    assert_null(strategy);
    assert_int_equal(cadre_strategy_mirrored(1, &strategy), CADRE_FAILED_PRECONDITION);
    assert_int_equal(cadre_strategy_one_device("CPU:0", &strategy), CADRE_FAILED_PRECONDITION);
    assert_null(strategy);
}

static void alone(void **state)
{
    (void)state;
    assert_int_equal(cadre_plain_init(NULL, NULL), CADRE_OK); /* after cadre_init, too */
    assert_int_equal(cadre_plain_init(NULL, NULL), CADRE_FAILED_PRECONDITION);
    assert_int_equal(cadre_world_size(), 1);
    assert_int_equal(cadre_rank(), 0);
    no_strategy_can_be_made();
    check_reductions();
    check_copies();
    check_large();
    pthread_t thread;
    cadre_status status = CADRE_UNKNOWN;
    assert_int_equal(pthread_create(&thread, NULL, bark, &status), 0);
    pthread_join(thread, NULL);
    assert_int_equal(status, CADRE_OK); /* another thread, but not at once */
}

static void arguments_that_are_none(void **state)
{
    (void)state;
    float numbers[8] = {0};
    const cadre_status invalid = CADRE_INVALID_ARGUMENT;
    assert_int_equal(
        cadre_plain_all_reduce(NULL, numbers, 8, CADRE_DTYPE_NONE, CADRE_SUM), invalid);
    assert_true(expected_text("type"));
    assert_int_equal(cadre_plain_all_reduce(NULL, numbers, 8, (cadre_dtype)99, CADRE_SUM), invalid);
    assert_true(expected_text("99"));
    assert_int_equal(cadre_plain_all_reduce(NULL, numbers, 8, CADRE_BOOL, CADRE_SUM), invalid);
    assert_int_equal(
        cadre_plain_all_reduce(NULL, numbers, 8, CADRE_F32, (cadre_reduce_op)7), invalid);
    assert_true(expected_text("7"));
    assert_int_equal(cadre_plain_all_reduce(NULL, numbers, 8, CADRE_I32, CADRE_MEAN), invalid);
    assert_true(expected_text("floating"));
    assert_int_equal(cadre_plain_all_reduce(numbers, NULL, 8, CADRE_F32, CADRE_SUM), invalid);
    assert_true(expected_text("cadre_plain_all_reduce was given NULL as its argument 'into'"));
    assert_int_equal(
        cadre_plain_all_reduce(numbers, numbers + 1, 4, CADRE_F32, CADRE_SUM), invalid);
    assert_true(expected_text("overlap"));
    assert_int_equal(
        cadre_plain_all_reduce(numbers + 1, numbers, 4, CADRE_F32, CADRE_SUM), invalid);
    assert_int_equal(cadre_plain_all_gather(NULL, numbers, 8, CADRE_F32), invalid);
    assert_int_equal(cadre_plain_all_gather(numbers, numbers, 8, CADRE_F32), invalid);
    assert_int_equal(cadre_plain_broadcast(numbers, SIZE_MAX / 4, CADRE_F64, 0), invalid);
    assert_true(expected_text("memory"));
    assert_int_equal(cadre_plain_broadcast(numbers, 1, CADRE_F32, 1), invalid);
    assert_true(expected_text("root 1"));
    assert_int_equal(cadre_plain_broadcast(NULL, 1, CADRE_F32, 0), invalid);
    assert_true(expected_text("cadre_plain_broadcast was given NULL as its argument 'data'"));
    assert_int_equal(cadre_plain_broadcast(numbers, SIZE_MAX, CADRE_U8, 0), invalid);
    assert_true(expected_text("cadre_plain_broadcast was called with"));
    assert_int_equal(cadre_on_abort(NULL, NULL), invalid);
    assert_int_equal(cadre_plain_progress(9, 2), invalid);
    assert_true(expected_text("step 9 of 2"));
    assert_int_equal(cadre_plain_progress(9, 9), CADRE_OK);
    assert_int_equal(cadre_plain_progress(9, 0), CADRE_OK);
    assert_int_equal(cadre_plain_report("", 1), invalid);
    for (int i = 0; i < 16; i++) {
        char name[] = {(char)('a' + i), '\0'};
        assert_int_equal(cadre_plain_report(name, i), CADRE_OK);
    }
    assert_int_equal(cadre_plain_report("one more", 1), CADRE_RESOURCE_EXHAUSTED);
    check_reductions(); /* nothing of it did any harm */
}

static void the_end(void **state)
{
    (void)state;
    assert_int_equal(cadre_on_abort(on_abort, &aborts), CADRE_OK);
    assert_int_equal(cadre_plain_finish(), 0);
    assert_int_equal(atomic_load(&aborts), 0);
    assert_int_equal(cadre_plain_barrier(), CADRE_FAILED_PRECONDITION);
    assert_true(expected_text("after the end"));
    assert_int_equal(cadre_plain_finish(), 1);
    assert_int_equal(cadre_plain_init(NULL, NULL), CADRE_FAILED_PRECONDITION);
    no_strategy_can_be_made();
    assert_int_equal(cadre_world_size(), 1);
}

static void several_tasks(void **state)
{
    (void)state;
    job_must_succeed(self, "values", 1, 0);
    job_must_succeed(self, "values", 2, 0);
    job_must_succeed(self, "values", 3, 1);
    job_must_succeed(self, "values", 4, 0);
}

static void tasks_that_differ_are_reported(void **state)
{
    (void)state;
    job_must_succeed(self, "disagree", 2, 0);
    job_must_succeed(self, "refused", 2, 0);
    job_must_fail(self, "early", 2, 0, "both have the error");
    job_must_fail(self, "replicas", 1, 2, "one in each task");
}

static void a_task_is_lost(void **state)
{
    (void)state;
    job_must_fail(self, "calls", 3, 0, "survivor 0 saw it all");
    job_must_fail(self, "calls", 3, 0, "survivor 2 saw it all");
    job_must_fail(self, "waits", 2, 0, "survivor 0 saw it all");
    job_must_fail(self, "waits", 3, 0, "task 1");
}

static void a_task_does_not_come(void **state)
{
    (void)state;
    job_must_fail(self, "late", 2, 0, "no task waits for ever");
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return task(argv[1]);
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_the_beginning),
        cmocka_unit_test(not_beside_a_strategy),
        cmocka_unit_test(alone),
        cmocka_unit_test(arguments_that_are_none),
        cmocka_unit_test(the_end),
        cmocka_unit_test(several_tasks),
        cmocka_unit_test(tasks_that_differ_are_reported),
        cmocka_unit_test(a_task_is_lost),
        cmocka_unit_test(a_task_does_not_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
