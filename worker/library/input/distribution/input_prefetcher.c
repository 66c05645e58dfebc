/* SPDX-License-Identifier: Apache-2.0
 * Reading ahead on a thread; see input_prefetcher.h. One lock guards everything; reads and stages
 * happen outside of it. Each start and cancel begins a new round, and what a read of an older round
 * brings is dropped. */
#include "worker/library/input/distribution/input_prefetcher.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/base/thread.h"
#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/input/read_ahead/prefetch.h"

_Static_assert(INPUT_PREFETCH_DEPTH_MAX == PREFETCH_DEPTH_MAX, "a depth asked for can be had");

struct input_prefetcher {
    enum tensor_memory_kind memory; /* of the batches */
    struct distributed_input *input;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* for the thread and the takers alike */
    uint64_t round;
    bool reading; /* this round has not stopped */
    bool quit;
    struct cadre_error stopped; /* why the round stopped; given after what is held */
    uint64_t epoch;
    uint64_t step;                  /* the next to read */
    struct distributed_batch *held; /* ring of `places` */
    uint32_t positions;             /* the depth, at least 1 */
    uint32_t depth;
    uint32_t waiting; /* for a step that is not held */
    uint32_t first;
    uint32_t count;
    input_stage stage; /* NULL: they stay where they are */
    void *stage_user;
    uint32_t ahead;
    uint32_t staged;  /* of those held, the first so many were tried */
    bool staging;     /* the thread has the one of this slot, whose place is empty */
    uint32_t at_work; /* the slot */
};

/* With the lock held: ends the round for a reason, or begins one (code CADRE_OK). */
static void new_round(struct input_prefetcher *prefetcher, const struct cadre_error *stopped)
{
    for (; prefetcher->count > 0; prefetcher->count--) {
        distributed_batch_clear(&prefetcher->held[prefetcher->first]);
        prefetcher->first = (prefetcher->first + 1) % prefetcher->positions;
    }
    prefetcher->staged = 0;
    distributed_input_cancel(prefetcher->input, true); /* ends a long skip that is not needed */
    prefetcher->round++;
    prefetcher->stopped = *stopped;
    prefetcher->reading = stopped->code == CADRE_OK;
    pthread_cond_broadcast(&prefetcher->changed);
}

/* With the lock held: reads one step outside of it. */
static void read_one(struct input_prefetcher *prefetcher)
{
    uint64_t round = prefetcher->round;
    uint64_t epoch = prefetcher->epoch;
    uint64_t step = prefetcher->step;
    struct distributed_batch batch = {0};
    struct cadre_error error = {0};

    distributed_input_cancel(prefetcher->input, false);
    pthread_mutex_unlock(&prefetcher->lock);
    cadre_status status = distributed_input_read(prefetcher->input, epoch, step, &batch, &error);
    pthread_mutex_lock(&prefetcher->lock);

    if (prefetcher->round != round) {
        distributed_batch_clear(&batch);
        return;
    }
    if (status == CADRE_OK) {
        uint32_t slot = (prefetcher->first + prefetcher->count) % prefetcher->positions;
        prefetcher->held[slot] = batch;
        prefetcher->count++;
        prefetcher->step++;
    } else {
        CADRE_ASSERT(error.code == status);
        prefetcher->stopped = error;
        prefetcher->reading = false;
    }
    pthread_cond_broadcast(&prefetcher->changed);
}

static bool input_prefetcher_stages(const struct input_prefetcher *prefetcher)
{
    return prefetcher->stage != NULL && prefetcher->staged < prefetcher->count &&
           prefetcher->staged < prefetcher->ahead;
}

/* With the lock held, outside of which it happens, since to copy what lies in any memory takes its
 * time. It is begun, not waited for. One that fails is tried again when it is taken. */
