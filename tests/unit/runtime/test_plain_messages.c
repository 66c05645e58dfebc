/* SPDX-License-Identifier: Apache-2.0
 * cadre_plain_send, cadre_plain_recv and cadre_plain_send_recv, between tasks of a job and in a
 * process alone. */
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

static int64_t number_of(uint32_t from, uint32_t to, size_t at)
{
    return (int64_t)from * 1000003 + (int64_t)to * 10007 + (int64_t)at;
}

static void fill(int64_t *numbers, size_t count, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < count; i++) {
        numbers[i] = number_of(from, to, i);
    }
}

static void check(const int64_t *numbers, size_t count, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < count; i++) {
        require(numbers[i] == number_of(from, to, i));
    }
}

/* Memory of one kind or the other for what is sent and received. */
struct room {
    bool shared;
    size_t count;
    int64_t *sent;
    int64_t *received;
};

static struct room room_new(size_t count, bool shared)
{
    const size_t bytes = (count + 1) * sizeof(int64_t);
    struct room room = {.shared = shared, .count = count};
    room.sent = shared ? cadre_plain_alloc(bytes) : malloc(bytes);
    room.received = shared ? cadre_plain_alloc(bytes) : malloc(bytes);
    require(room.sent != NULL && room.received != NULL);
    room.received[count] = -1; /* nothing is written behind a message */
    return room;
}

static void room_free(struct room *room)
{
    require(room->received[room->count] == -1);
    (room->shared ? cadre_plain_free : free)(room->sent);
    (room->shared ? cadre_plain_free : free)(room->received);
}

/* Each to the next one, in both directions around. */
static void check_ring(size_t count, bool shared)
{
    const uint32_t tasks = cadre_world_size();
    const uint32_t own = cadre_rank();
    const uint32_t next = (own + 1) % tasks;
    const uint32_t before = (own + tasks - 1) % tasks;
    struct room room = room_new(count, shared);
    for (int turn = 0; turn < 4; turn++) {
        const uint32_t to = turn % 2 == 0 ? next : before;
        const uint32_t from = turn % 2 == 0 ? before : next;
        fill(room.sent, count, own, to);
        require(cadre_plain_send_recv(
                    room.sent, count, to, room.received, count, from, CADRE_I64) == CADRE_OK);
        check(room.received, count, from, own);
        check(room.sent, count, own, to); /* only read */
    }
    room_free(&room);
}

/* A row, not a ring: there is no task beyond its ends. */
static void check_row(void)
{
    const uint32_t own = cadre_rank();
    const bool last = own + 1 == cadre_world_size();
    int64_t left = -7;
    const int64_t value = number_of(own, own + 1, 0);
    require(cadre_plain_send_recv(&value, 1, last ? CADRE_PLAIN_NO_TASK : own + 1, &left, 1,
                own == 0 ? CADRE_PLAIN_NO_TASK : own - 1, CADRE_I64) == CADRE_OK);
    require(left == (own == 0 ? -7 : number_of(own - 1, own, 0)));
}

/* With one partner at a time, other sizes each way. */
static void check_pairs(void)
{
    const uint32_t own = cadre_rank();
    const uint32_t partner = own ^ 1;
    struct room room = room_new(5000, false);
    if (partner < cadre_world_size()) {
        const size_t sent = own < partner ? 5000 : 3;
        const size_t received = own < partner ? 3 : 5000;
        fill(room.sent, sent, own, partner);
        require(cadre_plain_send_recv(room.sent, sent, partner, room.received, received, partner,
                    CADRE_I64) == CADRE_OK);
        check(room.received, received, partner, own);
    }
    room_free(&room);
}

