/* SPDX-License-Identifier: Apache-2.0
 * A Unix socket in a set as gRPC uses it: which events come, and what is sent. The functions are
 * called by the names by which gRPC calls them. */
#include "common/rpc/io_hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SETTINGS    "\0\0\0\4\0\0\0\0\0"
#define UPDATE      "\0\0\4\10\0\0\0\0\1\0\0\0\7"
#define BYTES(text) (text), sizeof(text) - 1

struct fixture {
    int set, fd, other; /* `fd` is gRPC's */
};

static int open_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    fixture->fd = pair[0];
    fixture->other = pair[1];
    fixture->set = epoll_create1(0);
    rpc_io_hooks_use(fixture->set);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.fd = 7};
    assert_int_equal(epoll_ctl(fixture->set, EPOLL_CTL_ADD, fixture->fd, &event), 0);
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    close(fixture->fd);
    close(fixture->other);
    close(fixture->set);
    free(fixture);
    return 0;
}

/* The events that are there. */
static uint32_t events(struct fixture *fixture)
{
    struct epoll_event event;
    int count = epoll_wait(fixture->set, &event, 1, 0);
    assert_true(count == 0 || event.data.fd == 7);
    return count == 0 ? 0 : event.events;
}

static ssize_t send_parts(struct fixture *fixture, const void *bytes, size_t count)
{
    struct iovec part = {(void *)(uintptr_t)bytes, count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return sendmsg(fixture->fd, &message, MSG_NOSIGNAL);
}

static size_t receive_all(struct fixture *fixture, uint8_t *room, size_t size)
{
    size_t got = 0;
    ssize_t some;
    while (got < size && (some = read(fixture->other, room + got, size - got)) > 0) {
        got += (size_t)some;
    }
    return got;
}

/* It was, before the first message: a connection that is being made waits for that. */
static void room_is_not_reported_after_a_message(void **state)
{
    struct fixture *fixture = *state;
    uint8_t room[64];
    assert_int_equal(events(fixture), EPOLLOUT);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(send_parts(fixture, BYTES(SETTINGS)), 9);
        assert_int_equal(receive_all(fixture, room, sizeof room), 9);
        assert_int_equal(events(fixture), 0);
    }
    assert_int_equal(write(fixture->other, "x", 1), 1);
    assert_int_equal(events(fixture), EPOLLIN);
}

/* With what others than gRPC write. */
static size_t fill(struct fixture *fixture)
{
    static const uint8_t zeros[1 << 16];
    size_t filled = 0;
    ssize_t written;
    while ((written = write(fixture->fd, zeros, sizeof zeros)) > 0) {
        filled += (size_t)written;
    }
    assert_int_equal(errno, EAGAIN);
    return filled;
}

static void room_is_reported_once_a_write_did_not_fit(void **state)
{
    struct fixture *fixture = *state;
    uint8_t *room = malloc(1 << 22);
    assert_int_equal(send_parts(fixture, BYTES(SETTINGS)), 9);
    (void)events(fixture);
    size_t filled = fill(fixture);
    assert_int_equal(send_parts(fixture, BYTES(SETTINGS)), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(events(fixture), 0);
    assert_int_equal(receive_all(fixture, room, 1 << 22), 9 + filled);
    assert_int_equal(events(fixture), EPOLLOUT);
    free(room);
}

static void updates_come_in_front_of_the_next_frame(void **state)
{
    struct fixture *fixture = *state;
    uint8_t room[64];
    assert_int_equal(send_parts(fixture, BYTES(SETTINGS)), 9);
    assert_int_equal(receive_all(fixture, room, sizeof room), 9);
    assert_int_equal(send_parts(fixture, BYTES(UPDATE)), 13);
    assert_int_equal(receive_all(fixture, room, sizeof room), 0);
    assert_int_equal(send_parts(fixture, BYTES(SETTINGS)), 9);
    assert_int_equal(receive_all(fixture, room, sizeof room), 13 + 9);
    assert_memory_equal(room, UPDATE SETTINGS, 13 + 9);
}

/* Nothing is lost, sent twice or out of order. */
static void updates_wait_for_room(void **state)
{
    struct fixture *fixture = *state;
    uint8_t *room = malloc(1 << 22);
    assert_int_equal(send_parts(fixture, BYTES(SETTINGS)), 9);
    assert_int_equal(send_parts(fixture, BYTES(UPDATE)), 13);
    size_t filled = fill(fixture);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(send_parts(fixture, BYTES(SETTINGS)), -1);
        assert_int_equal(errno, EAGAIN);
    }
    assert_int_equal(receive_all(fixture, room, 1 << 22), 9 + filled);
    assert_int_equal(send_parts(fixture, BYTES(SETTINGS)), 9);
    assert_int_equal(receive_all(fixture, room, 1 << 22), 13 + 9);
    assert_memory_equal(room, UPDATE SETTINGS, 13 + 9);
    free(room);
}

/* The number of a closed descriptor is another socket's next. */
static void a_closed_one_is_forgotten(void **state)
{
    struct fixture *fixture = *state;
    uint8_t room[64];
    assert_int_equal(send_parts(fixture, BYTES(SETTINGS)), 9);
    assert_int_equal(send_parts(fixture, BYTES(UPDATE)), 13);
    close(fixture->fd);
    close(fixture->other);
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
    assert_int_equal(pair[0], fixture->fd);
    fixture->other = pair[1];
    assert_int_equal(send_parts(fixture, BYTES(UPDATE)), 13);
    assert_int_equal(receive_all(fixture, room, sizeof room), 13);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        CASE(room_is_not_reported_after_a_message),
        CASE(room_is_reported_once_a_write_did_not_fit),
        CASE(updates_come_in_front_of_the_next_frame),
        CASE(updates_wait_for_room),
        CASE(a_closed_one_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
