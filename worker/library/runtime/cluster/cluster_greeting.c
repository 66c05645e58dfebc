/* SPDX-License-Identifier: Apache-2.0
 * The messages of the greeting as bytes, and their MACs (HMAC-SHA-256). cluster_pending.c is the
 * acceptor, session_cluster.c the connector. */
#include "worker/library/runtime/cluster/cluster_greeting.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <string.h>

#include "common/pure/assert.h"

#define MAGIC       UINT32_C(0x43524443) /* "CDRC" */
#define VERSION     UINT32_C(1)
#define LABEL_BYTES 24

enum {
    HELLO_MAGIC = 0,
    HELLO_VERSION = 4,
    HELLO_FRAME = 8,
    HELLO_TASK_ID = 12,
    HELLO_TASKS = 16,
    HELLO_KEYED = 20,
    HELLO_RESTORED = 24,
    HELLO_CLUSTER = 32,
    HELLO_CHALLENGE = 64
};
_Static_assert(HELLO_CHALLENGE + GREETING_CHALLENGE_BYTES == GREETING_HELLO_BYTES, "no gap");

enum {
    ANSWER_MAGIC = 0,
    ANSWER_CODE = 4,
    ANSWER_SLOT = 8,
    ANSWER_ZERO = 12,
    ANSWER_INCARNATION = 16,
    ANSWER_CHALLENGE = 24,
    ANSWER_TEXT = 56,
    ANSWER_MAC = 504
};
_Static_assert(ANSWER_TEXT + GREETING_TEXT_BYTES == ANSWER_MAC, "no gap");
_Static_assert(ANSWER_MAC + GREETING_MAC_BYTES == GREETING_ANSWER_BYTES, "no gap");

static void cluster_greeting_put(uint8_t *at, uint64_t value, size_t bytes)
{
    CADRE_ASSERT(bytes <= sizeof value);
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t cluster_greeting_get(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    CADRE_ASSERT(bytes <= sizeof value);
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

cadre_status greeting_challenge(
    uint8_t ret_challenge[GREETING_CHALLENGE_BYTES], struct cadre_error *error)
{
    if (RAND_bytes(ret_challenge, GREETING_CHALLENGE_BYTES) != 1) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "libcrypto has no random numbers for a challenge; check the system's entropy source");
    }
    return CADRE_OK;
}

void greeting_hello_write(
    const struct greeting_hello *hello, uint8_t ret_bytes[GREETING_HELLO_BYTES])
{
    cluster_greeting_put(ret_bytes + HELLO_MAGIC, MAGIC, 4);
    cluster_greeting_put(ret_bytes + HELLO_VERSION, VERSION, 4);
    cluster_greeting_put(ret_bytes + HELLO_FRAME, hello->frame_version, 4);
    cluster_greeting_put(ret_bytes + HELLO_TASK_ID, hello->member_id, 4);
    cluster_greeting_put(ret_bytes + HELLO_TASKS, hello->tasks, 4);
    cluster_greeting_put(ret_bytes + HELLO_KEYED, hello->keyed ? 1 : 0, 4);
    cluster_greeting_put(ret_bytes + HELLO_RESTORED, hello->restored, 8);
    memcpy(ret_bytes + HELLO_CLUSTER, hello->cluster, GREETING_CLUSTER_BYTES);
    memcpy(ret_bytes + HELLO_CHALLENGE, hello->challenge, GREETING_CHALLENGE_BYTES);
}

bool greeting_hello_read(
    const uint8_t bytes[GREETING_HELLO_BYTES], struct greeting_hello *ret_hello)
{
    *ret_hello = (struct greeting_hello){
        .frame_version = (uint32_t)cluster_greeting_get(bytes + HELLO_FRAME, 4),
        .member_id = (uint32_t)cluster_greeting_get(bytes + HELLO_TASK_ID, 4),
        .tasks = (uint32_t)cluster_greeting_get(bytes + HELLO_TASKS, 4),
        .keyed = cluster_greeting_get(bytes + HELLO_KEYED, 4) != 0,
        .restored = cluster_greeting_get(bytes + HELLO_RESTORED, 8),
    };
    memcpy(ret_hello->cluster, bytes + HELLO_CLUSTER, GREETING_CLUSTER_BYTES);
    memcpy(ret_hello->challenge, bytes + HELLO_CHALLENGE, GREETING_CHALLENGE_BYTES);
    return cluster_greeting_get(bytes + HELLO_MAGIC, 4) == MAGIC &&
           cluster_greeting_get(bytes + HELLO_VERSION, 4) == VERSION;
}

