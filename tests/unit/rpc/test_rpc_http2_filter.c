/* SPDX-License-Identifier: Apache-2.0
 * Lengths of messages in the bytes of a connection: however the bytes are cut into crumbs. */
#include "common/pure/prng.h"
#include "common/rpc/http2_filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LONGEST ((size_t)1 << 20)
#define ROOM    ((size_t)8 << 20)

#define DATA    0
#define HEADERS 1
#define RESET   3

struct bytes {
    uint8_t *at;
    size_t count;
};

static void add(struct bytes *bytes, const void *more, size_t count)
{
    assert_true(bytes->count + count <= ROOM);
    memcpy(bytes->at + bytes->count, more, count);
    bytes->count += count;
}

static void add_frame(
    struct bytes *bytes, unsigned type, unsigned flags, uint32_t stream, size_t payload)
{
    const uint8_t header[9] = {(uint8_t)(payload >> 16), (uint8_t)(payload >> 8), (uint8_t)payload,
        (uint8_t)type, (uint8_t)flags, (uint8_t)(stream >> 24), (uint8_t)(stream >> 16),
        (uint8_t)(stream >> 8), (uint8_t)stream};
    add(bytes, header, sizeof header);
}

static void add_data(struct bytes *bytes, uint32_t stream, const void *content, size_t count)
{
    add_frame(bytes, DATA, 0, stream, count);
    add(bytes, content, count);
}

static void add_preface(struct bytes *bytes)
{
    add(bytes, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
}

/* The beginning of a message, `sent` bytes of content of 'x'. */
static void add_message(struct bytes *bytes, uint32_t stream, uint32_t length, size_t sent)
{
    uint8_t *content = malloc(5 + sent);
    const uint8_t header[5] = {0, (uint8_t)(length >> 24), (uint8_t)(length >> 16),
        (uint8_t)(length >> 8), (uint8_t)length};
    memcpy(content, header, 5);
    memset(content + 5, 'x', sent);
    add_data(bytes, stream, content, 5 + sent);
    free(content);
}

struct fixture {
    struct rpc_caller caller;
    struct rpc_http2_filter *filter;
    struct bytes bytes;
};

static int open_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    fixture->caller.message_bytes_max = LONGEST;
    fixture->filter = rpc_http2_filter_open(&fixture->caller);
    fixture->bytes.at = malloc(ROOM);
    add_preface(&fixture->bytes);
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    rpc_http2_filter_close(fixture->filter);
    assert_int_equal(fixture->caller.announced_bytes, 0);
    free(fixture->bytes.at);
    free(fixture);
    return 0;
}

/* In crumbs of 1 to `most` bytes, from `seed`. */
static void receive(struct fixture *fixture, uint64_t seed, size_t most)
{
    struct prng prng = {.state = seed};
    for (size_t at = 0; at < fixture->bytes.count;) {
        size_t take = 1 + (size_t)prng_uniform(&prng, most);
        take = take < fixture->bytes.count - at ? take : fixture->bytes.count - at;
        assert_true(rpc_http2_filter_received(fixture->filter, fixture->bytes.at + at, take));
        at += take;
    }
}

static void what_is_short_passes_unchanged(void **state)
{
    struct fixture *fixture = *state;
    uint8_t *before = malloc(ROOM);
    add_frame(&fixture->bytes, HEADERS, 0, 1, 0);
    add_message(&fixture->bytes, 1, 0, 0);
    add_message(&fixture->bytes, 1, 100, 60);
    add_message(&fixture->bytes, 3, (uint32_t)LONGEST, 2000);
    add_data(&fixture->bytes, 1, "0123456789012345678901234567890123456789", 40);
    add_message(&fixture->bytes, 1, 70000, 9);
    memcpy(before, fixture->bytes.at, fixture->bytes.count);
    receive(fixture, 1, 50);
    assert_memory_equal(before, fixture->bytes.at, fixture->bytes.count);
    assert_int_equal(fixture->caller.announced_bytes, LONGEST + 70000);
    assert_true(rpc_http2_filter_is_active(fixture->filter));
    free(before);
}

/* Finds the refusal that a message became: behind its five bytes, which have its length. */
static void check_refused(
    const struct bytes *bytes, size_t header_at, enum rpc_refusal wanted, uint64_t length)
{
    static const uint8_t header[5] = {0, 0, 0, 0, RPC_REFUSAL_BYTES};
    uint64_t announced = 0;
    assert_memory_equal(bytes->at + header_at, header, 5);
    assert_int_equal(
        rpc_refusal_read(bytes->at + header_at + 5, RPC_REFUSAL_BYTES, &announced), wanted);
    assert_int_equal(announced, length);
}

static void what_is_too_long_becomes_a_refusal(void **state)
{
    static const uint32_t filter[] = {
        0xffffffffU, 600U << 20, (1U << 24) + 1, 0x110000, 0x7fffffff};
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct fixture *fixture = NULL;
        open_fixture((void **)&fixture);
        uint32_t length = filter[seed % 5];
        size_t header_at = fixture->bytes.count + 9;
        add_message(&fixture->bytes, 7, length, 30);
        add_data(&fixture->bytes, 7, "and more", 8);
        receive(fixture, seed, 1 + (size_t)seed % 40);
        check_refused(&fixture->bytes, header_at, RPC_REFUSAL_TOO_LONG, length);
        assert_int_equal(fixture->bytes.at[header_at + 5 + RPC_REFUSAL_BYTES], 'x');
        assert_memory_equal(fixture->bytes.at + fixture->bytes.count - 8, "and more", 8);
        assert_int_equal(fixture->caller.announced_bytes, 0);
        close_fixture((void **)&fixture);
    }
    (void)state;
}

