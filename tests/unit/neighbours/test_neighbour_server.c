/* SPDX-License-Identifier: Apache-2.0
 * What a task answers: bytes of its own segments; refusals; and who asks for anything else, or
 * sends what no task sends, is disconnected. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>

#include "common/base/clock.h"
#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "tests/unit/input/fake_storage.h"
#include "worker/library/checksum/crc32c.h"
#include "worker/library/input/objects/object.h"
#include "worker/library/input/objects/object_memory.h"
#include "worker/library/neighbours/neighbour_map.h"
#include "worker/library/neighbours/neighbour_objects.h"
#include "worker/library/neighbours/neighbour_server.h"
#include "worker/library/neighbours/neighbour_wire.h"

#define PATH    "s3://bucket/data"
#define SIZE    ((size_t)9 << 20)
#define WAIT_US (20 * CADRE_US_PER_S)

static const uint64_t ids[] = {4, 6};
static char *content;
static char version[STORAGE_VERSION_BYTES];
static struct neighbour_server *server;
static char address[LIMIT_ADDRESS_BYTES];

static struct link_terms terms_of(uint32_t slot, uint64_t generation)
{
    struct link_terms terms = {
        .generation = {.number = generation, .nonce = 5}, .slot = slot, .incarnation = generation};
    memset(terms.key, 7, sizeof terms.key);
    return terms;
}

static void set_generation(uint64_t generation)
{
    struct cadre_error error = {0};
    const struct link_terms terms = terms_of(4, generation);
    assert_ok(neighbour_server_set(server, &terms, ids, 2, 4, &error), &error);
}

static bool nothing_held(void *unused)
{
    (void)unused;
    object_table_clear();
    return object_memory_held() == 0;
}

static int setup(void **state)
{
    (void)state;
    struct prng random = {.state = 3};
    struct storage_object *object = NULL;
    struct cadre_error error = {0};
    fake_storage_clear();
    content = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++) {
        content[i] = (char)prng_next(&random);
    }
    fake_storage_set(PATH, content, SIZE);
    assert_ok(storage_open(NULL, PATH, &object, &error), &error);
    snprintf(version, sizeof version, "%s", storage_info_of(object)->version);
    storage_close(object);
    object_memory_set_limit((uint64_t)16 << 20);
    assert_ok(neighbour_server_open("127.0.0.1", NULL, &server, address, &error), &error);
    set_generation(1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    neighbour_server_close(server);
    fake_storage_release();
    assert_true(test_wait(nothing_held, NULL, WAIT_US));
    fake_storage_clear();
    free(content);
    return 0;
}

static struct link *dial(uint64_t generation)
{
    struct link *link = NULL;
    struct cadre_error error = {0};
    const struct link_terms terms = terms_of(6, generation);
    assert_ok(link_connect(&terms, "task 4", address, 4, WAIT_US, &link, &error), &error);
    return link;
}

/* The first segment that is, or is not, the server's. */
static uint64_t segment_of(uint64_t id)
{
    for (uint64_t i = 0;; i++) {
        if (ids[neighbour_owner(ids, 2, neighbour_object(PATH), i)] == id) {
            assert_true(i * NEIGHBOUR_SEGMENT_BYTES < SIZE);
            return i;
        }
    }
}

static struct neighbour_ask ask_of(uint64_t id, uint64_t from, uint64_t count)
{
    struct neighbour_ask ask = {
        .size = SIZE, .offset = segment_of(id) * NEIGHBOUR_SEGMENT_BYTES + from, .count = count};
    uint64_t left = SIZE - ask.offset;
    ask.count = count < left ? count : left;
    snprintf(ask.path, sizeof ask.path, "%s", PATH);
    snprintf(ask.version, sizeof ask.version, "%s", version);
    return ask;
}

static void send_ask(struct link *link, const struct neighbour_ask *ask, uint64_t id)
{
    struct cadre_error error = {0};
    struct frame frame;
    uint8_t name[NEIGHBOUR_NAME_BYTES];
    neighbour_ask_write(ask, id, &frame, name);
    struct iovec piece = {.iov_base = name, .iov_len = (size_t)frame.bytes};
    assert_ok(link_send(link, &frame, &piece, 1, &error), &error);
}

static void expect_bytes(struct link *link, const struct neighbour_ask *ask, uint64_t id)
{
    struct cadre_error error = {0};
    char *to = malloc(NEIGHBOUR_PIECE_BYTES);
    for (uint64_t at = ask->offset; at < ask->offset + ask->count;) {
        struct frame frame;
        assert_ok(link_receive(link, WAIT_US, &frame, &error), &error);
        enum neighbour_answer answer = neighbour_answer_read(&frame, ask, id, at);
        if (answer == ANSWER_WAIT) {
            continue;
        }
        assert_int_equal(answer, ANSWER_PIECE);
        assert_ok(link_receive_bytes(link, to, (size_t)frame.bytes, &error), &error);
        assert_memory_equal(to, content + at, (size_t)frame.bytes);
        assert_int_equal(frame.args[1], crc32c(0, to, (size_t)frame.bytes));
        at += frame.bytes;
    }
    free(to);
}

