/* SPDX-License-Identifier: Apache-2.0
 * Groups of a plain program's tasks (cadre/plain_group.h): which tasks they have, their
 * collectives and messages, errors among them, and their end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cadre/cadre.h"
#include "job.h"
#include "plain_task.h"
#include "tests/lib/test.h"

static const char *self;
static const cadre_status invalid = CADRE_INVALID_ARGUMENT;

/* --- values --- */

/* Tasks are rows of `columns`: (row, column) of rank r is (r / columns, r % columns). */
struct grid {
    uint32_t columns;
    cadre_plain_group *row;
    cadre_plain_group *column;
};

static struct grid grid_new(uint32_t columns)
{
    struct grid grid = {.columns = columns};
    require(cadre_plain_split(cadre_rank() / columns, 0, &grid.row) == CADRE_OK);
    require(cadre_plain_split(cadre_rank() % columns, 0, &grid.column) == CADRE_OK);
    require(cadre_plain_group_rank(grid.row) == cadre_rank() % columns);
    require(cadre_plain_group_rank(grid.column) == cadre_rank() / columns);
    return grid;
}

/* The sum of a function of the ranks over a row or a column, beside a loop. */
static void check_sums(const struct grid *grid, size_t count, bool shared)
{
    const uint32_t own = cadre_rank();
    const size_t bytes = count * sizeof(int64_t);
    int64_t *numbers = shared ? cadre_plain_alloc(bytes) : malloc(bytes);
    require(numbers != NULL);
    for (int along = 0; along < 2; along++) {
        int64_t sum = 0;
        for (uint32_t rank = 0; rank < cadre_world_size(); rank++) {
            const bool in = along == 0 ? rank / grid->columns == own / grid->columns
                                       : rank % grid->columns == own % grid->columns;
            sum += in ? rank * 100 + 1 : 0;
        }
        for (size_t i = 0; i < count; i++) {
            numbers[i] = own * 100 + 1;
        }
        require(cadre_plain_group_all_reduce(along == 0 ? grid->row : grid->column, NULL, numbers,
                    count, CADRE_I64, CADRE_SUM) == CADRE_OK);
        require(numbers[0] == sum && numbers[count - 1] == sum);
    }
    (shared ? cadre_plain_free : free)(numbers);
}

static void check_copies(const struct grid *grid)
{
    const uint32_t size = cadre_plain_group_size(grid->row);
    const uint32_t rank = cadre_plain_group_rank(grid->row);
    const uint32_t first = cadre_rank() - rank; /* of the row, in the job */
    int32_t value = (int32_t)cadre_rank();
    int32_t all[16] = {0};
    require(cadre_plain_group_broadcast(grid->row, &value, 1, CADRE_I32, size - 1) == CADRE_OK);
    require(value == (int32_t)(first + size - 1));
    value = (int32_t)cadre_rank();
    require(cadre_plain_group_all_gather(grid->row, &value, all, 1, CADRE_I32) == CADRE_OK);
    for (uint32_t i = 0; i < size; i++) {
        require(all[i] == (int32_t)(first + i));
        all[i] = (int32_t)(i + 10);
    }
    require(cadre_plain_group_reduce_scatter(grid->row, all, &value, 1, CADRE_I32, CADRE_MEAN) ==
            invalid); /* of integers */
    require(cadre_plain_group_reduce_scatter(grid->row, all, &value, 1, CADRE_I32, CADRE_SUM) ==
            CADRE_OK);
    require(value == (int32_t)(size * (rank + 10)));
    require(cadre_plain_group_barrier(grid->row) == CADRE_OK);
}

/* A ring in each row, while the columns and the job have messages of their own. */
static void check_messages(const struct grid *grid)
{
    const uint32_t size = cadre_plain_group_size(grid->row);
    const uint32_t rank = cadre_plain_group_rank(grid->row);
    const int64_t sent = cadre_rank();
    int64_t received = -1;
    require(cadre_plain_group_send_recv(grid->row, &sent, 1, (rank + 1) % size, &received, 1,
                (rank + size - 1) % size, CADRE_I64) == CADRE_OK);
    require(received == sent - rank + (rank + size - 1) % size);
    const uint32_t rows = cadre_plain_group_size(grid->column);
    if (cadre_plain_group_rank(grid->column) == 0 && rows > 1) {
        require(cadre_plain_group_send(grid->column, &sent, 1, CADRE_I64, rows - 1) == CADRE_OK);
    } else if (cadre_plain_group_rank(grid->column) == rows - 1 && rows > 1) {
        require(cadre_plain_group_recv(grid->column, &received, 1, CADRE_I64, 0) == CADRE_OK);
        require(received == cadre_rank() % grid->columns);
    }
}

