/* SPDX-License-Identifier: Apache-2.0
 * How a task of a cluster and the first task authenticate each other, before either accepts a frame
 * of the other. All messages have fixed sizes, and nothing in them is a length.
 *
 *
 *     connector  hello: versions, which task, which cluster, challenge C       -->  acceptor
 *                <-- answer: code, text, challenge A, MAC("acceptor", hello, A)
 *                MAC("connector", hello, A) -->
 *                <-- answer: code, text, slot, incarnation, MAC("verdict", hello, A, answer)
 *
 * Both challenges are new each time, so no message can be replayed. The verdict comes when all
 * tasks are connected. Without a key (on loopback, or where the user chose that) the MACs are made
 * with zeros, and prove nothing. */
#ifndef CADRE_RUNTIME_CLUSTER_GREETING_H
#define CADRE_RUNTIME_CLUSTER_GREETING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

#define GREETING_KEY_BYTES       32
#define GREETING_MAC_BYTES       32
#define GREETING_CHALLENGE_BYTES 32
#define GREETING_CLUSTER_BYTES   32
#define GREETING_TEXT_BYTES      448
#define GREETING_HELLO_BYTES     96
#define GREETING_ANSWER_BYTES    536

/* From a checkpoint of a folder, which the first task of the cluster chooses. */
#define RESTORED_BY_FIRST_TASK UINT64_MAX

struct greeting_hello {
    uint32_t frame_version; /* of the frames that follow */
    uint32_t member_id;     /* the task's id in the cluster */
    uint32_t tasks;
    bool keyed;
    uint64_t restored; /* the position that it goes on from, or RESTORED_BY_FIRST_TASK */
    uint8_t cluster[GREETING_CLUSTER_BYTES];
    uint8_t challenge[GREETING_CHALLENGE_BYTES];
};

struct greeting_answer {
    cadre_status code;
    uint32_t slot;
    uint64_t incarnation;
    uint8_t challenge[GREETING_CHALLENGE_BYTES];
    char text[GREETING_TEXT_BYTES];
};

enum greeting_role { GREETING_ACCEPTOR = 0, GREETING_CONNECTOR, GREETING_VERDICT };

/* Fills it with random bytes. UNAVAILABLE when there are none. */
cadre_status greeting_challenge(
    uint8_t ret_challenge[GREETING_CHALLENGE_BYTES], struct cadre_error *error);

/* Writes the hello in its wire format. */
void greeting_hello_write(
    const struct greeting_hello *hello, uint8_t ret_bytes[GREETING_HELLO_BYTES]);
/* False when it is not a hello, or of another version of this protocol. */
bool greeting_hello_read(
    const uint8_t bytes[GREETING_HELLO_BYTES], struct greeting_hello *ret_hello);

/* Writes the answer with its MAC at the end. `hello` are the bytes that it answers, `challenge` the
 * one that the acceptor made for that connection. */
void greeting_answer_write(const struct greeting_answer *answer,
    const uint8_t key[GREETING_KEY_BYTES], enum greeting_role role,
    const uint8_t hello[GREETING_HELLO_BYTES], const uint8_t challenge[GREETING_CHALLENGE_BYTES],
    uint8_t ret_bytes[GREETING_ANSWER_BYTES]);
/* False when it is not an answer. */
bool greeting_answer_read(
    const uint8_t bytes[GREETING_ANSWER_BYTES], struct greeting_answer *ret_answer);
/* Whether the answer's MAC is right. */
bool greeting_answer_valid(const uint8_t bytes[GREETING_ANSWER_BYTES],
    const uint8_t key[GREETING_KEY_BYTES], enum greeting_role role,
    const uint8_t hello[GREETING_HELLO_BYTES], const uint8_t challenge[GREETING_CHALLENGE_BYTES]);

/* The connector's MAC, over the hello and the acceptor's challenge. */
void greeting_mac(const uint8_t key[GREETING_KEY_BYTES], const uint8_t hello[GREETING_HELLO_BYTES],
    const uint8_t challenge[GREETING_CHALLENGE_BYTES], uint8_t ret_mac[GREETING_MAC_BYTES]);
/* Whether `mac` is that. Takes the same time for each wrong one. */
bool greeting_mac_valid(const uint8_t key[GREETING_KEY_BYTES],
    const uint8_t hello[GREETING_HELLO_BYTES], const uint8_t challenge[GREETING_CHALLENGE_BYTES],
    const uint8_t mac[GREETING_MAC_BYTES]);

#endif
