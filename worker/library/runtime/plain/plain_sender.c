/* SPDX-License-Identifier: Apache-2.0
 * The thread that sends while the program's thread receives. plain_message.c calls it. */
#include "worker/library/runtime/plain/plain_sender.h"

#include <string.h>

#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/trace/trace.h"

static void *sender_run(void *user)
{
    struct plain_sender *sender = user;
    crash_thread("plain sender", 0);
    trace_thread_is(TRACE_THREAD_COMMUNICATION);
    pthread_mutex_lock(&sender->lock);
    while (!sender->stop) {
        if (sender->work == NULL) {
            pthread_cond_wait(&sender->changed, &sender->lock);
            continue;
        }
        pthread_mutex_unlock(&sender->lock);
        sender->work(sender->user);
        pthread_mutex_lock(&sender->lock);
        sender->work = NULL;
        pthread_cond_broadcast(&sender->changed);
    }
    pthread_mutex_unlock(&sender->lock);
    return NULL;
}

static cadre_status sender_open(struct plain_sender *sender, struct cadre_error *error)
{
    pthread_mutex_init(&sender->lock, NULL);
    pthread_cond_init(&sender->changed, NULL);
    int failed = thread_start(&sender->thread, sender_run, sender);
    sender->runs = failed == 0;
    if (failed != 0) {
        pthread_cond_destroy(&sender->changed);
        pthread_mutex_destroy(&sender->lock);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no thread that sends while this one receives: %s", strerror(failed));
    }
    return CADRE_OK;
}

cadre_status plain_sender_begin(
    struct plain_sender *sender, plain_sender_work *work, void *user, struct cadre_error *error)
{
    if (!sender->runs) {
        CADRE_TRY(sender_open(sender, error));
    }
    pthread_mutex_lock(&sender->lock);
    CADRE_ASSERT(sender->work == NULL);
    sender->user = user;
    sender->work = work;
    pthread_cond_broadcast(&sender->changed);
    pthread_mutex_unlock(&sender->lock);
    return CADRE_OK;
}

void plain_sender_wait(struct plain_sender *sender)
{
    pthread_mutex_lock(&sender->lock);
    while (sender->work != NULL) {
        pthread_cond_wait(&sender->changed, &sender->lock);
    }
    pthread_mutex_unlock(&sender->lock);
}

void plain_sender_close(struct plain_sender *sender)
{
    if (sender->runs) {
        pthread_mutex_lock(&sender->lock);
        CADRE_ASSERT(sender->work == NULL);
        sender->stop = true;
        pthread_cond_broadcast(&sender->changed);
        pthread_mutex_unlock(&sender->lock);
        pthread_join(sender->thread, NULL);
        pthread_cond_destroy(&sender->changed);
        pthread_mutex_destroy(&sender->lock);
        sender->runs = false;
    }
}
