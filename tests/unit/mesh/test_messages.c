/* SPDX-License-Identifier: Apache-2.0
 * The bytes between tasks: handshake, frames, addresses. */
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/library/mesh/connect/address.h"
#include "worker/library/mesh/connect/handshake.h"
#include "worker/library/mesh/wire/wire_frame.h"

static const struct handshake_hello hello = {
    .generation = 7, .nonce = UINT64_MAX - 3, .roster = 99, .from_rank = 2, .to_rank = 1};

static void test_hello(void **state)
{
    (void)state;
    struct cadre_error error;
    struct handshake_hello read;
    uint8_t bytes[HANDSHAKE_HELLO_BYTES];
    uint8_t again[HANDSHAKE_HELLO_BYTES];
    assert_ok(mesh_handshake_hello_make(&hello, bytes, &error), &error);
    assert_ok(mesh_handshake_hello_make(&hello, again, &error), &error);
    assert_true(memcmp(bytes, again, sizeof bytes) != 0); /* a fresh challenge each time */
    assert_true(mesh_handshake_hello_read(bytes, &read));
    assert_true(read.generation == 7 && read.nonce == hello.nonce && read.roster == 99);
    assert_true(read.from_rank == 2 && read.to_rank == 1);
    for (size_t i = 0; i < 8; i++) { /* magic and version */
        bytes[i] ^= 1;
        assert_false(mesh_handshake_hello_read(bytes, &read));
        bytes[i] ^= 1;
    }
}

/* No bit of hello, challenge, key or MAC can change, and no proof serves as another one. */
static void test_proofs(void **state)
{
    (void)state;
    struct cadre_error error;
    uint8_t key[MESH_KEY_BYTES] = {1, 2, 3};
    uint8_t bytes[HANDSHAKE_HELLO_BYTES];
    uint8_t reply[HANDSHAKE_REPLY_BYTES];
    uint8_t *mac = reply + HANDSHAKE_CHALLENGE_BYTES;
    assert_ok(mesh_handshake_hello_make(&hello, bytes, &error), &error);
    assert_ok(mesh_handshake_reply_make(key, bytes, reply, &error), &error);
    assert_true(mesh_handshake_mac_valid(key, HANDSHAKE_ACCEPTOR, bytes, reply, mac));
    assert_false(mesh_handshake_mac_valid(key, HANDSHAKE_CONNECTOR, bytes, reply, mac));
    assert_false(mesh_handshake_mac_valid(key, HANDSHAKE_WELCOME, bytes, reply, mac));
    struct {
        uint8_t *bytes;
        size_t size;
    } fields[] = {{key, sizeof key}, {bytes, sizeof bytes}, {reply, sizeof reply}};
    for (size_t field = 0; field < 3; field++) {
        for (size_t bit = 0; bit < fields[field].size * 8; bit++) {
            fields[field].bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
            assert_false(mesh_handshake_mac_valid(key, HANDSHAKE_ACCEPTOR, bytes, reply, mac));
            fields[field].bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        }
    }
    assert_true(mesh_handshake_mac_valid(key, HANDSHAKE_ACCEPTOR, bytes, reply, mac));
}

