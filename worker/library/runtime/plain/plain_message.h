/* SPDX-License-Identifier: Apache-2.0
 * Messages between two tasks of a plain program: what a public function asks for, checked and
 * carried out. */
#ifndef CADRE_RUNTIME_PLAIN_MESSAGE_H
#define CADRE_RUNTIME_PLAIN_MESSAGE_H

#include "worker/library/runtime/plain/plain.h"

/* One direction of a call. */
struct plain_message {
    bool due;         /* the function has this direction, and a task is named */
    uint32_t partner; /* its rank in the group */
    const void *from; /* what is sent */
    void *into;       /* where it is received */
    size_t count;
    size_t bytes;             /* of `count`; computed */
    const char *name;         /* of the argument that has the memory */
    const char *partner_name; /* of the argument that has the task */
};

struct plain_exchange {
    const char *function;
    cadre_dtype dtype;
    struct plain_message received;
    struct plain_message sent;
};

/* The call of a public function among the tasks of a group that was entered, or could not be
 * (`entered`); leaves it, and returns as the function does. */
cadre_status plain_exchange_make(cadre_status entered, struct cadre_plain_group *group,
    struct plain_exchange *exchange, struct cadre_error *error);

#endif
