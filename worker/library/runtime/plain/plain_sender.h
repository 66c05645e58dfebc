/* SPDX-License-Identifier: Apache-2.0
 * A thread that sends a message while the program's thread receives another one. It begins with the
 * first call that needs it. */
#ifndef CADRE_RUNTIME_PLAIN_SENDER_H
#define CADRE_RUNTIME_PLAIN_SENDER_H

#include <pthread.h>
#include <stdbool.h>

#include "common/base/error.h"

typedef void plain_sender_work(void *user);

struct plain_sender {
    bool runs;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop;
    plain_sender_work *work; /* NULL: nothing is due */
    void *user;
};

/* Has `work` called by the thread; plain_sender_wait before the next. RESOURCE_EXHAUSTED. */
cadre_status plain_sender_begin(
    struct plain_sender *sender, plain_sender_work *work, void *user, struct cadre_error *error);
/* Waits until it has returned. */
void plain_sender_wait(struct plain_sender *sender);

/* Ends the thread, if there is one; nothing is due. */
void plain_sender_close(struct plain_sender *sender);

#endif