/* The order is that of the key; some tasks are in no group. */
static void check_orders(void)
{
    const uint32_t tasks = cadre_world_size();
    cadre_plain_group *group = NULL;
    require(cadre_plain_split(7, tasks - cadre_rank(), &group) == CADRE_OK);
    require(cadre_plain_group_rank(group) == tasks - 1 - cadre_rank());
    require(cadre_plain_group_size(group) == tasks);
    int32_t value = (int32_t)cadre_rank();
    require(cadre_plain_group_broadcast(group, &value, 1, CADRE_I32, 0) == CADRE_OK);
    require(value == (int32_t)tasks - 1);
    cadre_plain_group_close(group);

    const bool in = cadre_rank() % 2 == 1;
    require(cadre_plain_split(in ? 0 : CADRE_PLAIN_NO_GROUP, 0, &group) == CADRE_OK);
    require((group != NULL) == in);
    require(!in || cadre_plain_group_size(group) == tasks / 2);
    require(!in || cadre_plain_group_barrier(group) == CADRE_OK);
    cadre_plain_group_close(group);
}

/* Groups of a group; the one that they are made of is closed before them. */
static void check_nested(void)
{
    cadre_plain_group *half = NULL;
    cadre_plain_group *part = NULL;
    const bool upper = cadre_rank() >= cadre_world_size() / 2;
    require(cadre_plain_split(upper, 0, &half) == CADRE_OK);
    const uint32_t rank = cadre_plain_group_rank(half);
    require(cadre_plain_group_split(half, rank / 2, 1 - rank % 2, &part) == CADRE_OK);
    cadre_plain_group_close(half);
    const uint32_t size = cadre_plain_group_size(part);
    int32_t sum = (int32_t)rank;
    require(cadre_plain_group_all_reduce(part, NULL, &sum, 1, CADRE_I32, CADRE_SUM) == CADRE_OK);
    require(size == 1 ? sum == (int32_t)rank : sum == (int32_t)(rank / 2 * 4 + 1));
    require(cadre_plain_group_rank(part) == (size == 1 ? 0 : 1 - rank % 2));
    cadre_plain_group_close(part);
}

static void check_values(void)
{
    const uint32_t tasks = cadre_world_size();
    struct grid grid = grid_new(tasks % 2 == 0 ? tasks / 2 : tasks);
    check_sums(&grid, 1, false);
    check_sums(&grid, 50000, false);
    check_sums(&grid, 50000, true);
    check_copies(&grid);
    check_messages(&grid);
    check_orders();
    check_nested();
    check_messages(&grid);
    cadre_plain_group_close(grid.row);
}

static int values(void)
{
    for (int i = 0; i < 3; i++) { /* names and keys are not used twice */
        check_values();
    }
    return cadre_plain_finish(); /* closes the columns */
}

/* --- calls that differ --- */

/* Tasks 1 and 3 are a group, and so are 0 and 2: what differs in one does not touch the other. */
static int disagree(void)
{
    cadre_plain_group *group = NULL;
    const bool odd = cadre_rank() % 2 == 1;
    const bool first = cadre_rank() < 2;
    float numbers[4] = {1, 1, 1, 1};
    require(cadre_plain_split(odd, 0, &group) == CADRE_OK);
    const cadre_status status = cadre_plain_group_all_reduce(
        group, NULL, numbers, odd && first ? 3 : 4, CADRE_F32, CADRE_SUM);
    require(status == (odd ? invalid : CADRE_OK));
    require(numbers[0] == (odd ? 1 : 2));
    require(!odd || (expected_text("task 1 calls cadre_plain_group_all_reduce") &&
                        expected_text("task 3 calls cadre_plain_group_all_reduce")));
    require(cadre_plain_group_broadcast(group, numbers, 1, CADRE_F32, first ? 2 : 0) == invalid);
    require(first ? expected_text("the group has the ranks 0 to 1") : expected_text("refused"));
    /* all make groups, but one */
    if (cadre_rank() == 3) {
        require(cadre_plain_barrier() == invalid);
    } else {
        cadre_plain_group *none = group;
        require(cadre_plain_split(0, 0, &none) == invalid && none == NULL);
    }
    require(
        expected_text("cadre_plain_split") && expected_text("task 3 calls cadre_plain_barrier"));
    check_values();
    return cadre_plain_finish();
}

/* --- losses --- */

