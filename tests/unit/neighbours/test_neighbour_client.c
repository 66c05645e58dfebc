/* SPDX-License-Identifier: Apache-2.0
 * One that asks a task which does wrong in every way: the bytes that it reads are right, and it
 * soon asks the store. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "common/base/clock.h"
#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/library/checksum/crc32c.h"
#include "worker/library/neighbours/neighbour_client.h"
#include "worker/library/neighbours/neighbour_map.h"

#define COUNT   (2 * NEIGHBOUR_PIECE_BYTES + 100)
#define SIZE    ((uint64_t)1 << 30)
#define WAIT_US (20 * CADRE_US_PER_S)

enum behaviour {
    RIGHT,
    WAITS_FIRST,
    ENDS_AFTERWARDS, /* as one that makes room for other links */
    ENDS_AT_ONCE,
    ENDS_IN_THE_MIDDLE,
    WRONG_CHECKSUM,
    WRONG_PLACE,
    WRONG_KIND,
    TOO_LONG,
    REFUSES,
    BEHAVIOURS
};

static struct link_listener *listener;
static char address[LIMIT_ADDRESS_BYTES];
static atomic_int behaviour;
static atomic_uint asked;
static atomic_uint serving; /* threads */
static uint8_t bytes[COUNT];
static struct neighbour_client *client;

static struct link_terms terms_of(uint32_t slot)
{
    struct link_terms terms = {.generation = {.number = 1, .nonce = 5}, .slot = slot};
    memset(terms.key, 7, sizeof terms.key);
    return terms;
}

/* --- the other task --- */

static bool send_kind(struct link *link, uint32_t kind, uint64_t id)
{
    struct cadre_error unsaid = {0};
    const struct frame frame = {.kind = kind, .id = id};
    return link_send(link, &frame, NULL, 0, &unsaid) == CADRE_OK;
}

static bool send_piece(struct link *link, const struct neighbour_ask *ask, uint64_t id, uint64_t at)
{
    struct cadre_error unsaid = {0};
    uint8_t *from = bytes + (at - ask->offset);
    struct frame frame = {
        .kind = NEIGHBOUR_PIECE, .id = id, .bytes = neighbour_piece_bytes(ask, at)};
    frame.args[0] = at;
    frame.args[1] = crc32c(0, from, (size_t)frame.bytes);
    int how = atomic_load(&behaviour);
    bool last = at + frame.bytes == ask->offset + ask->count;
    if (how == WRONG_CHECKSUM && last) {
        frame.args[1] ^= 1;
    } else if (how == WRONG_PLACE && last) {
        frame.args[0]++;
    } else if (how == TOO_LONG && !last) {
        frame.bytes++;
    }
    struct iovec piece = {.iov_base = from, .iov_len = (size_t)frame.bytes};
    return link_send(link, &frame, &piece, 1, &unsaid) == CADRE_OK;
}

static bool behave(struct link *link, const struct neighbour_ask *ask, uint64_t id)
{
    int how = atomic_load(&behaviour);
    if (how == REFUSES) {
        return send_kind(link, NEIGHBOUR_REFUSED, id);
    }
    if (how == ENDS_AT_ONCE || (how == WRONG_KIND && !send_kind(link, 12345, id)) ||
        (how == WAITS_FIRST && !send_kind(link, NEIGHBOUR_WAIT, 0))) {
        return false;
    }
    for (uint64_t at = ask->offset; at < ask->offset + ask->count; at += NEIGHBOUR_PIECE_BYTES) {
        if ((how == ENDS_IN_THE_MIDDLE && at > ask->offset) || !send_piece(link, ask, id, at)) {
            return false;
        }
    }
    return how != ENDS_AFTERWARDS;
}

static void *serve(void *argument)
{
    struct link *link = argument;
    struct cadre_error unsaid = {0};
    struct frame frame;
    struct neighbour_ask ask;
    uint8_t name[NEIGHBOUR_NAME_BYTES];
    while (link_receive(link, UINT64_MAX, &frame, &unsaid) == CADRE_OK &&
           neighbour_ask_expects(&frame) &&
           link_receive_bytes(link, name, (size_t)frame.bytes, &unsaid) == CADRE_OK &&
           neighbour_ask_read(&frame, name, &ask)) {
        atomic_fetch_add(&asked, 1);
        if (!behave(link, &ask, frame.id)) {
            break;
        }
    }
    link_free(link);
    atomic_fetch_sub(&serving, 1);
    return NULL;
}

static void admit(void *user, struct link *link)
{
    pthread_t thread;
    (void)user;
    atomic_fetch_add(&serving, 1);
    assert_int_equal(pthread_create(&thread, NULL, serve, link), 0);
    pthread_detach(thread);
}

/* --- this task --- */

static struct neighbour_ask ask_of(uint64_t id)
{
    static const uint64_t ids[] = {0, 1};
    struct neighbour_ask ask = {.size = SIZE, .count = COUNT};
    snprintf(ask.path, sizeof ask.path, "%s", "s3://bucket/data");
    snprintf(ask.version, sizeof ask.version, "%s", "\"1\"");
    for (uint64_t i = 0;; i++) {
        if (ids[neighbour_owner(ids, 2, neighbour_object(ask.path), i)] == id) {
            ask.offset = i * NEIGHBOUR_SEGMENT_BYTES;
            return ask;
        }
    }
}

