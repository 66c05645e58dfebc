/* SPDX-License-Identifier: Apache-2.0
 * Keys of the mesh that travel in the open are worth nothing to who does not have the secret of the
 * cluster: both are mixed. */
#ifndef CADRE_RUNTIME_SESSION_KEY_H
#define CADRE_RUNTIME_SESSION_KEY_H

#include <stdint.h>

#define SESSION_KEY_BYTES 32

/* What a generation's key becomes for who has the secret: in place. */
void session_key_mix(const uint8_t secret[SESSION_KEY_BYTES], uint8_t key[SESSION_KEY_BYTES]);

#endif
