/* SPDX-License-Identifier: Apache-2.0 Keys of the mesh that are sent in the clear are mixed with
 * the secret of the cluster, so that they are useless without it. */
#ifndef CADRE_RUNTIME_SESSION_KEY_H
#define CADRE_RUNTIME_SESSION_KEY_H

#include <stdint.h>

#define SESSION_KEY_BYTES 32

/* Mixes a generation's key with the secret, in place. */
void session_key_mix(const uint8_t secret[SESSION_KEY_BYTES], uint8_t key[SESSION_KEY_BYTES]);

#endif
