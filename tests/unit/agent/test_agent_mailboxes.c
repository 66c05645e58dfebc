/* SPDX-License-Identifier: Apache-2.0
 * Mailboxes of two tasks of a job: arrivals and releases go through them, and what a program writes
 * there, or does with the descriptors, harms neither the agent nor other jobs. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/wire/mailbox.h"
#include "tests/unit/agent/client.h"
#include "worker/library/runtime/task/socket_mailbox.h"

#define TASKS      2
#define GENERATION ((struct generation){.number = 3, .nonce = 9})

/* A task's program, played by the test with the library's side of the mailbox. */
struct player {
    int fd;
    struct socket_mailbox mailbox;
    int fds[MAILBOX_DESCRIPTORS]; /* the test's own */
    struct wire_buffer unsent;
};

static struct player players[TASKS];
static struct cadre_error error;

/* Connects; false while the agent has not sent its preamble. */
static bool receive_descriptors(struct player *player)
{
    uint8_t preamble[FRAME_PREAMBLE_BYTES];
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(MAILBOX_DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec piece = {.iov_base = preamble, .iov_len = sizeof preamble};
    struct msghdr message = {.msg_iov = &piece,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes};
    if (recvmsg(player->fd, &message, MSG_CMSG_CLOEXEC) < 0) {
        assert_int_equal(errno, EAGAIN);
        return false;
    }
    assert_ok(frame_preamble_check(preamble, "the agent", &error), &error);
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    assert_non_null(header);
    assert_int_equal(header->cmsg_len, CMSG_LEN(sizeof player->fds));
    memcpy(player->fds, CMSG_DATA(header), sizeof player->fds);
    return true;
}

static void flush(struct player *player)
{
    assert_int_equal(send(player->fd, player->unsent.bytes, player->unsent.size, MSG_NOSIGNAL),
        (ssize_t)player->unsent.size);
    wire_buffer_clear(&player->unsent);
}

static void transmit(struct player *player, const struct task_up *up)
{
    assert_ok(socket_mailbox_send(&player->mailbox, up, &player->unsent, &error), &error);
    if (player->unsent.size > 0) {
        flush(player);
    }
}

static void arrive(struct player *player, uint64_t up_to)
{
    const struct task_up up = {.type = TASK_UP_ARRIVE,
        .arrive = {.generation = GENERATION, .up_to = up_to, .applied = up_to - 1}};
    transmit(player, &up);
}

static bool hellos_are_relayed(struct stage *stage)
{
    return stage->tasks[0].relayed_count > 0 && stage->tasks[1].relayed_count > 0;
}

static bool one_arrived(struct stage *stage)
{
    return stage->arrivals == 1;
}

static void connect_player(struct stage *stage, uint32_t slot, bool maps)
{
    struct player *player = &players[slot];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *player = (struct player){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/s%u", stage->folder, (unsigned)slot);
    assert_int_equal(connect(player->fd, (struct sockaddr *)&address, sizeof address), 0);
    while (!receive_descriptors(player)) {
        uv_run(&stage->loop, UV_RUN_ONCE);
    }
    int fds[MAILBOX_DESCRIPTORS];
    for (size_t i = 0; i < MAILBOX_DESCRIPTORS; i++) {
        fds[i] = maps ? fcntl(player->fds[i], F_DUPFD_CLOEXEC, 0) : -1;
    }
    socket_mailbox_open(&player->mailbox, fds);
    assert_int_equal(player->mailbox.arrivals != NULL, maps);
    uint8_t preamble[FRAME_PREAMBLE_BYTES];
    frame_preamble_write(preamble);
    assert_int_equal(send(player->fd, preamble, sizeof preamble, 0), (ssize_t)sizeof preamble);
    transmit(player, &client_hello);
}

/* Two tasks run in one generation and have arrived at its first step, by frames. */
static struct stage *play_two(bool second_maps)
{
    struct stage *stage = stage_open();
    for (uint32_t slot = 0; slot < TASKS; slot++) {
        start(stage, slot, "end-on-term", NULL);
        until_printed(stage, slot, "ready");
        connect_player(stage, slot, slot == 0 || second_maps);
    }
    until(stage, hellos_are_relayed);
    const struct roster_entry roster[TASKS] = {
        {.slot = 0, .incarnation = 1, .replicas = 1, .mesh_address = "127.0.0.1:1"},
        {.slot = 1, .incarnation = 2, .replicas = 1, .mesh_address = "127.0.0.1:1"}};
    agent_down(stage->agent,
        &(struct agent_down){.type = AGENT_DOWN_RELAY,
            .relay_down = {.job = {1},
                .down = {.type = TASK_DOWN_PLAN,
                    .plan = {.generation = GENERATION, .roster = roster, .roster_count = TASKS}}}});
    for (uint32_t slot = 0; slot < TASKS; slot++) {
        players[slot].mailbox.frames_handled = 1; /* the plan */
        arrive(&players[slot], 1);
    }
    until(stage, one_arrived);
    assert_int_equal(stage->arrived_up_to, 1);
    return stage;
}

static void leave(struct stage *stage)
{
    for (size_t i = 0; i < TASKS; i++) {
        socket_mailbox_close(&players[i].mailbox);
        wire_buffer_free(&players[i].unsent);
        close(players[i].fd);
        for (size_t k = 0; k < MAILBOX_DESCRIPTORS; k++) {
            close(players[i].fds[k]);
        }
    }
    stage_close(stage);
}

static void release(struct stage *stage, uint64_t up_to)
{
    agent_down(stage->agent, &(struct agent_down){.type = AGENT_DOWN_RELAY,
                                 .relay_down = {.job = {1},
                                     .down = {.type = TASK_DOWN_RELEASE,
                                         .release = {.generation = GENERATION,
                                             .up_to = up_to,
                                             .checkpoint_at = POSITION_NONE,
                                             .halt_at = POSITION_NONE,
                                             .halt_stream = STREAM_ANY,
                                             .published = POSITION_NONE}}}});
}

static uint64_t wanted_up_to;

static bool arrived_there(struct stage *stage)
{
    return stage->arrived_up_to == wanted_up_to;
}

static bool is_readable(int fd)
{
    struct pollfd waited = {.fd = fd, .events = POLLIN};
    return poll(&waited, 1, 0) == 1;
}

static uint64_t released(struct player *player)
{
    struct task_release got;
    return socket_mailbox_next(&player->mailbox, &got, &error) == CADRE_OK ? got.up_to : 0;
}

static void a_round_needs_no_frame(void **state)
{
    (void)state;
    struct stage *stage = play_two(true);
    for (uint64_t step = 2; step < 20; step++) {
        release(stage, step - 1);
        assert_true(is_readable(players[0].mailbox.released_fd));
        for (size_t i = 0; i < TASKS; i++) {
            assert_int_equal(released(&players[i]), step - 1);
            arrive(&players[i], step);
        }
        wanted_up_to = step;
        until(stage, arrived_there);
        assert_int_equal(stage->arrivals, step);
    }
    assert_int_equal(players[0].mailbox.frames_sent, 2); /* hello, and the first arrival */
    leave(stage);
}

/* One that maps no memory is sent frames, and its own frames count beside a mailbox. */
static void a_program_without_memory_has_frames(void **state)
{
    (void)state;
    struct stage *stage = play_two(false);
    release(stage, 1);
    linger(stage);
    assert_int_equal(released(&players[0]), 1);
    assert_true(is_readable(players[1].fd)); /* the plan and the release */
    arrive(&players[0], 2);
    arrive(&players[1], 2);
    wanted_up_to = 2;
    until(stage, arrived_there);
    leave(stage);
}

static void what_was_written_before_the_end_counts(void **state)
{
    (void)state;
    struct stage *stage = play_two(true);
    struct mailbox *own = &players[1].mailbox.arrivals[players[1].mailbox.own];
    struct task_arrive last = players[1].mailbox.last;
    arrive(&players[0], 2);
    last.up_to = 2;
    last.applied = 1;
    mailbox_write_arrival(own, players[1].mailbox.frames_sent, &last); /* and wakes no agent */
    linger(stage);
    assert_int_equal(stage->arrived_up_to, 1);
    close(players[1].fd);
    players[1].fd = -1;
    wanted_up_to = 2;
    until(stage, arrived_there);
    leave(stage);
}

static bool first_is_refused(struct stage *stage)
{
    return strstr(stage->notices, "an arrival in the mailbox of the program is refused") != NULL;
}

static void wild_numbers_end_one_connection(void **state)
{
    (void)state;
    struct stage *stage = play_two(true);
    struct mailbox *own = &players[0].mailbox.arrivals[players[0].mailbox.own];
    uint64_t numbers[MAILBOX_NUMBERS];
    memset(numbers, 0xff, sizeof numbers);
    mailbox_write(own, players[0].mailbox.frames_sent, numbers);
    assert_int_equal(eventfd_write(players[0].mailbox.arrived_fd, 1), 0);
    until(stage, first_is_refused);
    const struct task_up progress = {
        .type = TASK_UP_PROGRESS, .progress = {.stream = "train", .epoch = 5}};
    size_t before = stage->tasks[1].relayed_count;
    transmit(&players[1], &progress);
    linger(stage);
    assert_int_equal(stage->tasks[1].relayed_count, before + 1);
    assert_false(stage->tasks[0].gone);
    leave(stage);
}

/* Serials that change for ever, sizes and marks of any kind, and wake-ups without end. */
static void noise_does_not_stop_the_agent(void **state)
{
    (void)state;
    struct stage *stage = play_two(true);
    struct mailbox *own = &players[0].mailbox.arrivals[players[0].mailbox.own];
    for (uint64_t i = 0; i < 100; i++) {
        atomic_store(&own->serial, i * UINT64_C(0x9e3779b97f4a7c15));
        atomic_store(&own->messages[i % 2].frames, i % 3);
        atomic_store(&own->generation, i);
        assert_int_equal(eventfd_write(players[0].mailbox.arrived_fd, i % 2 + 1), 0);
        uv_run(&stage->loop, UV_RUN_NOWAIT);
    }
    assert_false(stage->tasks[0].gone);
    assert_false(stage->tasks[1].gone);
    leave(stage);
}

static void memory_is_sealed(void **state)
{
    (void)state;
    struct stage *stage = play_two(true);
    const int *fds = players[0].fds;
    assert_int_equal(ftruncate(fds[MAILBOX_ARRIVALS], 0), -1);
    assert_int_equal(ftruncate(fds[MAILBOX_OF_TASK], 0), -1);
    assert_true(
        mmap(NULL, 64, PROT_READ | PROT_WRITE, MAP_SHARED, fds[MAILBOX_OF_TASK], 0) == MAP_FAILED);
    assert_int_equal(write(fds[MAILBOX_OF_TASK], "x", 1), -1);
    assert_int_equal(mprotect((void *)(uintptr_t)players[0].mailbox.releases,
                         sizeof *players[0].mailbox.releases, PROT_READ | PROT_WRITE),
        -1);
    leave(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_needs_no_frame),
        cmocka_unit_test(a_program_without_memory_has_frames),
        cmocka_unit_test(what_was_written_before_the_end_counts),
        cmocka_unit_test(wild_numbers_end_one_connection),
        cmocka_unit_test(noise_does_not_stop_the_agent),
        cmocka_unit_test(memory_is_sealed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