static void expect_refusal(struct link *link, uint64_t id, cadre_status code)
{
    struct cadre_error error = {0};
    struct frame frame;
    assert_ok(link_receive(link, WAIT_US, &frame, &error), &error);
    assert_int_equal(frame.kind, NEIGHBOUR_REFUSED);
    assert_int_equal(frame.id, id);
    assert_int_equal(frame.code, code);
    assert_int_equal(frame.bytes, 0);
}

static void expect_end(struct link *link)
{
    struct cadre_error error = {0};
    struct frame frame;
    assert_int_equal(link_receive(link, WAIT_US, &frame, &error), CADRE_UNAVAILABLE);
    link_free(link);
}

/* One after the other, and sent without waiting for the answer. */
static void its_own(void **state)
{
    (void)state;
    struct link *link = dial(1);
    const struct neighbour_ask asks[] = {ask_of(4, 0, NEIGHBOUR_SEGMENT_BYTES), ask_of(4, 5, 3),
        ask_of(4, NEIGHBOUR_PIECE_BYTES - 1, NEIGHBOUR_PIECE_BYTES)};
    for (uint64_t i = 0; i < 3; i++) {
        send_ask(link, &asks[i], 10 + i);
        expect_bytes(link, &asks[i], 10 + i);
    }
    for (uint64_t i = 1; i < 3; i++) {
        send_ask(link, &asks[i], 20 + i);
    }
    for (uint64_t i = 1; i < 3; i++) {
        expect_bytes(link, &asks[i], 20 + i);
    }
    link_free(link);
}

static void refusals(void **state)
{
    (void)state;
    struct link *link = dial(1);
    struct neighbour_ask ask = ask_of(6, 0, 100);
    send_ask(link, &ask, 1);
    expect_refusal(link, 1, CADRE_FAILED_PRECONDITION);
    ask = ask_of(4, 0, 100);
    snprintf(ask.version, sizeof ask.version, "%s", "\"another\"");
    send_ask(link, &ask, 2);
    expect_refusal(link, 2, CADRE_FAILED_PRECONDITION);
    ask = ask_of(4, 0, 100);
    ask.size++;
    send_ask(link, &ask, 3);
    expect_refusal(link, 3, CADRE_FAILED_PRECONDITION);
    for (uint64_t i = 0;; i++) { /* one that there is not, of those that are the server's */
        snprintf(ask.path, sizeof ask.path, "s3://bucket/none-%u", (unsigned)i);
        if (ids[neighbour_owner(ids, 2, neighbour_object(ask.path), 0)] == 4) {
            break;
        }
    }
    ask.offset = 0;
    send_ask(link, &ask, 4);
    expect_refusal(link, 4, CADRE_NOT_FOUND);
    ask = ask_of(4, 0, 2 * NEIGHBOUR_PIECE_BYTES);
    object_table_clear();
    fake_storage_fail("data", CADRE_UNAVAILABLE, 100);
    send_ask(link, &ask, 5);
    expect_refusal(link, 5, CADRE_UNAVAILABLE);
    fake_storage_fail("", CADRE_OK, 0);
    send_ask(link, &ask, 6);
    expect_bytes(link, &ask, 6); /* the link is as good as before */
    link_free(link);
}

static void other_generations(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct link *link = dial(1);
    struct link *later = NULL;
    const struct neighbour_ask ask = ask_of(4, 0, 100);
    const struct link_terms terms = terms_of(6, 2);
    assert_int_equal(link_connect(&terms, "task 4", address, 4, WAIT_US, &later, &error),
        CADRE_PERMISSION_DENIED);
    set_generation(2);
    send_ask(link, &ask, 1);
    expect_refusal(link, 1, CADRE_FAILED_PRECONDITION);
    later = dial(2);
    send_ask(later, &ask, 2);
    expect_bytes(later, &ask, 2);
    link_free(later);
    link_free(link);
}

/* While the store is slow those who wait receive that it is on its way. */
static void slow_store(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct link *link = dial(1);
    struct frame frame;
    const struct neighbour_ask ask = ask_of(4, 0, 100);
    fake_storage_hold();
    send_ask(link, &ask, 1);
    for (int i = 0; i < 2; i++) {
        assert_ok(link_receive(link, WAIT_US, &frame, &error), &error);
        assert_int_equal(neighbour_answer_read(&frame, &ask, 1, ask.offset), ANSWER_WAIT);
    }
    fake_storage_release();
    expect_bytes(link, &ask, 1);
    link_free(link);
}

