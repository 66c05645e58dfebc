/* SPDX-License-Identifier: Apache-2.0
 * Messages in flight: deep copies with a reference count, from a pool that is used again. */
#ifndef CADRE_SIM_MESSAGE_H
#define CADRE_SIM_MESSAGE_H

#include "common/model/agent_message.h"

struct message {
    uint32_t references;
    bool guarded; /* of several coordinators: its sender was known to lead when it decided it */
    uint64_t
        term; /* of several coordinators: in which the sender leads; 0: a refusal of the link */
    struct message *next; /* in the pool */
    union {
        struct agent_up up;
        struct agent_down down;
        struct task_up task_up;
    };
    char strings[2][LIMIT_TEXT_BYTES];
    struct task_ref *tasks;          /* of a hello */
    struct roster_entry *roster;     /* of a plan */
    struct stream_position *streams; /* of a warm one */
    struct task_member *members;     /* of a ps job */
};

struct message_pool {
    struct message *free;
    uint64_t in_use;
};

/* Copies with one reference. Strings are cut to LIMIT_TEXT_BYTES, names of daemons are not copied.
 */
struct message *message_of_up(struct message_pool *pool, const struct agent_up *up);
/* The same of a task's message. */
struct message *message_of_task_up(struct message_pool *pool, const struct task_up *up);
/* The same of a message to an agent. */
struct message *message_of_down(struct message_pool *pool, const struct agent_down *down);

/* Gives up one reference; accepts NULL. */
void message_drop(struct message_pool *pool, struct message *message);
/* Frees all messages; none is in use. */
void message_pool_free(struct message_pool *pool);

#endif
