/* SPDX-License-Identifier: Apache-2.0
 * cadre_plain_reduce_scatter: beside a loop over the tasks' numbers, and beside
 * cadre_plain_all_reduce, bit for bit, for all types and operations. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/cadre.h"
#include "job.h"
#include "plain_task.h"
#include "tests/lib/test.h"

static const char *self;

/* --- the same bits as all_reduce gives there --- */

/* Any finite number of the type, so that sums depend on their order: the exponent is near 1. */
static void fill(uint8_t *bytes, size_t count, cadre_dtype dtype, uint32_t seed)
{
    uint64_t bits = 88172645463325252u + seed * UINT64_C(0x9e3779b97f4a7c15);
    size_t size = cadre_dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        const double f64 = 0.5 + (double)(bits >> 40) / (1 << 24);
        const float f32 = (float)f64;
        const uint16_t f16 = (uint16_t)(0x3800 | (bits & 0x3ff));
        const uint16_t bf16 = (uint16_t)(0x3f00 | (bits & 0x7f));
        const void *from = dtype == CADRE_F64    ? (const void *)&f64
                           : dtype == CADRE_F32  ? (const void *)&f32
                           : dtype == CADRE_F16  ? (const void *)&f16
                           : dtype == CADRE_BF16 ? (const void *)&bf16
                                                 : (const void *)&bits;
        memcpy(bytes + i * size, from, size);
    }
}

static void check_one(
    uint8_t *from, uint8_t *into, uint8_t *all, size_t count, cadre_dtype dtype, cadre_reduce_op op)
{
    const size_t whole = count * cadre_world_size();
    const size_t bytes = count * cadre_dtype_bytes(dtype);
    fill(from, whole, dtype, cadre_rank());
    memset(into, 0, bytes);
    require(cadre_plain_all_reduce(from, all, whole, dtype, op) == CADRE_OK);
    require(cadre_plain_reduce_scatter(from, into, count, dtype, op) == CADRE_OK);
    require(memcmp(into, all + bytes * cadre_rank(), bytes) == 0);
    fill(all, whole, dtype, cadre_rank());
    require(memcmp(from, all, bytes * cadre_world_size()) == 0); /* only read */
}

/* In the mesh's small way, staged, and in shared memory; sizes that no chunk divides. */
static void check_all(size_t count, bool shared)
{
    const size_t bytes = count * sizeof(double);
    const size_t whole = bytes * cadre_world_size();
    uint8_t *from = shared ? cadre_plain_alloc(whole) : malloc(whole);
    uint8_t *into = shared ? cadre_plain_alloc(bytes) : malloc(bytes);
    uint8_t *all = malloc(whole);
    require(from != NULL && into != NULL && all != NULL);
    for (cadre_dtype dtype = CADRE_F64; dtype <= CADRE_U8; dtype++) {
        for (cadre_reduce_op op = CADRE_SUM; op <= CADRE_PROD; op++) {
            if (op != CADRE_MEAN || dtype <= CADRE_BF16) {
                check_one(from, into, all, count, dtype, op);
            }
        }
    }
    free(all);
    if (shared) {
        cadre_plain_free(from);
        cadre_plain_free(into);
    } else {
        free(from);
        free(into);
    }
}

/* --- beside a loop --- */

static int64_t number_of(uint32_t task, size_t at)
{
    return (int64_t)((task * 7 + at * 13) % 23) - 11;
}

static int64_t combined(size_t at, cadre_reduce_op op)
{
    int64_t result = number_of(0, at);
    for (uint32_t task = 1; task < cadre_world_size(); task++) {
        const int64_t other = number_of(task, at);
        result = op == CADRE_SUM    ? result + other
                 : op == CADRE_PROD ? result * other
                 : op == CADRE_MIN  ? (other < result ? other : result)
                                    : (other > result ? other : result);
    }
    return result;
}

static void check_serial(size_t count)
{
    const size_t whole = count * cadre_world_size();
    int64_t *from = malloc(whole * sizeof *from);
    int64_t *into = malloc(count * sizeof *into);
    require(from != NULL && into != NULL);
    for (size_t i = 0; i < whole; i++) {
        from[i] = number_of(cadre_rank(), i);
    }
    const cadre_reduce_op ops[] = {CADRE_SUM, CADRE_PROD, CADRE_MIN, CADRE_MAX};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        require(cadre_plain_reduce_scatter(from, into, count, CADRE_I64, ops[i]) == CADRE_OK);
        for (size_t at = 0; at < count; at++) {
            require(into[at] == combined(count * cadre_rank() + at, ops[i]));
        }
    }
    free(from);
    free(into);
}

static void check_mean(void)
{
    const uint32_t tasks = cadre_world_size();
    double *from = malloc(tasks * sizeof *from);
    double mean = 0;
    require(from != NULL);
    for (uint32_t i = 0; i < tasks; i++) {
        from[i] = cadre_rank() + 100.0 * i;
    }
    require(cadre_plain_reduce_scatter(from, &mean, 1, CADRE_F64, CADRE_MEAN) == CADRE_OK);
    require(mean == 100.0 * cadre_rank() + (tasks - 1) / 2.0);
    free(from);
}

