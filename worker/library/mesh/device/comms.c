/* SPDX-License-Identifier: Apache-2.0
 * The table of a task's communicators, and the thread that ends them (comms.h). connect.c, groups.c
 * and synchronize.c call it. */
#include "worker/library/mesh/device/comms.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/thread.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"

#define LENT_US (2 * CADRE_US_PER_S)

struct ending;

struct slot {
    struct device_comm *comm; /* NULL: not posted */
    bool busy;
    bool dropped;
};

struct comms {
    const struct device_comm_ops *ops;
    uint32_t count;
    int fault_fd;
    int wake_fd;
    pthread_t ender;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* on the monotonic clock */
    /* Under the lock. */
    uint32_t inside; /* calls on a communicator now */
    uint32_t lent;   /* replicas whose program has handles */
    uint32_t ending; /* threads that end one */
    bool orderly;
    bool closing;
    bool ended;
    bool left; /* the owner has released it: the ender frees */
    struct slot *slots;
    struct ending *endings; /* the ender's */
};

static void free_comms(struct comms *comms)
{
    if (comms->fault_fd >= 0) {
        close(comms->fault_fd);
    }
    if (comms->wake_fd >= 0) {
        close(comms->wake_fd);
    }
    pthread_cond_destroy(&comms->changed);
    pthread_mutex_destroy(&comms->lock);
    free(comms->slots);
    free(comms->endings);
    free(comms);
}

static bool comms_readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) > 0;
}

/* Waits for comms_end or a fault, then for the calls inside; returns whether to end in order. */
static bool await_end(struct comms *comms)
{
    struct pollfd polls[] = {
        {.fd = comms->fault_fd, .events = POLLIN}, {.fd = comms->wake_fd, .events = POLLIN}};
    while (poll(polls, 2, -1) < 0 && errno == EINTR) {
    }
    pthread_mutex_lock(&comms->lock);
    comms->closing = true;
    pthread_cond_broadcast(&comms->changed);
    while (comms->inside > 0) {
        pthread_cond_wait(&comms->changed, &comms->lock);
    }
    uint64_t until_us = clock_monotonic_us() + LENT_US;
    int outcome = 0;
    while (comms->lent > 0 && outcome == 0) {
        outcome = thread_wait_until(&comms->changed, &comms->lock, until_us);
    }
    bool orderly = comms->orderly && !comms_readable(comms->fault_fd);
    pthread_mutex_unlock(&comms->lock);
    return orderly;
}

/* The end of one communicator, by a thread of its own that is never joined: a hang in a driver may
 * last for ever. */
struct ending {
    struct comms *comms;
    struct device_comm *comm;
    bool orderly;
    bool has_thread;
};

static void end_one(const struct ending *ending)
{
    if (ending->orderly) {
        ending->comms->ops->destroy(ending->comm);
    } else {
        ending->comms->ops->abort(ending->comm);
    }
}

static void *end_aside(void *argument)
{
    const struct ending *ending = argument;
    crash_thread("comm end", 0);
    end_one(ending);
    struct comms *comms = ending->comms;
    pthread_mutex_lock(&comms->lock);
    comms->ending--;
    pthread_cond_broadcast(&comms->changed);
    pthread_mutex_unlock(&comms->lock);
    return NULL;
}

/* Ends all at once, because the end of one rank may wait for that of another, in this task as in
 * others. */
static void start_endings(struct comms *comms, bool orderly)
{
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (uint32_t i = 0; i < comms->count; i++) {
        struct ending *ending = &comms->endings[i];
        struct slot *slot = &comms->slots[i];
        *ending = (struct ending){
            .comms = comms, .comm = slot->comm, .orderly = orderly && !slot->dropped};
        slot->comm = NULL;
        if (ending->comm == NULL) {
            continue;
        }
        pthread_mutex_lock(&comms->lock);
        pthread_t thread;
        ending->has_thread = pthread_create(&thread, &detached, end_aside, ending) == 0;
        comms->ending += ending->has_thread;
        pthread_mutex_unlock(&comms->lock);
    }
    pthread_attr_destroy(&detached);
}

