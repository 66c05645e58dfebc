/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/task/session.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "common/pure/assert.h"

void session_key_mix(const uint8_t secret[SESSION_KEY_BYTES], uint8_t key[SESSION_KEY_BYTES])
{
    uint8_t mixed[SESSION_KEY_BYTES];
    unsigned length = 0;
    const uint8_t *mac =
        HMAC(EVP_sha256(), secret, SESSION_KEY_BYTES, key, SESSION_KEY_BYTES, mixed, &length);
    CADRE_ASSERT(mac != NULL);
    CADRE_ASSERT(length == SESSION_KEY_BYTES);
    memcpy(key, mixed, sizeof mixed);
}
