/* SPDX-License-Identifier: Apache-2.0
 * Keys of meshes of some tasks, made from the key of the mesh of all (HMAC-SHA256, as a key
 * derivation function: NIST SP 800-108). The runtime calls it for groups of a plain program. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/mesh/bytes.h"
#include "worker/library/mesh/mesh.h"

#define LABEL_BYTES 24

static void derive(const uint8_t key[MESH_KEY_BYTES], const char label[LABEL_BYTES],
    const uint64_t *which, size_t count, uint8_t ret_mac[MESH_KEY_BYTES])
{
    uint8_t text[LABEL_BYTES + MESH_DERIVE_MAX * 8] = {0};
    CADRE_ASSERT(count <= MESH_DERIVE_MAX);
    memcpy(text, label, LABEL_BYTES);
    for (size_t i = 0; i < count; i++) {
        bytes_put_u64(text + LABEL_BYTES + i * 8, which[i]);
    }
    unsigned length = 0;
    size_t size = LABEL_BYTES + count * 8;
    uint8_t *mac = HMAC(EVP_sha256(), key, MESH_KEY_BYTES, text, size, ret_mac, &length);
    CADRE_ASSERT(mac != NULL && length == MESH_KEY_BYTES);
}

void mesh_key_derive(const uint8_t key[MESH_KEY_BYTES], const uint64_t *which, size_t count,
    uint8_t ret_key[MESH_KEY_BYTES], uint64_t *ret_nonce)
{
    static const char key_label[LABEL_BYTES] = "cadre mesh 2 part key";
    static const char nonce_label[LABEL_BYTES] = "cadre mesh 2 part nonce";
    uint8_t nonce[MESH_KEY_BYTES];
    derive(key, nonce_label, which, count, nonce);
    derive(key, key_label, which, count, ret_key);
    *ret_nonce = bytes_get_u64(nonce);
    OPENSSL_cleanse(nonce, sizeof nonce);
}