/* Rank 1 dies. Its group has the error, and so has the other one, which waits for nothing of it. */
static int lose(void)
{
    signal(SIGTERM, SIG_IGN); /* the loss stops the job */
    cadre_plain_group *group = NULL;
    float number = 1;
    require(cadre_plain_split(cadre_rank() % 2, 0, &group) == CADRE_OK);
    require(cadre_plain_barrier() == CADRE_OK);
    if (cadre_rank() == 1) {
        raise(SIGKILL);
    }
    if (cadre_rank() == 0) { /* task 2 does not come to it */
        require(cadre_plain_group_barrier(group) == CADRE_ABORTED);
    } else if (cadre_rank() == 2) {
        require(cadre_plain_barrier() == CADRE_ABORTED);
    } else {
        require(cadre_plain_group_all_reduce(group, NULL, &number, 1, CADRE_F32, CADRE_SUM) ==
                CADRE_ABORTED);
    }
    require(expected_text("rank 1") || expected_text("task 1"));
    require(cadre_plain_group_barrier(group) == CADRE_ABORTED);
    fprintf(stderr, "survivor %u has the error\n", cadre_rank());
    return 1;
}

static int late(void)
{
    cadre_plain_group *group = NULL;
    require(cadre_plain_split(cadre_rank() > 0, 0, &group) == CADRE_OK);
    while (cadre_rank() == 0 || cadre_rank() == 3) {
        pause();
    }
    signal(SIGTERM, SIG_IGN);
    const cadre_status status = cadre_plain_group_barrier(group);
    require(status == CADRE_DEADLINE_EXCEEDED || status == CADRE_ABORTED);
    if (status == CADRE_DEADLINE_EXCEEDED) { /* at least the first of the two */
        require(expected_text("rank 3"));    /* its rank in the job; 2 in the group */
        require(expected_text("calls cadre_plain_group_barrier and waited longer"));
        fprintf(stderr, "no task waits for ever\n");
    }
    return 1;
}

static int task(const char *what)
{
    if (strcmp(what, "late") == 0) {
        setenv("CADRE_COLLECTIVE_TIMEOUT_S", "1", 1);
    }
    require(cadre_plain_init(NULL, NULL) == CADRE_OK);
    return strcmp(what, "values") == 0     ? values()
           : strcmp(what, "disagree") == 0 ? disagree()
           : strcmp(what, "late") == 0     ? late()
                                           : lose();
}

/* --- tests --- */

static void alone(void **state)
{
    (void)state;
    cadre_plain_group *group = NULL;
    assert_int_equal(cadre_plain_split(0, 0, &group), CADRE_FAILED_PRECONDITION);
    assert_null(group);
    assert_int_equal(cadre_plain_init(NULL, NULL), CADRE_OK);
    check_values();
}

static void groups_that_are_none(void **state)
{
    (void)state;
    cadre_plain_group *group = NULL;
    float number = 0;
    assert_int_equal(cadre_plain_split(0, 0, NULL), invalid);
    assert_true(expected_text("'ret_group'"));
    assert_int_equal(cadre_plain_group_barrier(NULL), invalid);
    assert_true(expected_text("cadre_plain_group_barrier was given NULL as its argument 'group'"));
    assert_int_equal(cadre_plain_group_size(NULL), 0);
    assert_int_equal(cadre_plain_group_rank(NULL), 0);
    assert_true(expected_text("cadre_plain_group_rank"));
    assert_int_equal(cadre_plain_split(0, 0, &group), CADRE_OK);
    cadre_plain_group_close(group);
    assert_int_equal(
        cadre_plain_group_all_reduce(group, NULL, &number, 1, CADRE_F32, CADRE_SUM), invalid);
    assert_true(expected_text("a group that is not open"));
    assert_int_equal(cadre_plain_group_send(group, &number, 1, CADRE_F32, 0), invalid);
    cadre_plain_group_close(group); /* a second time */
    cadre_plain_group_close(NULL);
    assert_int_equal(cadre_plain_split(0, 0, &group), CADRE_OK);
    assert_int_equal(cadre_plain_finish(), 0);
    assert_int_equal(cadre_plain_group_barrier(group), CADRE_FAILED_PRECONDITION);
    cadre_plain_group_close(group); /* it was closed by the end */
}

static void several_tasks(void **state)
{
    (void)state;
    const uint32_t tasks[] = {1, 2, 3, 4, 6};
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        job_must_succeed(self, "values", tasks[i], 0);
    }
}

static void calls_that_differ_are_reported(void **state)
{
    (void)state;
    job_must_succeed(self, "disagree", 4, 0);
}

static void a_task_is_lost(void **state)
{
    (void)state;
    job_must_fail(self, "lose", 4, 0, "survivor 0 has the error");
    job_must_fail(self, "lose", 4, 0, "survivor 2 has the error");
    job_must_fail(self, "lose", 4, 0, "survivor 3 has the error");
}

static void a_task_does_not_come(void **state)
{
    (void)state;
    job_must_fail(self, "late", 4, 0, "no task waits for ever");
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return task(argv[1]);
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone),
        cmocka_unit_test(groups_that_are_none),
        cmocka_unit_test(several_tasks),
        cmocka_unit_test(calls_that_differ_are_reported),
        cmocka_unit_test(a_task_is_lost),
        cmocka_unit_test(a_task_does_not_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