/* Over the role, the hello, the acceptor's challenge, and the bytes of the message. */
static void mac_of(const uint8_t key[GREETING_KEY_BYTES], enum greeting_role role,
    const uint8_t hello[GREETING_HELLO_BYTES], const uint8_t challenge[GREETING_CHALLENGE_BYTES],
    const uint8_t *received, size_t received_bytes, uint8_t ret_mac[GREETING_MAC_BYTES])
{
    static const char labels[][LABEL_BYTES] = {
        [GREETING_ACCEPTOR] = "cadre cluster 1 acceptor",
        [GREETING_CONNECTOR] = "cadre cluster 1 connect",
        [GREETING_VERDICT] = "cadre cluster 1 verdict",
    };
    uint8_t
        text[LABEL_BYTES + GREETING_HELLO_BYTES + GREETING_CHALLENGE_BYTES + GREETING_ANSWER_BYTES];
    size_t bytes = 0;
    CADRE_ASSERT(received_bytes <= GREETING_ANSWER_BYTES);
    memcpy(text, labels[role], LABEL_BYTES);
    bytes += LABEL_BYTES;
    memcpy(text + bytes, hello, GREETING_HELLO_BYTES);
    bytes += GREETING_HELLO_BYTES;
    memcpy(text + bytes, challenge, GREETING_CHALLENGE_BYTES);
    bytes += GREETING_CHALLENGE_BYTES;
    if (received_bytes > 0) {
        memcpy(text + bytes, received, received_bytes);
    }
    unsigned length = 0;
    const uint8_t *mac =
        HMAC(EVP_sha256(), key, GREETING_KEY_BYTES, text, bytes + received_bytes, ret_mac, &length);
    CADRE_ASSERT(mac != NULL && length == GREETING_MAC_BYTES);
}

void greeting_answer_write(const struct greeting_answer *answer,
    const uint8_t key[GREETING_KEY_BYTES], enum greeting_role role,
    const uint8_t hello[GREETING_HELLO_BYTES], const uint8_t challenge[GREETING_CHALLENGE_BYTES],
    uint8_t ret_bytes[GREETING_ANSWER_BYTES])
{
    cluster_greeting_put(ret_bytes + ANSWER_MAGIC, MAGIC, 4);
    cluster_greeting_put(ret_bytes + ANSWER_CODE, (uint64_t)answer->code, 4);
    cluster_greeting_put(ret_bytes + ANSWER_SLOT, answer->slot, 4);
    cluster_greeting_put(ret_bytes + ANSWER_ZERO, 0, 4);
    cluster_greeting_put(ret_bytes + ANSWER_INCARNATION, answer->incarnation, 8);
    memcpy(ret_bytes + ANSWER_CHALLENGE, challenge, GREETING_CHALLENGE_BYTES);
    memset(ret_bytes + ANSWER_TEXT, 0, GREETING_TEXT_BYTES);
    memcpy(ret_bytes + ANSWER_TEXT, answer->text, strnlen(answer->text, GREETING_TEXT_BYTES - 1));
    mac_of(key, role, hello, challenge, ret_bytes, ANSWER_MAC, ret_bytes + ANSWER_MAC);
}

bool greeting_answer_read(
    const uint8_t bytes[GREETING_ANSWER_BYTES], struct greeting_answer *ret_answer)
{
    uint64_t code = cluster_greeting_get(bytes + ANSWER_CODE, 4);
    *ret_answer = (struct greeting_answer){
        .code = code <= CADRE_UNAUTHENTICATED ? (cadre_status)code : CADRE_UNKNOWN,
        .slot = (uint32_t)cluster_greeting_get(bytes + ANSWER_SLOT, 4),
        .incarnation = cluster_greeting_get(bytes + ANSWER_INCARNATION, 8),
    };
    memcpy(ret_answer->challenge, bytes + ANSWER_CHALLENGE, GREETING_CHALLENGE_BYTES);
    memcpy(ret_answer->text, bytes + ANSWER_TEXT, GREETING_TEXT_BYTES - 1);
    return cluster_greeting_get(bytes + ANSWER_MAGIC, 4) == MAGIC;
}

bool greeting_answer_valid(const uint8_t bytes[GREETING_ANSWER_BYTES],
    const uint8_t key[GREETING_KEY_BYTES], enum greeting_role role,
    const uint8_t hello[GREETING_HELLO_BYTES], const uint8_t challenge[GREETING_CHALLENGE_BYTES])
{
    uint8_t expected[GREETING_MAC_BYTES];
    mac_of(key, role, hello, challenge, bytes, ANSWER_MAC, expected);
    return CRYPTO_memcmp(expected, bytes + ANSWER_MAC, GREETING_MAC_BYTES) == 0;
}

void greeting_mac(const uint8_t key[GREETING_KEY_BYTES], const uint8_t hello[GREETING_HELLO_BYTES],
    const uint8_t challenge[GREETING_CHALLENGE_BYTES], uint8_t ret_mac[GREETING_MAC_BYTES])
{
    mac_of(key, GREETING_CONNECTOR, hello, challenge, NULL, 0, ret_mac);
}

bool greeting_mac_valid(const uint8_t key[GREETING_KEY_BYTES],
    const uint8_t hello[GREETING_HELLO_BYTES], const uint8_t challenge[GREETING_CHALLENGE_BYTES],
    const uint8_t mac[GREETING_MAC_BYTES])
{
    uint8_t expected[GREETING_MAC_BYTES];
    greeting_mac(key, hello, challenge, expected);
    return CRYPTO_memcmp(expected, mac, GREETING_MAC_BYTES) == 0;
}