static void stage_one(struct input_prefetcher *prefetcher)
{
    struct cadre_error ignored;
    uint64_t round = prefetcher->round;
    uint32_t slot = (prefetcher->first + prefetcher->staged++) % prefetcher->positions;
    struct distributed_batch batch = prefetcher->held[slot];
    prefetcher->held[slot] = (struct distributed_batch){0};
    prefetcher->at_work = slot;
    prefetcher->staging = true;
    pthread_mutex_unlock(&prefetcher->lock);
    prefetcher->stage(prefetcher->stage_user, &batch, &ignored);
    pthread_mutex_lock(&prefetcher->lock);
    prefetcher->staging = false;
    if (prefetcher->round == round) {
        prefetcher->held[slot] = batch;
    } else {
        distributed_batch_clear(&batch);
    }
    pthread_cond_broadcast(&prefetcher->changed);
}

/* With the lock held: a take would find the first step, or why there is none. */
static bool is_ready(const struct input_prefetcher *prefetcher)
{
    return prefetcher->count > 0 ? !prefetcher->staging || prefetcher->at_work != prefetcher->first
                                 : !prefetcher->reading;
}

/* With the lock held: another step is to be read, ahead or because a caller waits for it. */
static bool is_to_read(const struct input_prefetcher *prefetcher)
{
    bool wanted = prefetcher->count == 0 && prefetcher->waiting > 0;
    return prefetcher->reading && (prefetcher->count < prefetcher->depth || wanted);
}

static void *read_ahead(void *argument)
{
    struct input_prefetcher *prefetcher = argument;
    crash_thread("prefetch", 0);
    tensor_memory_prefer(prefetcher->memory);
    pthread_mutex_lock(&prefetcher->lock);
    while (!prefetcher->quit) {
        if (input_prefetcher_stages(prefetcher)) {
            stage_one(prefetcher);
        } else if (is_to_read(prefetcher)) {
            read_one(prefetcher);
        } else {
            pthread_cond_wait(&prefetcher->changed, &prefetcher->lock);
        }
    }
    pthread_mutex_unlock(&prefetcher->lock);
    return NULL;
}

cadre_status input_prefetcher_create(struct distributed_input *input, uint32_t depth,
    enum tensor_memory_kind memory, struct input_prefetcher **ret_prefetcher,
    struct cadre_error *error)
{
    *ret_prefetcher = NULL;
    if (depth > INPUT_PREFETCH_DEPTH_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a prefetch depth of %" PRIu32 " steps; at most %d are possible", depth,
            INPUT_PREFETCH_DEPTH_MAX);
    }
    uint32_t positions = depth > 0 ? depth : 1;
    struct input_prefetcher *prefetcher = calloc(1, sizeof *prefetcher);
    struct distributed_batch *held = calloc(positions, sizeof held[0]);
    if (prefetcher == NULL || held == NULL) {
        free(prefetcher);
        free(held);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a prefetcher");
    }
    prefetcher->input = input;
    prefetcher->memory = memory;
    prefetcher->held = held;
    prefetcher->positions = positions;
    prefetcher->depth = depth;
    cadre_error_set(&prefetcher->stopped, CADRE_FAILED_PRECONDITION,
        "the prefetcher was not started; say from which step to read");
    pthread_mutex_init(&prefetcher->lock, NULL);
    pthread_cond_init(&prefetcher->changed, NULL);
    int failure = pthread_create(&prefetcher->thread, NULL, read_ahead, prefetcher);
    if (failure != 0) {
        pthread_cond_destroy(&prefetcher->changed);
        pthread_mutex_destroy(&prefetcher->lock);
        free(held);
        free(prefetcher);
        return cadre_error_errno(error, failure, "cannot start the thread that reads ahead");
    }
    *ret_prefetcher = prefetcher;
    return CADRE_OK;
}

void input_prefetcher_stage(
    struct input_prefetcher *prefetcher, uint32_t ahead, input_stage stage, void *user)
{
    pthread_mutex_lock(&prefetcher->lock);
    prefetcher->stage = stage;
    prefetcher->stage_user = user;
    prefetcher->ahead = ahead;
    pthread_mutex_unlock(&prefetcher->lock);
}

