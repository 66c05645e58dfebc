/* SPDX-License-Identifier: Apache-2.0
 * The messages of the handshake and their MACs, with libcrypto. */
#include "worker/library/mesh/connect/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/mesh/bytes.h"

#define HELLO_MAGIC   UINT32_C(0x4d524443) /* "CDRM" */
#define HELLO_VERSION UINT32_C(2)
#define LABEL_BYTES   24

/* magic, version, generation, nonce, roster, ranks, challenge */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 4,
    AT_GENERATION = 8,
    AT_NONCE = 16,
    AT_ROSTER = 24,
    AT_FROM = 32,
    AT_TO = 36,
    AT_CHALLENGE = 40
};
_Static_assert(AT_CHALLENGE + HANDSHAKE_CHALLENGE_BYTES == HANDSHAKE_HELLO_BYTES, "no gap");

static cadre_status handshake_draw(
    uint8_t challenge[HANDSHAKE_CHALLENGE_BYTES], struct cadre_error *error)
{
    if (RAND_bytes(challenge, HANDSHAKE_CHALLENGE_BYTES) != 1) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "libcrypto has no random numbers for a challenge; check the system's entropy source");
    }
    return CADRE_OK;
}

void mesh_prepare_process(void)
{
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
}

cadre_status mesh_handshake_hello_make(const struct handshake_hello *hello,
    uint8_t ret_bytes[HANDSHAKE_HELLO_BYTES], struct cadre_error *error)
{
    bytes_put_u32(ret_bytes + AT_MAGIC, HELLO_MAGIC);
    bytes_put_u32(ret_bytes + AT_VERSION, HELLO_VERSION);
    bytes_put_u64(ret_bytes + AT_GENERATION, hello->generation);
    bytes_put_u64(ret_bytes + AT_NONCE, hello->nonce);
    bytes_put_u64(ret_bytes + AT_ROSTER, hello->roster);
    bytes_put_u32(ret_bytes + AT_FROM, hello->from_rank);
    bytes_put_u32(ret_bytes + AT_TO, hello->to_rank);
    return handshake_draw(ret_bytes + AT_CHALLENGE, error);
}

bool mesh_handshake_hello_read(
    const uint8_t bytes[HANDSHAKE_HELLO_BYTES], struct handshake_hello *ret_hello)
{
    *ret_hello = (struct handshake_hello){
        .generation = bytes_get_u64(bytes + AT_GENERATION),
        .nonce = bytes_get_u64(bytes + AT_NONCE),
        .roster = bytes_get_u64(bytes + AT_ROSTER),
        .from_rank = bytes_get_u32(bytes + AT_FROM),
        .to_rank = bytes_get_u32(bytes + AT_TO),
    };
    return bytes_get_u32(bytes + AT_MAGIC) == HELLO_MAGIC &&
           bytes_get_u32(bytes + AT_VERSION) == HELLO_VERSION;
}

cadre_status mesh_handshake_reply_make(const uint8_t key[MESH_KEY_BYTES],
    const uint8_t hello[HANDSHAKE_HELLO_BYTES], uint8_t ret_bytes[HANDSHAKE_REPLY_BYTES],
    struct cadre_error *error)
{
    CADRE_TRY(handshake_draw(ret_bytes, error));
    mesh_handshake_mac(
        key, HANDSHAKE_ACCEPTOR, hello, ret_bytes, ret_bytes + HANDSHAKE_CHALLENGE_BYTES);
    return CADRE_OK;
}

void mesh_handshake_mac(const uint8_t key[MESH_KEY_BYTES], enum handshake_role role,
    const uint8_t hello[HANDSHAKE_HELLO_BYTES], const uint8_t challenge[HANDSHAKE_CHALLENGE_BYTES],
    uint8_t ret_mac[HANDSHAKE_MAC_BYTES])
{
    static const char labels[][LABEL_BYTES] = {
        [HANDSHAKE_ACCEPTOR] = "cadre mesh 2 acceptor",
        [HANDSHAKE_CONNECTOR] = "cadre mesh 2 connector",
        [HANDSHAKE_WELCOME] = "cadre mesh 2 welcome",
    };
    uint8_t text[LABEL_BYTES + HANDSHAKE_HELLO_BYTES + HANDSHAKE_CHALLENGE_BYTES];
    memcpy(text, labels[role], LABEL_BYTES);
    memcpy(text + LABEL_BYTES, hello, HANDSHAKE_HELLO_BYTES);
    memcpy(text + LABEL_BYTES + HANDSHAKE_HELLO_BYTES, challenge, HANDSHAKE_CHALLENGE_BYTES);
    unsigned length = 0;
    uint8_t *mac = HMAC(EVP_sha256(), key, MESH_KEY_BYTES, text, sizeof text, ret_mac, &length);
    CADRE_ASSERT(mac != NULL && length == HANDSHAKE_MAC_BYTES);
}

bool mesh_handshake_mac_valid(const uint8_t key[MESH_KEY_BYTES], enum handshake_role role,
    const uint8_t hello[HANDSHAKE_HELLO_BYTES], const uint8_t challenge[HANDSHAKE_CHALLENGE_BYTES],
    const uint8_t mac[HANDSHAKE_MAC_BYTES])
{
    uint8_t expected[HANDSHAKE_MAC_BYTES];
    mesh_handshake_mac(key, role, hello, challenge, expected);
    return CRYPTO_memcmp(expected, mac, sizeof expected) == 0;
}