static void *end_all(void *argument)
{
    struct comms *comms = argument;
    crash_thread("comms end", 0);
    bool orderly = await_end(comms);
    start_endings(comms, orderly); /* no other thread reads them any more */
    for (uint32_t i = 0; i < comms->count; i++) {
        if (comms->endings[i].comm != NULL && !comms->endings[i].has_thread) {
            end_one(&comms->endings[i]);
        }
    }
    pthread_mutex_lock(&comms->lock);
    while (comms->ending > 0) {
        pthread_cond_wait(&comms->changed, &comms->lock);
    }
    comms->ended = true;
    bool left = comms->left;
    pthread_cond_broadcast(&comms->changed);
    pthread_mutex_unlock(&comms->lock);
    if (left) {
        free_comms(comms);
    }
    return NULL;
}

cadre_status comms_open(const struct device_comm_ops *ops, uint32_t slots, int fault_fd,
    struct comms **ret_comms, struct cadre_error *error)
{
    *ret_comms = NULL;
    struct comms *comms = calloc(1, sizeof *comms);
    if (comms == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for communicators");
    }
    pthread_cond_init(&comms->changed, NULL);
    pthread_mutex_init(&comms->lock, NULL);
    comms->ops = ops;
    comms->count = slots;
    comms->slots = calloc(slots, sizeof *comms->slots);
    comms->endings = calloc(slots, sizeof *comms->endings);
    comms->fault_fd = fcntl(fault_fd, F_DUPFD_CLOEXEC, 0);
    comms->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (comms->slots == NULL || comms->endings == NULL || comms->fault_fd < 0 ||
        comms->wake_fd < 0) {
        free_comms(comms);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory or descriptors for communicators");
    }
    int failed = pthread_create(&comms->ender, NULL, end_all, comms);
    if (failed != 0) {
        free_comms(comms);
        return cadre_error_errno(error, failed, "start the thread that ends communicators");
    }
    *ret_comms = comms;
    return CADRE_OK;
}

/* Makes the lists that the plugin takes. */
static cadre_status device_comms_post(struct comms *comms, const uint8_t id[DEVICE_COMM_ID_BYTES],
    uint32_t world, const struct comms_rank ranks[], uint32_t count, struct device_comm *made[],
    struct cadre_error *error)
{
    uint32_t *numbers = calloc(2 * (size_t)count, sizeof *numbers);
    if (numbers == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for communicators");
    }
    for (uint32_t i = 0; i < count; i++) {
        numbers[i] = ranks[i].rank;
        numbers[count + i] = ranks[i].device;
    }
    cadre_status status = comms->ops->post(id, world, count, numbers, numbers + count, made, error);
    free(numbers);
    return status;
}

cadre_status comms_post(struct comms *comms, const uint8_t id[DEVICE_COMM_ID_BYTES], uint32_t world,
    const struct comms_rank ranks[], uint32_t count, struct cadre_error *error)
{
    struct device_comm **made = calloc(count, sizeof(struct device_comm *));
    if (made == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for communicators");
    }
    pthread_mutex_lock(&comms->lock);
    bool open = !comms->closing;
    comms->inside += open ? 1 : 0;
    pthread_mutex_unlock(&comms->lock);
    if (!open) {
        free(made);
        return cadre_error_set(error, CADRE_ABORTED, "the mesh has ended");
    }
    cadre_status status = device_comms_post(comms, id, world, ranks, count, made, error);
    pthread_mutex_lock(&comms->lock);
    for (uint32_t i = 0; status == CADRE_OK && i < count; i++) {
        CADRE_ASSERT(ranks[i].slot < comms->count && comms->slots[ranks[i].slot].comm == NULL);
        comms->slots[ranks[i].slot].comm = made[i];
    }
    comms->inside--;
    pthread_cond_broadcast(&comms->changed);
    pthread_mutex_unlock(&comms->lock);
    free(made);
    return status;
}