void input_prefetcher_start(struct input_prefetcher *prefetcher, uint64_t epoch, uint64_t step)
{
    const struct cadre_error none = {0};
    pthread_mutex_lock(&prefetcher->lock);
    prefetcher->epoch = epoch;
    prefetcher->step = step;
    new_round(prefetcher, &none);
    pthread_mutex_unlock(&prefetcher->lock);
}

/* With the lock held: signals the thread that a caller waits for a step. */
static void begin_waiting(struct input_prefetcher *prefetcher)
{
    prefetcher->waiting++;
    if (prefetcher->depth == 0 && !is_ready(prefetcher)) {
        pthread_cond_broadcast(&prefetcher->changed);
    }
}

/* With the lock held: the first one is where it is to be. */
static cadre_status stage_first(struct input_prefetcher *prefetcher, struct cadre_error *error)
{
    struct distributed_batch *batch = &prefetcher->held[prefetcher->first];
    return prefetcher->stage == NULL || batch->staged != NULL
               ? CADRE_OK
               : prefetcher->stage(prefetcher->stage_user, batch, error);
}

cadre_status input_prefetcher_take(struct input_prefetcher *prefetcher,
    struct distributed_batch *ret_batch, struct cadre_error *error)
{
    struct cadre_error unstaged;
    cadre_status status = CADRE_OK;
    *ret_batch = (struct distributed_batch){0};
    pthread_mutex_lock(&prefetcher->lock);
    begin_waiting(prefetcher);
    while (!is_ready(prefetcher)) {
        pthread_cond_wait(&prefetcher->changed, &prefetcher->lock);
    }
    prefetcher->waiting--;
    if (prefetcher->count > 0 && stage_first(prefetcher, &unstaged) != CADRE_OK) {
        status = unstaged.code;
        if (error != NULL) {
            *error = unstaged;
        }
    } else if (prefetcher->count > 0) {
        *ret_batch = prefetcher->held[prefetcher->first];
        prefetcher->held[prefetcher->first] = (struct distributed_batch){0};
        prefetcher->first = (prefetcher->first + 1) % prefetcher->positions;
        prefetcher->count--;
        prefetcher->staged -= prefetcher->staged > 0 ? 1 : 0;
        pthread_cond_broadcast(&prefetcher->changed);
    } else {
        status = prefetcher->stopped.code;
        if (error != NULL) {
            *error = prefetcher->stopped;
        }
    }
    pthread_mutex_unlock(&prefetcher->lock);
    return status;
}

bool input_prefetcher_await(struct input_prefetcher *prefetcher, uint64_t wait_us)
{
    uint64_t end_us = clock_monotonic_us() + wait_us;
    int late = 0;
    pthread_mutex_lock(&prefetcher->lock);
    begin_waiting(prefetcher);
    while (!is_ready(prefetcher) && late == 0) {
        late = thread_wait_until(&prefetcher->changed, &prefetcher->lock, end_us);
    }
    prefetcher->waiting--;
    bool ready = is_ready(prefetcher);
    pthread_mutex_unlock(&prefetcher->lock);
    return ready;
}

void input_prefetcher_cancel(struct input_prefetcher *prefetcher)
{
    struct cadre_error cancelled = {0};
    cadre_error_set(&cancelled, CADRE_CANCELLED, "reading ahead was cancelled");
    pthread_mutex_lock(&prefetcher->lock);
    new_round(prefetcher, &cancelled);
    pthread_mutex_unlock(&prefetcher->lock);
}

void input_prefetcher_free(struct input_prefetcher *prefetcher)
{
    if (prefetcher == NULL) {
        return;
    }
    input_prefetcher_cancel(prefetcher);
    pthread_mutex_lock(&prefetcher->lock);
    prefetcher->quit = true;
    pthread_cond_broadcast(&prefetcher->changed);
    pthread_mutex_unlock(&prefetcher->lock);
    pthread_join(prefetcher->thread, NULL);
    distributed_input_cancel(prefetcher->input, false);
    pthread_cond_destroy(&prefetcher->changed);
    pthread_mutex_destroy(&prefetcher->lock);
    free(prefetcher->held);
    free(prefetcher);
}