/* All to rank 0 and back, message after message, in order. */
static void check_star(size_t count, bool shared)
{
    const uint32_t own = cadre_rank();
    struct room room = room_new(count, shared);
    for (uint32_t turn = 0; turn < 20; turn++) {
        for (uint32_t task = 1; own == 0 && task < cadre_world_size(); task++) {
            require(cadre_plain_recv(room.received, count, CADRE_I64, task) == CADRE_OK);
            check(room.received, count, task, turn);
            require(cadre_plain_send(room.received, count, CADRE_I64, task) == CADRE_OK);
        }
        if (own != 0) {
            fill(room.sent, count, own, turn);
            require(cadre_plain_send(room.sent, count, CADRE_I64, 0) == CADRE_OK);
            require(cadre_plain_recv(room.received, count, CADRE_I64, 0) == CADRE_OK);
            check(room.received, count, own, turn);
        }
    }
    room_free(&room);
}

/* The first of them sends to one that comes to it only after the third has sent to the first. */
static void check_crossing(void)
{
    int64_t value = cadre_rank();
    int64_t other = -1;
    if (cadre_world_size() < 3) {
        return;
    }
    if (cadre_rank() == 0) {
        require(cadre_plain_send_recv(&value, 1, 1, &other, 1, 2, CADRE_I64) == CADRE_OK);
        require(other == 2);
    } else if (cadre_rank() == 1) {
        require(cadre_plain_recv(&other, 1, CADRE_I64, 2) == CADRE_OK && other == 2);
        require(cadre_plain_recv(&other, 1, CADRE_I64, 0) == CADRE_OK && other == 0);
    } else if (cadre_rank() == 2) {
        require(cadre_plain_send(&value, 1, CADRE_I64, 0) == CADRE_OK);
        require(cadre_plain_send(&value, 1, CADRE_I64, 1) == CADRE_OK);
    }
}

static void check_types(void)
{
    const uint32_t partner = cadre_rank() ^ 1;
    if (partner >= cadre_world_size()) {
        return;
    }
    for (cadre_dtype dtype = CADRE_F64; dtype <= CADRE_BOOL; dtype++) {
        uint8_t sent[8 * 3];
        uint8_t received[8 * 3 + 1];
        memset(sent, (int)cadre_rank() + 1, sizeof sent);
        memset(received, 77, sizeof received);
        require(cadre_plain_send_recv(sent, 3, partner, received, 3, partner, dtype) == CADRE_OK);
        const size_t bytes = 3 * cadre_dtype_bytes(dtype);
        require(received[0] == partner + 1 && received[bytes - 1] == partner + 1);
        require(received[bytes] == 77);
    }
}

static void check_values(void)
{
    check_crossing(); /* first: the tasks are not connected yet */
    check_ring(1, false);
    check_ring(0, false);
    check_ring(100000, false);
    check_ring(100000, true);
    check_row();
    check_pairs();
    check_star(3, false);
    check_star(40000, true);
    check_types();
    require(cadre_plain_barrier() == CADRE_OK);
}

static int values(void)
{
    check_values();
    return cadre_plain_finish();
}

/* --- calls that differ --- */

static int disagree(void)
{
    float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    float others[8] = {0};
    const bool first = cadre_rank() == 0;
    const uint32_t partner = first ? 1 : 0;
    /* sizes, types */
    require((first ? cadre_plain_send(numbers, 2, CADRE_F32, 1)
                   : cadre_plain_recv(others, 3, CADRE_F32, 0)) == invalid);
    require(names_both() && expected_text("cadre_plain_send(to task 1) with 2 elements"));
    require(expected_text("cadre_plain_recv(from task 0) with 3 elements"));
    require((first ? cadre_plain_send(numbers, 2, CADRE_F32, 1)
                   : cadre_plain_recv(others, 2, CADRE_I32, 0)) == invalid);
    require(names_both());
    require(others[0] == 0);
    /* both send; both receive */
    require(cadre_plain_send(numbers, 2, CADRE_F32, partner) == invalid && names_both());
    require(cadre_plain_recv(others, 2, CADRE_F32, partner) == invalid && names_both());
    /* one of them does both */
    require((first ? cadre_plain_send_recv(numbers, 2, 1, others, 2, 1, CADRE_F32)
                   : cadre_plain_send(numbers, 2, CADRE_F32, 0)) == invalid);
    require(names_both());
    /* one cannot make the call */
    require((first ? cadre_plain_send(NULL, 2, CADRE_F32, 1)
                   : cadre_plain_recv(others, 2, CADRE_F32, 0)) == invalid);
    require(first ? expected_text("'data'") : expected_text("task 0 calls cadre_plain_send with"));
    require((first ? cadre_plain_send_recv(numbers, 2, 1, numbers + 1, 2, 1, CADRE_F32)
                   : cadre_plain_send_recv(numbers, 2, 0, others, 2, 0, CADRE_F32)) == invalid);
    require(first ? expected_text("overlap") : expected_text("refused"));
    check_values(); /* nothing of it did any harm */
    return cadre_plain_finish();
}