static void test_frames(void **state)
{
    (void)state;
    struct prng prng = {.state = 3};
    uint8_t bytes[WIRE_FRAME_BYTES];
    struct wire_frame read;
    struct wire_frame frame = {
        .type = WIRE_CALL,
        .generation = 1,
        .nonce = 2,
        .sequence = 3,
        .rank = 4,
        .code = 5,
        .data_bytes = 6,
        .agreement = {.differs = true,
            .first = {.replica = 11,
                .wrong = true,
                .shape = {.kind = 2,
                    .op = 1,
                    .dtype = 8,
                    .root = 7,
                    .count = 8,
                    .bytes = 9,
                    .layout = 10,
                    .key = 12},
                .text = "replica 11 called X"}},
    };
    mesh_wire_frame_encode(&frame, bytes);
    assert_true(mesh_wire_frame_decode(bytes, &read));
    assert_true(read.type == WIRE_CALL && read.generation == 1 && read.nonce == 2);
    assert_true(read.sequence == 3 && read.rank == 4 && read.code == 5 && read.data_bytes == 6);
    const struct call_record *record = &read.agreement.first;
    assert_true(read.agreement.differs && record->replica == 11 && record->wrong);
    assert_true(mesh_call_shape_equal(&record->shape, &frame.agreement.first.shape));
    assert_string_equal(record->text, "replica 11 called X");
    bytes[4] = WIRE_FAULT; /* only calls have a second record */
    assert_true(mesh_wire_frame_decode(bytes, &read));
    assert_false(read.agreement.differs);
    bytes[4] = 0;
    assert_false(mesh_wire_frame_decode(bytes, &read));
    bytes[4] = WIRE_GOODBYE + 1;
    assert_false(mesh_wire_frame_decode(bytes, &read));
    for (unsigned round = 0; round < 1000; round++) {
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (uint8_t)prng_next(&prng);
        }
        assert_false(mesh_wire_frame_decode(bytes, &read));
        assert_true(memchr(record->text, 0, sizeof record->text) != NULL);
        char text[200];
        mesh_call_shape_describe(&record->shape, text, sizeof text);
    }
}

static void test_sentences(void **state)
{
    (void)state;
    char text[300];
    struct call_shape shape = {
        .kind = MESH_ALL_REDUCE, .dtype = MESH_F32, .count = 2, .bytes = 400};
    mesh_call_shape_describe(&shape, text, sizeof text);
    assert_string_equal(text, "all_reduce(sum, float32, 2 buffers, 400 bytes)");
    shape.dtype = CALL_DTYPE_MIXED;
    mesh_call_shape_describe(&shape, text, sizeof text);
    assert_string_equal(text, "all_reduce(sum, mixed types, 2 buffers, 400 bytes)");
    mesh_call_shape_describe(&shape, text, 11);
    assert_string_equal(text, "all_reduce"); /* cut, and terminated */
}

static void test_addresses(void **state)
{
    (void)state;
    static const char *const good[] = {
        "127.0.0.1:1", "10.0.0.7:65535", "[::1]:4000", "[fe80::1:2]:80"};
    static const char *const bad[] = {"", ":", ":1", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0",
        "127.0.0.1:99999", "127.0.0.1:+1", "127.0.0.1: 1", "host:1", "[]:1", "[::1:1",
        "127.0.0.1:1/", "127.0.0.1:1/0011", "127.0.0.1:1/00112233445g", "127.0.0.1:1/0011223344556",
        "127.0.0.1:1/00112233445A", "127.0.0.1/001122334455:1", "1.2.3.4.5:6", "127.0.0.1:1x"};
    struct mesh_sockaddr address;
    struct cadre_error error;
    char text[MESH_ADDRESS_BYTES];
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_ok(mesh_address_parse(good[i], &address, &error), &error);
        mesh_address_format(&address, NULL, text);
        assert_string_equal(text, good[i]);
        assert_int_equal(mesh_address_is_loopback(&address), i == 0 || i == 2);
    }
    static const uint8_t token[MESH_TOKEN_BYTES] = {0, 0x11, 0xab, 3, 4, 0xff};
    const char *longest = "[fedc:1234:1234:1234:1234:1234:1234:1234]:65535";
    assert_ok(mesh_address_parse(longest, &address, &error), &error);
    mesh_address_format(&address, token, text);
    assert_string_equal(text, "[fedc:1234:1234:1234:1234:1234:1234:1234]:65535/0011ab0304ff");
    assert_ok(mesh_address_parse(text, &address, &error), &error);
    struct mesh_sockaddr one = mesh_address_local("127.0.0.1:1/00112233445b");
    struct mesh_sockaddr two = mesh_address_local("127.0.0.1:1/00112233445c");
    assert_true(one.bytes == two.bytes && memcmp(&one.storage, &two.storage, one.bytes) != 0);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_error(
            mesh_address_parse(bad[i], &address, &error), CADRE_INVALID_ARGUMENT, &error, "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_proofs),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