static void check_values(void)
{
    check_serial(1);
    check_serial(1000);
    check_mean();
    check_all(3, false);
    check_all(40001, false);
    check_all(40001, true);
    require(cadre_plain_reduce_scatter(NULL, NULL, 0, CADRE_F32, CADRE_SUM) == CADRE_OK);
}

static int values(void)
{
    check_values();
    return cadre_plain_finish();
}

/* --- errors --- */

static int disagree(void)
{
    float from[8] = {1};
    float into[8] = {5};
    const bool first = cadre_rank() == 0;
    const cadre_status invalid = CADRE_INVALID_ARGUMENT;
    require(cadre_plain_reduce_scatter(from, into, first ? 2 : 3, CADRE_F32, CADRE_SUM) == invalid);
    require(names_both());
    require(cadre_plain_reduce_scatter(from, into, 2, first ? CADRE_F32 : CADRE_I32, CADRE_SUM) ==
            invalid);
    require(names_both());
    require(cadre_plain_reduce_scatter(from, into, 2, CADRE_F32, first ? CADRE_SUM : CADRE_MEAN) ==
            invalid);
    require(names_both());
    /* as many bytes, another call */
    require((first ? cadre_plain_reduce_scatter(from, into, 2, CADRE_F32, CADRE_SUM)
                   : cadre_plain_all_reduce(from, into, 2, CADRE_F32, CADRE_SUM)) == invalid);
    require(names_both() && expected_text("cadre_plain_reduce_scatter"));
    /* one of them cannot make the call */
    require(
        cadre_plain_reduce_scatter(from, first ? NULL : into, 2, CADRE_F32, CADRE_SUM) == invalid);
    require(first ? expected_text("'into'") : names_both());
    /* two parts are read, and the second one would be written to */
    require(cadre_plain_reduce_scatter(from, from + 3, 2, CADRE_F32, CADRE_SUM) == invalid);
    require(expected_text("it reads 16 bytes and writes 8"));
    require(into[0] == 5); /* as it was */
    check_values();
    return cadre_plain_finish();
}

static int lose(void)
{
    signal(SIGTERM, SIG_IGN); /* the loss stops the job */
    static float from[300000];
    static float into[100000];
    require(cadre_plain_barrier() == CADRE_OK);
    if (cadre_rank() == 1) {
        raise(SIGKILL);
    }
    require(cadre_plain_reduce_scatter(from, into, 100000, CADRE_F32, CADRE_SUM) == CADRE_ABORTED);
    require(expected_text("rank 1") || expected_text("task 1"));
    fprintf(stderr, "survivor %u has the error\n", cadre_rank());
    return 1;
}

static int task(const char *what)
{
    require(cadre_plain_init(NULL, NULL) == CADRE_OK);
    return strcmp(what, "values") == 0     ? values()
           : strcmp(what, "disagree") == 0 ? disagree()
                                           : lose();
}

/* --- tests --- */

static void alone(void **state)
{
    (void)state;
    const float number = 0;
    float into = 0;
    assert_int_equal(cadre_plain_reduce_scatter(&number, &into, 1, CADRE_F32, CADRE_SUM),
        CADRE_FAILED_PRECONDITION);
    assert_int_equal(cadre_plain_init(NULL, NULL), CADRE_OK);
    check_values();
}

static void arguments_that_are_none(void **state)
{
    (void)state;
    float numbers[8] = {0};
    const cadre_status invalid = CADRE_INVALID_ARGUMENT;
    assert_int_equal(cadre_plain_reduce_scatter(NULL, numbers, 2, CADRE_F32, CADRE_SUM), invalid);
    assert_true(expected_text("cadre_plain_reduce_scatter was given NULL as its argument 'from'"));
    assert_int_equal(
        cadre_plain_reduce_scatter(numbers, numbers, 2, CADRE_F32, CADRE_SUM), invalid);
    assert_true(expected_text("overlap") && !expected_text("or give NULL"));
    assert_int_equal(
        cadre_plain_reduce_scatter(numbers, numbers + 4, 2, CADRE_BOOL, CADRE_SUM), invalid);
    assert_int_equal(
        cadre_plain_reduce_scatter(numbers, numbers + 4, 2, CADRE_I32, CADRE_MEAN), invalid);
    assert_true(expected_text("floating"));
    assert_int_equal(
        cadre_plain_reduce_scatter(numbers, numbers + 4, SIZE_MAX, CADRE_F32, CADRE_SUM), invalid);
    assert_true(expected_text("memory"));
    assert_int_equal(cadre_plain_finish(), 0);
}

static void several_tasks(void **state)
{
    (void)state;
    const uint32_t tasks[] = {1, 2, 3, 4, 8};
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        job_must_succeed(self, "values", tasks[i], 0);
    }
}

static void tasks_that_differ_are_reported(void **state)
{
    (void)state;
    job_must_succeed(self, "disagree", 2, 0);
}

static void a_task_is_lost(void **state)
{
    (void)state;
    job_must_fail(self, "lose", 3, 0, "survivor 0 has the error");
    job_must_fail(self, "lose", 3, 0, "survivor 2 has the error");
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return task(argv[1]);
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone),
        cmocka_unit_test(arguments_that_are_none),
        cmocka_unit_test(several_tasks),
        cmocka_unit_test(tasks_that_differ_are_reported),
        cmocka_unit_test(a_task_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
