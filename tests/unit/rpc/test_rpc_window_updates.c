/* SPDX-License-Identifier: Apache-2.0
 * Which writes of a connection are kept back, and what comes in front of the next one. */
#include "common/rpc/window_updates.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

#define DATA     0
#define SETTINGS 4
#define WINDOW   8

struct bytes {
    uint8_t at[4096];
    size_t count;
};

static void add(struct bytes *bytes, const void *more, size_t count)
{
    assert_true(bytes->count + count <= sizeof bytes->at);
    memcpy(bytes->at + bytes->count, more, count);
    bytes->count += count;
}

static void add_frame(
    struct bytes *bytes, uint8_t type, uint8_t stream, const void *content, uint8_t size)
{
    const uint8_t header[9] = {0, 0, size, type, 0, 0, 0, 0, stream};
    add(bytes, header, sizeof header);
    add(bytes, content, size);
}

static void add_update(struct bytes *bytes, uint8_t stream, uint32_t window)
{
    const uint8_t content[4] = {
        (uint8_t)(window >> 24), (uint8_t)(window >> 16), (uint8_t)(window >> 8), (uint8_t)window};
    add_frame(bytes, WINDOW, stream, content, sizeof content);
}

static bool keep(struct rpc_window_updates *updates, struct bytes *bytes)
{
    /* in two parts, as gRPC has them */
    const struct iovec parts[] = {{bytes->at, bytes->count / 2},
        {bytes->at + bytes->count / 2, bytes->count - bytes->count / 2}};
    return rpc_window_updates_keep(updates, parts, 2);
}

static void sent(struct rpc_window_updates *updates, struct bytes *bytes)
{
    const struct iovec part = {bytes->at, bytes->count};
    rpc_window_updates_sent(updates, &part, 1, bytes->count);
}

/* What a server sends first. */
static struct rpc_window_updates begun(void)
{
    struct rpc_window_updates updates = {0};
    struct bytes bytes = {0};
    add_frame(&bytes, SETTINGS, 0, "\0\3\0\0\1\0", 6);
    sent(&updates, &bytes);
    return updates;
}

static bool keep_update(struct rpc_window_updates *updates, uint8_t stream, uint32_t window)
{
    struct bytes bytes = {0};
    add_update(&bytes, stream, window);
    return keep(updates, &bytes);
}

static void those_of_a_call_become_one(void **state)
{
    (void)state;
    struct rpc_window_updates updates = begun();
    struct bytes bytes = {0};
    struct bytes expected = {0};
    uint8_t out[RPC_WINDOW_UPDATES_MAX * RPC_WINDOW_UPDATE_BYTES];
    add_update(&bytes, 1, 41);
    add_update(&bytes, 0, 41);
    assert_true(keep(&updates, &bytes));
    assert_true(keep_update(&updates, 1, 300));
    add_update(&expected, 1, 341);
    add_update(&expected, 0, 41);
    assert_int_equal(rpc_window_updates_take(&updates, out), expected.count);
    assert_memory_equal(out, expected.at, expected.count);
    assert_int_equal(rpc_window_updates_take(&updates, out), 0);
}

static void other_frames_are_not_kept(void **state)
{
    (void)state;
    struct rpc_window_updates updates = begun();
    struct bytes data = {0};
    struct bytes mixed = {0};
    add_frame(&data, DATA, 1, "four", 4); /* as long as an update */
    assert_false(keep(&updates, &data));
    add_update(&mixed, 1, 5);
    add_frame(&mixed, DATA, 1, "four", 4);
    assert_false(keep(&updates, &mixed));
    assert_int_equal(updates.count, 0);
}

/* The other end's window never lacks more than the limit. */
static void the_window_that_is_kept_back_is_bounded(void **state)
{
    (void)state;
    struct rpc_window_updates updates = begun();
    assert_false(keep_update(&updates, 1, RPC_WINDOW_UPDATES_BYTES_MAX + 1));
    assert_false(keep_update(&updates, 1, 0x7fffffff));
    assert_true(keep_update(&updates, 1, RPC_WINDOW_UPDATES_BYTES_MAX - 10));
    assert_true(keep_update(&updates, 0, 10));
    assert_false(keep_update(&updates, 1, 1));
    assert_int_equal(updates.kept_bytes, RPC_WINDOW_UPDATES_BYTES_MAX);
}

static void the_calls_are_bounded(void **state)
{
    (void)state;
    struct rpc_window_updates updates = begun();
    for (uint8_t stream = 0; stream < RPC_WINDOW_UPDATES_MAX; stream++) {
        assert_true(keep_update(&updates, stream, 1));
    }
    assert_false(keep_update(&updates, 99, 1));
    assert_true(keep_update(&updates, 3, 1));
}

/* Content that looks like an update is none. */
static void nothing_is_kept_inside_of_a_frame(void **state)
{
    (void)state;
    struct rpc_window_updates updates = begun();
    struct bytes bytes = {0};
    struct bytes inside = {0};
    add_update(&inside, 1, 7);
    add_frame(&bytes, DATA, 1, inside.at, (uint8_t)inside.count);
    for (size_t cut = 1; cut < bytes.count; cut++) {
        struct rpc_window_updates half = updates;
        struct iovec part = {bytes.at, bytes.count};
        rpc_window_updates_sent(&half, &part, 1, cut);
        assert_false(keep(&half, &inside));
        part = (struct iovec){bytes.at + cut, bytes.count - cut};
        rpc_window_updates_sent(&half, &part, 1, bytes.count - cut);
        assert_true(keep(&half, &inside));
    }
}

static void a_client_begins_with_its_preface(void **state)
{
    (void)state;
    struct rpc_window_updates updates = {0};
    struct bytes bytes = {0};
    assert_false(keep_update(&updates, 1, 7));
    add(&bytes, PREFACE, sizeof PREFACE - 1);
    sent(&updates, &bytes);
    assert_true(keep_update(&updates, 1, 7));
}

static void other_protocols_are_left_alone(void **state)
{
    (void)state;
    const uint8_t hello[16] = {0x16, 3, 3, SETTINGS, 0};
    struct rpc_window_updates updates = {0};
    struct bytes bytes = {0};
    add(&bytes, hello, sizeof hello);
    sent(&updates, &bytes);
    assert_false(keep_update(&updates, 1, 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_of_a_call_become_one),
        cmocka_unit_test(other_frames_are_not_kept),
        cmocka_unit_test(the_window_that_is_kept_back_is_bounded),
        cmocka_unit_test(the_calls_are_bounded),
        cmocka_unit_test(nothing_is_kept_inside_of_a_frame),
        cmocka_unit_test(a_client_begins_with_its_preface),
        cmocka_unit_test(other_protocols_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
