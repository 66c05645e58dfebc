/* SPDX-License-Identifier: Apache-2.0
 * See closure_inbox.h. Called by closure_worker.c. */
#include "worker/library/runtime/closures/closure_inbox.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/runtime/closures/closure_wire.h"

static cadre_status closure_inbox_receive(
    struct closure_inbox *inbox, struct message **ret_message, struct cadre_error *error)
{
    struct frame frame;
    CADRE_TRY(link_receive(inbox->link, UINT64_MAX, &frame, error));
    struct message *message =
        frame.bytes > CLOSURE_BYTES_MAX ? NULL : malloc(sizeof *message + (size_t)frame.bytes + 1);
    if (message == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %llu bytes of the chief", (unsigned long long)frame.bytes);
    }
    message->frame = frame;
    message->next = NULL;
    message->bytes[frame.bytes] = 0;
    cadre_status status =
        link_receive_bytes(inbox->link, message->bytes, (size_t)frame.bytes, error);
    if (status != CADRE_OK) {
        free(message);
        return status;
    }
    *ret_message = message;
    return CADRE_OK;
}

/* The caller holds the lock. False: it is the last message. */
static bool closure_inbox_keep(struct closure_inbox *inbox, struct message *message)
{
    CADRE_ASSERT(!inbox->over); /* after the last nothing is received */
    if (message->frame.kind == CLOSURE_CANCEL) {
        if (message->frame.args[0] > atomic_load(&inbox->cancelled)) {
            atomic_store(&inbox->cancelled, message->frame.args[0]);
        }
    } else if (message->frame.kind == CLOSURE_GOODBYE) {
        atomic_store(&inbox->cancelled, UINT64_MAX);
        inbox->goodbye = true;
    } else if (inbox->count < INBOX_MESSAGES_MAX) {
        *inbox->last = message;
        inbox->last = &message->next;
        inbox->count++;
        return true;
    } else {
        cadre_error_set(
            &inbox->error, CADRE_INTERNAL, "the chief sent %d messages ahead", INBOX_MESSAGES_MAX);
        free(message);
        return false;
    }
    bool more = message->frame.kind == CLOSURE_CANCEL;
    free(message);
    return more;
}

static void *listen_to_chief(void *user)
{
    struct closure_inbox *inbox = user;
    crash_thread("closure inbox", 0);
    struct cadre_error error = {0};
    bool more = true;
    while (more) {
        struct message *message = NULL;
        cadre_status status = closure_inbox_receive(inbox, &message, &error);
        pthread_mutex_lock(&inbox->lock);
        if (status != CADRE_OK) {
            inbox->error = error;
        }
        more = status == CADRE_OK && closure_inbox_keep(inbox, message);
        inbox->over = !more;
        pthread_cond_signal(&inbox->changed);
        pthread_mutex_unlock(&inbox->lock);
    }
    return NULL;
}

cadre_status closure_inbox_open(
    struct closure_inbox *inbox, struct link *link, struct cadre_error *error)
{
    CADRE_ASSERT(link != NULL);
    *inbox = (struct closure_inbox){.link = link};
    inbox->last = &inbox->first;
    atomic_init(&inbox->cancelled, 0);
    pthread_mutex_init(&inbox->lock, NULL);
    pthread_cond_init(&inbox->changed, NULL);
    int failed = thread_start(&inbox->thread, listen_to_chief, inbox);
    if (failed != 0) {
        pthread_cond_destroy(&inbox->changed);
        pthread_mutex_destroy(&inbox->lock);
        return cadre_error_errno(error, failed, "start the thread that receives from the chief");
    }
    return CADRE_OK;
}

void closure_inbox_close(struct closure_inbox *inbox)
{
    link_shutdown(inbox->link);
    pthread_join(inbox->thread, NULL);
    while (inbox->first != NULL) {
        struct message *message = inbox->first;
        inbox->first = message->next;
        free(message);
    }
    pthread_cond_destroy(&inbox->changed);
    pthread_mutex_destroy(&inbox->lock);
}

enum closure_inbox_event closure_inbox_take(
    struct closure_inbox *inbox, struct message **ret_message)
{
    int late = 0;
    uint64_t until_us = clock_monotonic_us() + CADRE_US_PER_S;
    pthread_mutex_lock(&inbox->lock);
    CADRE_ASSERT(inbox->count <= INBOX_MESSAGES_MAX);
    CADRE_ASSERT((inbox->first == NULL) == (inbox->count == 0));
    while (inbox->first == NULL && !inbox->over && late == 0) {
        late = thread_wait_until(&inbox->changed, &inbox->lock, until_us);
    }
    struct message *message = inbox->over ? NULL : inbox->first;
    if (message != NULL) {
        inbox->first = message->next;
        inbox->last = inbox->first == NULL ? &inbox->first : inbox->last;
        inbox->count--;
    }
    enum closure_inbox_event news = inbox->over       ? INBOX_CLOSED
                                    : message == NULL ? INBOX_NOTHING
                                                      : INBOX_MESSAGE;
    pthread_mutex_unlock(&inbox->lock);
    *ret_message = message;
    return news;
}
