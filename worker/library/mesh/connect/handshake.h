/* SPDX-License-Identifier: Apache-2.0
 * How two tasks prove to each other that they hold the generation's key (protocol, rule 13). Four
 * messages of fixed size; no field is used as a length, and nothing else is read from a connection
 * before the proof.
 *
 *     connector                                acceptor
 *       hello: generation, nonce, roster,
 *              ranks, challenge C        --->
 *                                        <---  reply: challenge A, MAC("acceptor", hello, A)
 *       proof: MAC("connector", hello, A) -->
 *                                        <---  welcome: MAC("welcome", hello, A)
 *
 * MAC is HMAC-SHA256 with the key. The hello holds C and both ranks, so every MAC is bound to this
 * connection, this generation and this direction; a reply cannot be reflected as a proof. */
#ifndef CADRE_WORKER_MESH_CONNECT_HANDSHAKE_H
#define CADRE_WORKER_MESH_CONNECT_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/library/mesh/mesh.h"

#define HANDSHAKE_CHALLENGE_BYTES 32
#define HANDSHAKE_MAC_BYTES       32
#define HANDSHAKE_HELLO_BYTES     72
#define HANDSHAKE_REPLY_BYTES     (HANDSHAKE_CHALLENGE_BYTES + HANDSHAKE_MAC_BYTES)

struct handshake_hello {
    uint64_t generation;
    uint64_t nonce;
    uint64_t roster; /* a digest of the replica counts: both sides must derive the same tree */
    uint32_t from_rank;
    uint32_t to_rank;
};

/* Which of the three proofs a MAC is. */
enum handshake_role { HANDSHAKE_ACCEPTOR, HANDSHAKE_CONNECTOR, HANDSHAKE_WELCOME };

/* Writes a hello with a fresh challenge. Fails only when the system has no random numbers. */
cadre_status mesh_handshake_hello_make(const struct handshake_hello *hello,
    uint8_t ret_bytes[HANDSHAKE_HELLO_BYTES], struct cadre_error *error);

/* False when the bytes are not a hello of this version. The fields are claims until a proof was
 * checked. */
bool mesh_handshake_hello_read(
    const uint8_t bytes[HANDSHAKE_HELLO_BYTES], struct handshake_hello *ret_hello);

/* Writes the reply to `hello`: a fresh challenge and the acceptor's MAC. */
cadre_status mesh_handshake_reply_make(const uint8_t key[MESH_KEY_BYTES],
    const uint8_t hello[HANDSHAKE_HELLO_BYTES], uint8_t ret_bytes[HANDSHAKE_REPLY_BYTES],
    struct cadre_error *error);

/* The MAC of `role` over hello and the reply's challenge. */
void mesh_handshake_mac(const uint8_t key[MESH_KEY_BYTES], enum handshake_role role,
    const uint8_t hello[HANDSHAKE_HELLO_BYTES], const uint8_t challenge[HANDSHAKE_CHALLENGE_BYTES],
    uint8_t ret_mac[HANDSHAKE_MAC_BYTES]);

/* Whether `mac` is that MAC; takes the same time whatever the bytes are. */
bool mesh_handshake_mac_valid(const uint8_t key[MESH_KEY_BYTES], enum handshake_role role,
    const uint8_t hello[HANDSHAKE_HELLO_BYTES], const uint8_t challenge[HANDSHAKE_CHALLENGE_BYTES],
    const uint8_t mac[HANDSHAKE_MAC_BYTES]);

#endif
