/* SPDX-License-Identifier: Apache-2.0
 * Which messages of a task are written to its mailbox and which are sent as frames, with the daemon
 * played by the test. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/task/socket_mailbox.h"

#define TASKS 2

/* The daemon's side of two tasks. */
struct stage {
    struct mailbox *arrivals;
    struct mailbox_of_task *of_task[TASKS];
    int arrived_fd; /* the test's own */
    struct socket_mailbox tasks[TASKS];
    struct wire_buffer frames[TASKS];
};

static struct cadre_error error;

static int memory(size_t bytes, void **ret_mapped)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    assert_true(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    *ret_mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(*ret_mapped != MAP_FAILED);
    return fd;
}

static int set_up(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);
    void *mapped;
    int arrivals = memory(TASKS * sizeof(struct mailbox), &mapped);
    stage->arrivals = mapped;
    stage->arrived_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    for (size_t i = 0; i < TASKS; i++) {
        const int fds[MAILBOX_DESCRIPTORS] = {
            [MAILBOX_OF_TASK] = memory(sizeof(struct mailbox_of_task), &mapped),
            [MAILBOX_ARRIVALS] = dup(arrivals),
            [MAILBOX_ARRIVED] = dup(stage->arrived_fd),
            [MAILBOX_RELEASED] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
        stage->of_task[i] = mapped;
        stage->of_task[i]->index = i;
        stage->of_task[i]->count = TASKS;
        socket_mailbox_open(&stage->tasks[i], fds);
        assert_int_equal(atomic_load(&stage->arrivals[i].used), 1);
    }
    close(arrivals);
    *state = stage;
    return 0;
}

static int tear_down(void **state)
{
    struct stage *stage = *state;
    for (size_t i = 0; i < TASKS; i++) {
        socket_mailbox_close(&stage->tasks[i]);
        wire_buffer_free(&stage->frames[i]);
        munmap(stage->of_task[i], sizeof *stage->of_task[i]);
    }
    munmap(stage->arrivals, TASKS * sizeof(struct mailbox));
    close(stage->arrived_fd);
    free(stage);
    return 0;
}

static struct task_up arrival(uint64_t up_to)
{
    return (struct task_up){.type = TASK_UP_ARRIVE,
        .arrive = {.generation = {1, 7},
            .up_to = up_to,
            .applied = up_to - 1,
            .wanted = 1,
            .cursor = {.stream = 1, .epoch = 1, .steps = 1000}}};
}

static void transmit(struct stage *stage, size_t task, const struct task_up *up)
{
    assert_ok(socket_mailbox_send(&stage->tasks[task], up, &stage->frames[task], &error), &error);
}

static void arrive(struct stage *stage, size_t task, uint64_t up_to)
{
    const struct task_up up = arrival(up_to);
    transmit(stage, task, &up);
}

/* How often the daemon was to wake since the last call. */
static uint64_t wakes(const struct stage *stage)
{
    eventfd_t count = 0;
    return eventfd_read(stage->arrived_fd, &count) == 0 ? count : 0;
}

/* The types of the frames that the task has sent, and the up_to of arrivals, as text; none are left
 * afterwards. */
static const char *frames(struct stage *stage, size_t task)
{
    static char text[256];
    struct frame_reader reader = {.buffer = stage->frames[task]};
    struct wire_arena *arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    const uint8_t *payload;
    size_t size;
    size_t used = 0;
    text[0] = '\0';
    while (frame_reader_next(&reader, &payload, &size, &error) == CADRE_OK) {
        struct task_up up;
        assert_ok(wire_unpack_task_up(payload, size, arena, &up, &error), &error);
        int length =
            up.type == TASK_UP_ARRIVE
                ? snprintf(text + used, sizeof text - used, "arrive %u ", (unsigned)up.arrive.up_to)
                : snprintf(text + used, sizeof text - used, "%d ", (int)up.type);
        used += (size_t)length;
    }
    wire_arena_free(arena);
    wire_buffer_clear(&stage->frames[task]);
    return text;
}

/* up_to of the arrival in the mailbox behind so many frames; 0: none. */
static uint64_t in_mailbox(const struct stage *stage, size_t task, uint64_t behind)
{
    uint64_t seen = 0;
    struct task_arrive got;
    return mailbox_read_arrival(&stage->arrivals[task], &seen, behind, &got) == MAILBOX_MESSAGE
               ? got.up_to
               : 0;
}

static void the_last_arrival_wakes_the_daemon(void **state)
{
    struct stage *stage = *state;
    arrive(stage, 0, 1);
    arrive(stage, 1, 1);
    assert_string_equal(frames(stage, 0), "arrive 1 "); /* the first of a generation is a frame */
    assert_string_equal(frames(stage, 1), "arrive 1 ");
    assert_true(wakes(stage) > 0);
    for (uint64_t step = 2; step < 10; step++) {
        size_t first = step % 2;
        arrive(stage, first, step);
        assert_int_equal(wakes(stage), 0);
        arrive(stage, 1 - first, step);
        assert_int_equal(wakes(stage), 1);
        assert_int_equal(in_mailbox(stage, 0, 1), step);
        assert_int_equal(in_mailbox(stage, 1, 1), step);
    }
    assert_string_equal(frames(stage, 0), "");
}

