/* SPDX-License-Identifier: Apache-2.0
 * The messages with which tasks of a cluster authenticate each other: their fields, and what they
 * prove. */
#include <string.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/cluster/cluster_greeting.h"

static const uint8_t key[GREETING_KEY_BYTES] = "thirty-two bytes that are a key";
static const uint8_t other[GREETING_KEY_BYTES] = "thirty-two bytes of another key";
static const uint8_t challenge[GREETING_CHALLENGE_BYTES] = "a challenge";

static void make_hello(uint8_t bytes[GREETING_HELLO_BYTES])
{
    struct greeting_hello hello = {.frame_version = 2,
        .member_id = 3,
        .tasks = 5,
        .keyed = true,
        .restored = UINT64_C(1) << 40,
        .cluster = "which",
        .challenge = "mine"};
    greeting_hello_write(&hello, bytes);
}

static void a_hello_says_what_was_put_in(void **state)
{
    (void)state;
    uint8_t bytes[GREETING_HELLO_BYTES];
    struct greeting_hello hello;
    make_hello(bytes);
    assert_true(greeting_hello_read(bytes, &hello));
    assert_int_equal(hello.frame_version, 2);
    assert_int_equal(hello.member_id, 3);
    assert_int_equal(hello.tasks, 5);
    assert_true(hello.keyed);
    assert_int_equal(hello.restored, UINT64_C(1) << 40);
    assert_string_equal((const char *)hello.cluster, "which");
    assert_string_equal((const char *)hello.challenge, "mine");
    for (size_t i = 0; i < 8; i++) { /* magic and version */
        make_hello(bytes);
        bytes[i] ^= 1;
        assert_false(greeting_hello_read(bytes, &hello));
    }
}

static void an_answer_proves_every_byte(void **state)
{
    (void)state;
    uint8_t hello[GREETING_HELLO_BYTES];
    uint8_t bytes[GREETING_ANSWER_BYTES];
    struct greeting_answer read;
    struct greeting_answer answer = {
        .code = CADRE_ALREADY_EXISTS, .slot = 4, .incarnation = 77, .text = "there is one"};
    make_hello(hello);
    greeting_answer_write(&answer, key, GREETING_VERDICT, hello, challenge, bytes);
    assert_true(greeting_answer_read(bytes, &read));
    assert_int_equal(read.code, CADRE_ALREADY_EXISTS);
    assert_int_equal(read.slot, 4);
    assert_int_equal(read.incarnation, 77);
    assert_string_equal(read.text, "there is one");
    assert_memory_equal(read.challenge, challenge, sizeof challenge);
    assert_true(greeting_answer_valid(bytes, key, GREETING_VERDICT, hello, challenge));
    assert_false(greeting_answer_valid(bytes, other, GREETING_VERDICT, hello, challenge));
    assert_false(greeting_answer_valid(bytes, key, GREETING_ACCEPTOR, hello, challenge));
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 0x10;
        assert_false(greeting_answer_valid(bytes, key, GREETING_VERDICT, hello, challenge));
        bytes[i] ^= 0x10;
    }
    for (size_t i = 0; i < sizeof hello; i++) {
        hello[i] ^= 0x10;
        assert_false(greeting_answer_valid(bytes, key, GREETING_VERDICT, hello, challenge));
        hello[i] ^= 0x10;
    }
}

static void an_answer_from_elsewhere_is_read_safely(void **state)
{
    (void)state;
    uint8_t hello[GREETING_HELLO_BYTES];
    uint8_t bytes[GREETING_ANSWER_BYTES];
    struct greeting_answer answer = {.code = CADRE_OK};
    make_hello(hello);
    memset(answer.text, 'x', sizeof answer.text); /* without an end */
    greeting_answer_write(&answer, key, GREETING_VERDICT, hello, challenge, bytes);
    memset(bytes + 4, 0xff, 4);   /* a code that is none */
    memset(bytes + 56, 'y', 448); /* a text without an end */
    assert_true(greeting_answer_read(bytes, &answer));
    assert_int_equal(answer.code, CADRE_UNKNOWN);
    assert_int_equal(strlen(answer.text), GREETING_TEXT_BYTES - 1);
    bytes[0] ^= 1;
    assert_false(greeting_answer_read(bytes, &answer));
}

static void a_mac_is_good_once(void **state)
{
    (void)state;
    uint8_t hello[GREETING_HELLO_BYTES];
    uint8_t another[GREETING_CHALLENGE_BYTES] = "another challenge";
    uint8_t mac[GREETING_MAC_BYTES];
    make_hello(hello);
    greeting_mac(key, hello, challenge, mac);
    assert_true(greeting_mac_valid(key, hello, challenge, mac));
    assert_false(greeting_mac_valid(other, hello, challenge, mac));
    assert_false(greeting_mac_valid(key, hello, another, mac)); /* replayed to a new challenge */
    mac[31] ^= 1;
    assert_false(greeting_mac_valid(key, hello, challenge, mac));
}

static void challenges_differ(void **state)
{
    (void)state;
    uint8_t one[GREETING_CHALLENGE_BYTES];
    uint8_t two[GREETING_CHALLENGE_BYTES];
    struct cadre_error error = {0};
    assert_ok(greeting_challenge(one, &error), &error);
    assert_ok(greeting_challenge(two, &error), &error);
    assert_memory_not_equal(one, two, sizeof one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hello_says_what_was_put_in),
        cmocka_unit_test(an_answer_proves_every_byte),
        cmocka_unit_test(an_answer_from_elsewhere_is_read_safely),
        cmocka_unit_test(a_mac_is_good_once),
        cmocka_unit_test(challenges_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
