/* SPDX-License-Identifier: Apache-2.0
 * Messages from the chief that the worker has not handled yet: a thread receives them, so that
 * CANCEL is received while a closure runs. One for each connection. */
#ifndef CADRE_RUNTIME_CLOSURES_CLOSURE_INBOX_H
#define CADRE_RUNTIME_CLOSURES_CLOSURE_INBOX_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "worker/library/ps/link/link.h"

/* More than a chief sends ahead: objects to make, and two closures. */
#define INBOX_MESSAGES_MAX 8192

struct message {
    struct message *next;
    struct frame frame;
    uint8_t bytes[]; /* frame.bytes, and a zero */
};

struct closure_inbox {
    struct link *link;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct message *first;
    struct message **last;
    uint32_t count;
    bool over;    /* the link is lost; `error` has the cause */
    bool goodbye; /* the chief is done */
    struct cadre_error error;
    _Atomic uint64_t cancelled; /* closures up to this number are cancelled */
};

/* Starts the receiving thread. The link stays the caller's. */
cadre_status closure_inbox_open(
    struct closure_inbox *inbox, struct link *link, struct cadre_error *error);
/* Shuts the link down, then joins the thread. */
void closure_inbox_close(struct closure_inbox *inbox);

enum closure_inbox_event { INBOX_MESSAGE, INBOX_NOTHING, INBOX_CLOSED };

/* The next message, which the caller frees; waits for at most a second. */
enum closure_inbox_event closure_inbox_take(
    struct closure_inbox *inbox, struct message **ret_message);

#endif