static void set_members(const char *other)
{
    struct cadre_error error = {0};
    const struct link_terms terms = terms_of(0);
    const struct neighbour_member members[] = {
        {.id = 0, .address = "127.0.0.1:9"}, {.id = 1, .address = other}};
    assert_ok(neighbour_client_set(client, &terms, members, 2, 0, &error), &error);
}

/* To places that are one behind the other. */
static bool read_to(const struct neighbour_ask *ask, uint8_t *to)
{
    void *places[COUNT / NEIGHBOUR_PIECE_BYTES + 1];
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        places[i] = to + i * NEIGHBOUR_PIECE_BYTES;
    }
    return neighbour_client_read(client, ask, places);
}

static bool read_from(uint64_t id)
{
    static uint8_t to[COUNT];
    const struct neighbour_ask ask = ask_of(id);
    memset(to, 0, sizeof to);
    bool there = read_to(&ask, to);
    assert_true(!there || memcmp(to, bytes, COUNT) == 0);
    return there;
}

static int setup(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const struct link_terms terms = terms_of(1);
    const struct link_admission admission = {.admit = admit};
    assert_ok(link_listener_open("127.0.0.1", NULL, &listener, address, &error), &error);
    assert_ok(link_listener_start(listener, &terms, &admission, &error), &error);
    client = neighbour_client_open();
    assert_non_null(client);
    atomic_store(&asked, 0);
    return 0;
}

static bool none_serves(void *unused)
{
    (void)unused;
    return atomic_load(&serving) == 0;
}

static int teardown(void **state)
{
    (void)state;
    neighbour_client_stop(client);
    neighbour_client_close(client);
    link_listener_close(listener);
    return test_wait(none_serves, NULL, WAIT_US) ? 0 : -1;
}

static void right_and_wrong(void **state)
{
    (void)state;
    assert_false(read_from(1)); /* no members yet */
    for (int how = 0; how < BEHAVIOURS; how++) {
        bool right = how <= ENDS_AFTERWARDS;
        set_members(address); /* a task that was passed over is asked again */
        atomic_store(&behaviour, RIGHT);
        assert_true(read_from(1));
        assert_false(read_from(0)); /* its own */
        atomic_store(&behaviour, how);
        uint64_t began_us = clock_monotonic_us();
        assert_int_equal(read_from(1), right);
        assert_true(clock_monotonic_us() - began_us < 5 * CADRE_US_PER_S);
        unsigned so_far = atomic_load(&asked);
        assert_int_equal(read_from(1), right);
        bool passed_over = !right && how != REFUSES;
        assert_int_equal(atomic_load(&asked), so_far + (passed_over ? 0 : 1));
    }
}

static void no_one_there(void **state)
{
    (void)state;
    static const char *const addresses[] = {"127.0.0.1:1", "nonsense", ""};
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        set_members(addresses[i]);
        assert_false(read_from(1));
        assert_false(read_from(1));
    }
    assert_int_equal(atomic_load(&asked), 0);
}

/* New members: a task that was passed over is asked again. */
static void asked_again(void **state)
{
    (void)state;
    set_members(address);
    atomic_store(&behaviour, RIGHT);
    assert_true(read_from(1));
    atomic_store(&behaviour, ENDS_AT_ONCE);
    assert_false(read_from(1)); /* the next link ends, too */
    atomic_store(&behaviour, RIGHT);
    assert_false(read_from(1));
    set_members(address);
    assert_true(read_from(1));
}

static void *read_again_and_again(void *argument)
{
    atomic_uint *wrong = argument;
    for (int i = 0; i < 50; i++) {
        static const uint64_t slots[] = {1};
        uint8_t *to = malloc(COUNT);
        const struct neighbour_ask ask = ask_of(slots[0]);
        bool there = read_to(&ask, to);
        if (!there || memcmp(to, bytes, COUNT) != 0) {
            atomic_fetch_add(wrong, 1);
        }
        free(to);
    }
    return NULL;
}

/* More threads than links, while the members change. */
static void by_many_threads(void **state)
{
    (void)state;
    pthread_t threads[20];
    atomic_uint wrong = 0;
    set_members(address);
    atomic_store(&behaviour, RIGHT);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, read_again_and_again, &wrong), 0);
    }
    for (size_t i = 0; i < 20; i++) {
        set_members(address);
    }
    for (size_t i = 0; i < 20; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&wrong), 0);
    assert_int_equal(atomic_load(&asked), 1000);
}

int main(void)
{
    struct prng random = {.state = 4};
    for (size_t i = 0; i < COUNT; i++) {
        bytes[i] = (uint8_t)prng_next(&random);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(right_and_wrong, setup, teardown),
        cmocka_unit_test_setup_teardown(no_one_there, setup, teardown),
        cmocka_unit_test_setup_teardown(asked_again, setup, teardown),
        cmocka_unit_test_setup_teardown(by_many_threads, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