void comms_drop(struct comms *comms, uint32_t slot)
{
    CADRE_ASSERT(slot < comms->count);
    pthread_mutex_lock(&comms->lock);
    comms->slots[slot].dropped = true;
    pthread_mutex_unlock(&comms->lock);
}

struct device_comm *comms_enter(struct comms *comms, uint32_t slot)
{
    struct device_comm *comm = NULL;
    CADRE_ASSERT(slot < comms->count);
    struct slot *at = &comms->slots[slot];
    pthread_mutex_lock(&comms->lock);
    while (at->busy && !comms->closing) {
        pthread_cond_wait(&comms->changed, &comms->lock);
    }
    if (!comms->closing && at->comm != NULL && !at->dropped) {
        comm = at->comm;
        at->busy = true;
        comms->inside++;
    }
    pthread_mutex_unlock(&comms->lock);
    return comm;
}

void comms_leave(struct comms *comms, uint32_t slot)
{
    pthread_mutex_lock(&comms->lock);
    CADRE_ASSERT(comms->slots[slot].busy);
    CADRE_ASSERT(comms->inside > 0);
    comms->slots[slot].busy = false;
    comms->inside--;
    pthread_cond_broadcast(&comms->changed);
    pthread_mutex_unlock(&comms->lock);
}

cadre_status comms_test(struct comms *comms, uint32_t slot, struct cadre_error *error)
{
    struct device_comm *comm = comms_enter(comms, slot);
    if (comm == NULL) {
        return cadre_error_set(error, CADRE_ABORTED, "the communicator was ended");
    }
    cadre_status status = comms->ops->test(comm, error);
    comms_leave(comms, slot);
    return status;
}

void comms_lend(struct comms *comms)
{
    pthread_mutex_lock(&comms->lock);
    comms->lent++;
    pthread_mutex_unlock(&comms->lock);
}

void comms_return(struct comms *comms)
{
    pthread_mutex_lock(&comms->lock);
    CADRE_ASSERT(comms->lent > 0);
    comms->lent--;
    pthread_cond_broadcast(&comms->changed);
    pthread_mutex_unlock(&comms->lock);
}

void comms_end(struct comms *comms, bool orderly)
{
    if (comms == NULL) {
        return;
    }
    pthread_mutex_lock(&comms->lock);
    comms->orderly = orderly && !comms->closing;
    comms->lent = 0;
    pthread_cond_broadcast(&comms->changed);
    pthread_mutex_unlock(&comms->lock);
    uint64_t one = 1;
    (void)!write(comms->wake_fd, &one, sizeof one);
}

/* Under the lock. */
static bool wait_ended(struct comms *comms, uint64_t until_us)
{
    int outcome = 0;
    while (!comms->ended && outcome == 0) {
        outcome = thread_wait_until(&comms->changed, &comms->lock, until_us);
    }
    return comms->ended;
}

bool comms_wait(struct comms *comms, uint64_t until_us)
{
    if (comms == NULL) {
        return true;
    }
    pthread_mutex_lock(&comms->lock);
    bool ended = wait_ended(comms, until_us);
    pthread_mutex_unlock(&comms->lock);
    return ended;
}

bool comms_close(struct comms *comms, uint64_t until_us)
{
    if (comms == NULL) {
        return true;
    }
    pthread_t ender = comms->ender;
    pthread_mutex_lock(&comms->lock);
    bool ended = wait_ended(comms, until_us);
    comms->left = !ended;
    if (!ended) {
        pthread_detach(ender); /* it has not ended yet: it needs the lock to end */
    }
    pthread_mutex_unlock(&comms->lock);
    if (ended) {
        pthread_join(ender, NULL);
        free_comms(comms);
    }
    return ended;
}