static void send_frame(struct link *link, const struct frame *frame, void *bytes)
{
    struct cadre_error error = {0};
    struct iovec piece = {.iov_base = bytes, .iov_len = (size_t)frame->bytes};
    (void)link_send(link, frame, &piece, frame->bytes > 0 ? 1 : 0, &error);
}

static void what_no_task_sends(void **state)
{
    (void)state;
    struct prng random = {.state = 11};
    struct neighbour_ask ask = ask_of(4, 0, 100);
    snprintf(ask.path, sizeof ask.path, "%s", "/etc/passwd");
    struct link *link = dial(1);
    send_ask(link, &ask, 1);
    expect_end(link);
    ask = ask_of(4, 0, 100);
    ask.offset = UINT64_MAX - 1;
    link = dial(1);
    send_ask(link, &ask, 1);
    expect_end(link);
    for (int turn = 0; turn < 200; turn++) {
        struct frame frame;
        uint8_t name[NEIGHBOUR_NAME_BYTES];
        ask = ask_of(4, 0, 100);
        neighbour_ask_write(&ask, 1, &frame, name);
        if (turn % 2 == 0) {
            frame.kind = (uint32_t)prng_next(&random);
        } else {
            frame.args[3] = prng_next(&random) | 4096;
        }
        link = dial(1);
        send_frame(link, &frame, name);
        expect_end(link);
    }
    link = dial(1);
    ask = ask_of(4, 0, 100);
    send_ask(link, &ask, 1);
    expect_bytes(link, &ask, 1);
    link_free(link);
}

/* More links than there is room for: the one that was idle for longest ends. */
static void many_links(void **state)
{
    (void)state;
    static struct link *links[300];
    const struct neighbour_ask ask = ask_of(4, 0, 100);
    for (size_t i = 0; i < 300; i++) {
        links[i] = dial(1);
        send_ask(links[i], &ask, i);
        expect_bytes(links[i], &ask, i);
    }
    expect_end(links[0]);
    send_ask(links[299], &ask, 1);
    expect_bytes(links[299], &ask, 1);
    for (size_t i = 1; i < 300; i++) {
        link_free(links[i]);
    }
}

/* --- how long an object stays open --- */

/* The thread that waits looks for objects to close; while it does, answers end. */
static atomic_bool answers_end_meanwhile;
static atomic_bool has_rested; /* a link is idle again */

bool __real_neighbour_objects_tidy(struct neighbour_objects *objects);
bool __wrap_neighbour_objects_tidy(struct neighbour_objects *objects);
int __real_epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event)
{
    int result = __real_epoll_ctl(epoll_fd, what, fd, event);
    if (what == EPOLL_CTL_MOD) {
        atomic_store(&has_rested, true);
    }
    return result;
}

static bool is_rested(void *unused)
{
    (void)unused;
    return atomic_load(&has_rested);
}

bool __wrap_neighbour_objects_tidy(struct neighbour_objects *objects)
{
    bool left = __real_neighbour_objects_tidy(objects);
    if (atomic_exchange(&answers_end_meanwhile, false)) {
        fake_storage_release();
        (void)test_wait(is_rested, NULL, WAIT_US);
    }
    return left;
}

/* Another state of the object is found when it is opened. */
static bool is_another(void *user)
{
    struct object *object = NULL;
    struct cadre_error error = {0};
    assert_ok(object_open(PATH, &object, &error), &error);
    bool is = strcmp(object_version(object), user) != 0;
    object_close(object);
    return is;
}

static void an_object_does_not_stay_open(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct frame frame;
    struct link *link = dial(1);
    const struct neighbour_ask ask = ask_of(4, 0, 100);
    fake_storage_hold();
    send_ask(link, &ask, 1);
    assert_ok(link_receive(link, WAIT_US, &frame, &error), &error);
    assert_int_equal(neighbour_answer_read(&frame, &ask, 1, ask.offset), ANSWER_WAIT);
    atomic_store(&has_rested, false);
    atomic_store(&answers_end_meanwhile, true);
    expect_bytes(link, &ask, 1);
    fake_storage_set(PATH, content, SIZE);
    assert_true(test_wait(is_another, version, WAIT_US));
    link_free(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(other_generations, setup, teardown),
        cmocka_unit_test_setup_teardown(slow_store, setup, teardown),
        cmocka_unit_test_setup_teardown(what_no_task_sends, setup, teardown),
        cmocka_unit_test_setup_teardown(many_links, setup, teardown),
        cmocka_unit_test_setup_teardown(an_object_does_not_stay_open, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
