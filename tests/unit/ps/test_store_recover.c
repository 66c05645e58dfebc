/* SPDX-License-Identifier: Apache-2.0
 * What a store knows of the pushes before it, when a process that died left it the memory: a step
 * has the contributions that it had, those that were begun too, and says the same to who brings one
 * too many. */
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store_fixture.h"
#include "worker/library/ps/store/store_internal.h"

#define ROWS 4

static const double ones[ROWS] = {1, 1, 1, 1};

static struct push part_of(uint64_t closure, uint32_t contributions)
{
    return (struct push){.kind = PUSH_UPDATE,
        .rows = ROWS,
        .closure = closure,
        .rate = (double)NAN,
        .based_on = PUSH_ANY_VERSION,
        .contributions = contributions};
}

static void assert_refused(
    struct store *store, const struct push *push, cadre_status status, const char *part)
{
    struct cadre_error error = {0};
    struct pushing pushing;
    assert_error(store_push_begin(store, 0, push, &pushing, &error), status, &error, part);
}

/* Begins a push and gives it some of its rows. */
static void begin(struct store *store, const struct push *push, uint64_t rows)
{
    struct cadre_error error = {0};
    struct pushing pushing;
    assert_ok(store_push_begin(store, 0, push, &pushing, &error), &error);
    store_push_block(store, &pushing, ones, rows);
}

/* The process is gone, with whatever it did not end. */
static struct store *open_again(struct store *store, int fd)
{
    store_close(store);
    return fixture_store_open(fd);
}

/* Of three contributions `whole` are in, and `begun` under way. */
static void recover_step(uint64_t whole, uint64_t begun)
{
    int fd = fixture_store_memory();
    struct store *store = fixture_store_open(fd);
    uint32_t shard = fixture_store_create(store, "a", CADRE_F64, ROWS, 1, OPTIMIZER_SGD);
    for (uint64_t i = 1; i <= whole; i++) {
        const struct push push = part_of(i, 3);
        fixture_store_push(store, &push, ones);
    }
    for (uint64_t i = whole + 1; i <= whole + begun; i++) {
        const struct push push = part_of(i, 3);
        begin(store, &push, 1);
    }
    store = open_again(store, fd);
    const struct push differs = part_of(90, 2);
    const struct push surplus = part_of(91, 3);
    if (whole + begun == 3) {
        assert_refused(store, &surplus, CADRE_FAILED_PRECONDITION,
            "step 0 has its 3 contributions already; closure 91 is one too many");
    } else {
        assert_refused(
            store, &differs, CADRE_INVALID_ARGUMENT, "step 0 has 3 contributions of kind");
    }
    for (uint64_t i = 1; i <= 3; i++) { /* all of them come again */
        const struct push push = part_of(i, 3);
        assert_int_equal(store_steps(store, shard), 0);
        fixture_store_push(store, &push, ones);
    }
    assert_int_equal(store_steps(store, shard), 1);
    assert_int_equal(store_version(store, shard), 1);
    const double *rows = store_rows(store, shard, 0, ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        assert_true(rows[i] == -0.5); /* the mean, once, at rate 0.5 */
    }
    store_close(store);
    close(fd);
}

static void contributions_before_a_crash_count(void **state)
{
    (void)state;
    for (uint64_t whole = 0; whole < 3; whole++) {
        for (uint64_t begun = whole == 0; whole + begun <= 3; begun++) {
            recover_step(whole, begun);
        }
    }
}

/* So do updates: the one after a crash is not taken for the same as one that was begun before. */
static void updates_before_a_crash_count(void **state)
{
    (void)state;
    int fd = fixture_store_memory();
    struct store *store = fixture_store_open(fd);
    uint32_t shard = fixture_store_create(store, "a", CADRE_F64, ROWS, 1, OPTIMIZER_ADAM);
    const struct push first = part_of(1, 0);
    const struct push second = part_of(2, 0);
    const struct push third = part_of(3, 0);
    fixture_store_push(store, &first, ones);
    begin(store, &second, 2);
    store = open_again(store, fd);
    assert_int_equal(store_updates(store, shard), 2);
    fixture_store_push(store, &third, ones);
    assert_int_equal(store_updates(store, shard), 3);
    fixture_store_push(store, &second, ones);
    assert_int_equal(store_updates(store, shard), 3);
    assert_int_equal(store_version(store, shard), 3);
    store_close(store);
    close(fd);
}

/* ---- whichever thread of it died ---- */

#define DIED 9

static uint64_t points_left;

static void count_down(void)
{
    if (--points_left == 0) {
        _exit(DIED);
    }
}

static bool dies_at(int fd, uint32_t thread, uint64_t point)
{
    pid_t pid = fork();
    int status = 0;
    assert_true(pid >= 0);
    if (pid == 0) {
        struct cadre_error error = {0};
        struct store *store = fixture_store_open(fd);
        struct push push = part_of(1, 0);
        push.kind = PUSH_ADD;
        points_left = point;
        store_fault_hook = count_down;
        _exit(fixture_store_push_blocks(store, thread, &push, ones, 1, &error) == CADRE_OK ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == DIED));
    return WEXITSTATUS(status) == DIED;
}

static void what_any_thread_left_is_settled(void **state)
{
    (void)state;
    for (uint32_t thread = 0; thread < STORE_THREADS; thread++) {
        bool died = true;
        for (uint64_t point = 1; died; point++) {
            int fd = fixture_store_memory();
            struct store *store = fixture_store_open(fd);
            fixture_store_create(store, "a", CADRE_F64, ROWS, 1, OPTIMIZER_NONE);
            store_close(store);
            died = dies_at(fd, thread, point);
            store = fixture_store_open(fd);
            struct push push = part_of(1, 0);
            push.kind = PUSH_ADD;
            fixture_store_push(store, &push, ones);
            assert_memory_equal(store_rows(store, 0, 0, ROWS), ones, sizeof ones);
            assert_int_equal(store_version(store, 0), 1);
            store_close(store);
            close(fd);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contributions_before_a_crash_count),
        cmocka_unit_test(updates_before_a_crash_count),
        cmocka_unit_test(what_any_thread_left_is_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