static void padding_is_not_content(void **state)
{
    struct fixture *fixture = *state;
    const uint8_t pad[6] = {5, 0xff, 0xff, 0xff, 0xff, 0xff};
    add_frame(&fixture->bytes, DATA, 0x08, 1, 1 + 2 + 5);
    add(&fixture->bytes, pad, 1);
    add(&fixture->bytes, "\0\0", 2);
    add(&fixture->bytes, pad + 1, 5);
    add_data(&fixture->bytes, 1, "\0\1\2contents", 11); /* 258 bytes */
    receive(fixture, 3, 4);
    assert_int_equal(fixture->caller.announced_bytes, 258);
    assert_memory_equal(fixture->bytes.at + fixture->bytes.count - 8, "contents", 8);
}

static void all_unfinished_ones_of_a_caller_count(void **state)
{
    struct fixture *fixture = *state;
    size_t last_at = 0;
    for (uint32_t i = 0; i * LONGEST < RPC_CALLER_BYTES_MAX + LONGEST; i++) {
        last_at = fixture->bytes.count + 9;
        add_message(&fixture->bytes, 1 + 2 * i, (uint32_t)LONGEST, 100);
    }
    receive(fixture, 5, 300);
    check_refused(&fixture->bytes, last_at, RPC_REFUSAL_TOO_MANY, LONGEST);
    assert_int_equal(fixture->caller.announced_bytes, RPC_CALLER_BYTES_MAX);

    /* Another connection of the caller; and one that ends, by whichever end, makes room. */
    struct rpc_http2_filter *other = rpc_http2_filter_open(&fixture->caller);
    const uint8_t reset[13] = {0, 0, 4, RESET, 0, 0, 0, 0, 1};
    struct bytes *bytes = &fixture->bytes;
    for (int round = 0; round < 3; round++) {
        bytes->count = 0;
        if (round == 0) {
            add_preface(bytes);
        }
        size_t at = bytes->count + 9;
        add_message(bytes, 11 + 2 * (uint32_t)round, (uint32_t)LONGEST, 100);
        assert_true(rpc_http2_filter_received(other, bytes->at, bytes->count));
        if (round == 0) {
            check_refused(bytes, at, RPC_REFUSAL_TOO_MANY, LONGEST);
            rpc_http2_filter_sent(fixture->filter, reset, sizeof reset);
        } else {
            assert_int_equal(bytes->at[at + 5], 'x');
            bytes->count = 0;
            add_frame(bytes, DATA, 0x01, 3 + 2 * (uint32_t)round, 0);
            assert_true(rpc_http2_filter_received(fixture->filter, bytes->at, bytes->count));
        }
    }
    rpc_http2_filter_close(other);
}

static void what_comes_after_the_server_ended_a_call_is_not_read(void **state)
{
    struct fixture *fixture = *state;
    const uint8_t reset[13] = {0, 0, 4, RESET, 0, 0, 0, 0, 1};
    add_message(&fixture->bytes, 1, 1000, 10);
    receive(fixture, 7, 9);
    for (size_t i = 0; i < sizeof reset; i++) {
        rpc_http2_filter_sent(fixture->filter, reset + i, 1);
    }
    fixture->bytes.count = 0;
    add_message(&fixture->bytes, 1, 0x10000, 50);
    receive(fixture, 8, 9);
    assert_int_equal(fixture->caller.announced_bytes, 0);
}

static void fragments_end_the_connection(void **state)
{
    struct fixture *fixture = *state;
    add_message(&fixture->bytes, 1, 5000, 1);
    assert_true(
        rpc_http2_filter_received(fixture->filter, fixture->bytes.at, fixture->bytes.count));
    bool goes_on = true;
    size_t fragments = 1;
    for (; fragments < 4000 && goes_on; fragments++) {
        fixture->bytes.count = 0;
        add_data(&fixture->bytes, 1, "x", 1);
        goes_on =
            rpc_http2_filter_received(fixture->filter, fixture->bytes.at, fixture->bytes.count);
    }
    assert_int_equal(fragments, RPC_CALLER_FRAGMENTS_MAX + 1);
}

static void other_protocols_are_left_alone(void **state)
{
    struct fixture *fixture = *state;
    fixture->bytes.count = 0;
    add(&fixture->bytes, "PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n", 24);
    add_message(&fixture->bytes, 1, UINT32_MAX, 50);
    receive(fixture, 9, 100);
    assert_false(rpc_http2_filter_is_active(fixture->filter));
    assert_int_equal(fixture->bytes.at[24 + 9 + 1], 0xff);
}

static void a_connection_with_thousands_of_them_ends(void **state)
{
    struct fixture *fixture = *state;
    bool goes_on = true;
    uint32_t stream = 1;
    for (; stream < 5000 && goes_on; stream += 2) {
        if (stream > 1) {
            fixture->bytes.count = 0;
        }
        add_message(&fixture->bytes, stream, 200, 1);
        goes_on =
            rpc_http2_filter_received(fixture->filter, fixture->bytes.at, fixture->bytes.count);
    }
    assert_false(goes_on);
    assert_true(stream > 2 * 512);
}

int main(void)
{
#define CASE(function) cmocka_unit_test_setup_teardown(function, open_fixture, close_fixture)
    const struct CMUnitTest tests[] = {
        CASE(what_is_short_passes_unchanged),
        cmocka_unit_test(what_is_too_long_becomes_a_refusal),
        CASE(padding_is_not_content),
        CASE(all_unfinished_ones_of_a_caller_count),
        CASE(what_comes_after_the_server_ended_a_call_is_not_read),
        CASE(fragments_end_the_connection),
        CASE(other_protocols_are_left_alone),
        CASE(a_connection_with_thousands_of_them_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