/* In a ring of three, one task's message is of another size: its receiver and it get the error, the
 * other two messages arrive. */
static int disagree_in_a_ring(void)
{
    int64_t sent[2] = {cadre_rank(), 0};
    int64_t received[2] = {-1, -1};
    const uint32_t own = cadre_rank();
    const cadre_status status = cadre_plain_send_recv(
        sent, own == 0 ? 2 : 1, (own + 1) % 3, received, 1, (own + 2) % 3, CADRE_I64);
    require(status == (own == 2 ? CADRE_OK : invalid));
    require(own == 2 || names_both());
    require(received[0] == (own == 1 ? -1 : (int64_t)(own + 2) % 3));
    check_values();
    return cadre_plain_finish();
}

/* --- tasks that are lost, or do not come --- */

/* Rank 0 waits for rank 2, which lives and waits for rank 1, which dies. */
static int lose(bool connected)
{
    signal(SIGTERM, SIG_IGN); /* the loss stops the job */
    int64_t value = 0;
    if (connected) {
        check_ring(1, false);
    }
    require(cadre_plain_barrier() == CADRE_OK);
    if (cadre_rank() == 1) {
        raise(SIGKILL);
    }
    require(cadre_plain_recv(&value, 1, CADRE_I64, cadre_rank() == 0 ? 2 : 1) == CADRE_ABORTED);
    require(expected_text("rank 1") || expected_text("task 1"));
    require(cadre_plain_barrier() == CADRE_ABORTED);
    fprintf(stderr, "survivor %u has the error\n", cadre_rank());
    return 1;
}

static void wait_for_the_end(void)
{
    for (;;) {
        pause();
    }
}

static int late(bool connected)
{
    int64_t value = 0;
    if (connected) {
        check_ring(1, false);
    }
    if (cadre_rank() != 0) {
        wait_for_the_end();
    }
    signal(SIGTERM, SIG_IGN);
    require(cadre_plain_recv(&value, 1, CADRE_I64, 2) == CADRE_DEADLINE_EXCEEDED);
    require(expected_text("rank 2"));
    require(expected_text("cadre_plain_recv(from task 2) with 1 elements"));
    require(expected_text("CADRE_COLLECTIVE_TIMEOUT_S"));
    require(cadre_plain_barrier() == CADRE_DEADLINE_EXCEEDED);
    fprintf(stderr, "no task waits for ever\n");
    return 1;
}

static int task(const char *what)
{
    const bool connected = strstr(what, "connected") != NULL;
    if (strncmp(what, "late", 4) == 0) {
        setenv("CADRE_COLLECTIVE_TIMEOUT_S", "1", 1);
    }
    require(cadre_plain_init(NULL, NULL) == CADRE_OK);
    return strcmp(what, "values") == 0     ? values()
           : strcmp(what, "disagree") == 0 ? disagree()
           : strcmp(what, "ring") == 0     ? disagree_in_a_ring()
           : strncmp(what, "late", 4) == 0 ? late(connected)
                                           : lose(connected);
}

/* --- tests --- */