static void other_messages_keep_their_order(void **state)
{
    struct stage *stage = *state;
    const struct task_up progress = {.type = TASK_UP_PROGRESS, .progress = {.stream = "train"}};
    arrive(stage, 0, 1);
    arrive(stage, 0, 2);
    transmit(stage, 0, &progress); /* behind the arrival that is in no frame yet */
    transmit(stage, 0, &progress);
    assert_string_equal(frames(stage, 0), "arrive 1 arrive 2 5 5 ");
    arrive(stage, 0, 3);
    assert_int_equal(in_mailbox(stage, 0, 4), 3);
    assert_int_equal(in_mailbox(stage, 0, 3), 0); /* not before those frames */
    assert_string_equal(frames(stage, 0), "");
}

/* What an epoch consumed that was left is not replaced by a newer arrival. */
static void another_run_is_sent_as_a_frame(void **state)
{
    struct stage *stage = *state;
    arrive(stage, 0, 1);
    arrive(stage, 0, 2);
    struct task_up next = arrival(3);
    next.arrive.cursor.epoch = 2;
    next.arrive.cursor.begin = 2;
    transmit(stage, 0, &next);
    assert_string_equal(frames(stage, 0), "arrive 1 arrive 2 arrive 3 ");
    next.arrive.up_to = 4;
    transmit(stage, 0, &next);
    assert_string_equal(frames(stage, 0), "");
    assert_int_equal(in_mailbox(stage, 0, 3), 4);
    next.arrive.generation.number = 2;
    transmit(stage, 0, &next);
    assert_string_equal(frames(stage, 0), "arrive 4 arrive 4 ");
}

static void news_wakes_at_once(void **state)
{
    struct stage *stage = *state;
    arrive(stage, 0, 1);
    arrive(stage, 1, 1);
    struct task_up up = arrival(2);
    (void)wakes(stage);
    up.arrive.wanted = 2;
    transmit(stage, 0, &up);
    assert_int_equal(wakes(stage), 1);
    up.arrive.up_to = 3;
    up.arrive.applied = 2;
    transmit(stage, 0, &up);
    assert_int_equal(wakes(stage), 0);
    up.arrive.verified = (struct verified){.position = 2, .digest = 5};
    transmit(stage, 0, &up);
    assert_int_equal(wakes(stage), 1);
}

static void releases_come_in_order(void **state)
{
    struct stage *stage = *state;
    struct socket_mailbox *task = &stage->tasks[0];
    struct task_release release = {.generation = {1, 7},
        .up_to = 5,
        .checkpoint_at = POSITION_NONE,
        .halt_at = POSITION_NONE,
        .halt_stream = STREAM_ANY,
        .published = POSITION_NONE};
    struct task_release got;
    assert_int_equal(socket_mailbox_next(task, &got, &error), CADRE_PENDING);
    mailbox_write_release(&stage->of_task[0]->releases, 1, &release);
    assert_int_equal(socket_mailbox_next(task, &got, &error), CADRE_PENDING);
    task->frames_handled = 1;
    assert_int_equal(socket_mailbox_next(task, &got, &error), CADRE_OK);
    assert_int_equal(got.up_to, 5);
    assert_int_equal(socket_mailbox_next(task, &got, &error), CADRE_PENDING);
    release.halt_at = POSITION_NONE - 1;
    mailbox_write_release(&stage->of_task[0]->releases, 1, &release);
    assert_int_equal(socket_mailbox_next(task, &got, &error), CADRE_INVALID_ARGUMENT);
}

static void without_memory_all_are_frames(void **state)
{
    struct stage *stage = *state;
    const int none[MAILBOX_DESCRIPTORS] = {-1, -1, -1, -1};
    const int no_memory[MAILBOX_DESCRIPTORS] = {
        eventfd(0, 0), eventfd(0, 0), eventfd(0, 0), eventfd(0, 0)};
    const int *const given[] = {none, no_memory};
    for (size_t i = 0; i < 2; i++) {
        socket_mailbox_close(&stage->tasks[0]);
        socket_mailbox_open(&stage->tasks[0], given[i]);
        assert_int_equal(stage->tasks[0].released_fd, -1);
        arrive(stage, 0, 1);
        arrive(stage, 0, 2);
        assert_string_equal(frames(stage, 0), "arrive 1 arrive 2 ");
        struct task_release got;
        assert_int_equal(socket_mailbox_next(&stage->tasks[0], &got, &error), CADRE_PENDING);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_arrival_wakes_the_daemon, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_messages_keep_their_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_run_is_sent_as_a_frame, set_up, tear_down),
        cmocka_unit_test_setup_teardown(news_wakes_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(releases_come_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_memory_all_are_frames, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