static void alone(void **state)
{
    (void)state;
    int64_t number = 5;
    int64_t other = 6;
    assert_int_equal(cadre_plain_send(&number, 1, CADRE_I64, 0), CADRE_FAILED_PRECONDITION);
    assert_true(expected_text("cadre_plain_send") && expected_text("cadre_plain_init"));
    assert_int_equal(cadre_plain_init(NULL, NULL), CADRE_OK);
    assert_int_equal(cadre_plain_send_recv(&number, 1, 0, &other, 1, 0, CADRE_I64), CADRE_OK);
    assert_int_equal(other, 5);
    assert_int_equal(cadre_plain_send(&number, 1, CADRE_I64, CADRE_PLAIN_NO_TASK), CADRE_OK);
    assert_int_equal(cadre_plain_recv(&other, 1, CADRE_I64, CADRE_PLAIN_NO_TASK), CADRE_OK);
    assert_int_equal(other, 5);
    check_values();
}

static void arguments_that_are_none(void **state)
{
    (void)state;
    float numbers[8] = {0};
    assert_int_equal(cadre_plain_send(numbers, 1, CADRE_F32, 0), invalid);
    assert_true(expected_text("this task") && expected_text("`to` 0"));
    assert_int_equal(cadre_plain_recv(numbers, 1, CADRE_F32, 0), invalid);
    assert_true(expected_text("`from` 0"));
    assert_int_equal(cadre_plain_send(numbers, 1, CADRE_F32, 1), invalid);
    assert_true(expected_text("tasks 0 to 0") && expected_text("CADRE_PLAIN_NO_TASK"));
    assert_int_equal(cadre_plain_send_recv(numbers, 1, 0, numbers + 4, 1, 7, CADRE_F32), invalid);
    assert_true(expected_text("7 for `from`"));
    assert_int_equal(
        cadre_plain_send_recv(numbers, 1, 0, numbers + 4, 1, CADRE_PLAIN_NO_TASK, CADRE_F32),
        invalid);
    assert_int_equal(cadre_plain_send_recv(numbers, 2, 0, numbers + 4, 1, 0, CADRE_F32), invalid);
    assert_true(expected_text("to send 2 elements") && expected_text("receive 1"));
    assert_int_equal(cadre_plain_send_recv(numbers, 4, 0, numbers + 3, 4, 0, CADRE_F32), invalid);
    assert_true(expected_text("overlaps"));
    assert_int_equal(cadre_plain_send(NULL, 1, CADRE_F32, CADRE_PLAIN_NO_TASK), CADRE_OK);
    assert_int_equal(cadre_plain_send(NULL, 1, CADRE_F32, 0), invalid);
    assert_true(expected_text("NULL as its argument 'data'"));
    assert_int_equal(cadre_plain_recv(numbers, 1, CADRE_STRING, 0), invalid);
    assert_true(expected_text("type"));
    assert_int_equal(cadre_plain_recv(numbers, SIZE_MAX / 2, CADRE_F32, 0), invalid);
    assert_true(expected_text("memory"));
    assert_int_equal(cadre_plain_finish(), 0);
}

static void several_tasks(void **state)
{
    (void)state;
    const uint32_t tasks[] = {1, 2, 3, 4, 7};
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        job_must_succeed(self, "values", tasks[i], 0);
    }
}

static void calls_that_differ_are_reported(void **state)
{
    (void)state;
    job_must_succeed(self, "disagree", 2, 0);
    job_must_succeed(self, "ring", 3, 0);
}

static void a_task_is_lost(void **state)
{
    (void)state;
    job_must_fail(self, "lose", 3, 0, "survivor 0 has the error");
    job_must_fail(self, "lose", 3, 0, "survivor 2 has the error");
    job_must_fail(self, "lose connected", 3, 0, "survivor 0 has the error");
    job_must_fail(self, "lose connected", 3, 0, "survivor 2 has the error");
}

static void a_task_does_not_come(void **state)
{
    (void)state;
    job_must_fail(self, "late", 3, 0, "no task waits for ever");
    job_must_fail(self, "late connected", 3, 0, "no task waits for ever");
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
        cmocka_unit_test(calls_that_differ_are_reported),
        cmocka_unit_test(a_task_is_lost),
        cmocka_unit_test(a_task_does_not_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
