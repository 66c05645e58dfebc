/* SPDX-License-Identifier: Apache-2.0
 * The threads of a pool that has its own. What they did is handed to the loop by rpc_loop_post(),
 * in the order in which it ended. */
#include <pthread.h>
#include <stdlib.h>

#include "common/base/thread.h"
#include "common/rpc/file_work.h"
#include "common/rpc/loop.h"

struct file_work_threads {
    struct rpc_loop *loop;
    void (*done)(struct file_work *work);
    pthread_mutex_t mutex; /* of what follows, but for the threads' names */
    pthread_cond_t changed;
    struct file_work *first;
    struct file_work **tail;
    bool closing;
    unsigned count;
    pthread_t threads[];
};

static void end_on_loop(void *user)
{
    struct file_work *work = user;
    work->file_pool->threads->done(work);
}

/* The next work; NULL: the thread ends. */
static struct file_work *take(struct file_work_threads *threads)
{
    pthread_mutex_lock(&threads->mutex);
    while (threads->first == NULL && !threads->closing) {
        pthread_cond_wait(&threads->changed, &threads->mutex);
    }
    struct file_work *work = threads->first;
    if (work != NULL) {
        threads->first = work->next;
        threads->tail = work->next != NULL ? threads->tail : &threads->first;
    }
    pthread_mutex_unlock(&threads->mutex);
    return work;
}

static void *run(void *argument)
{
    struct file_work_threads *threads = argument;
    for (struct file_work *work = take(threads); work != NULL; work = take(threads)) {
        work->in_thread(work->user);
        rpc_loop_post(threads->loop, end_on_loop, work);
    }
    return NULL;
}

void file_work_threads_add(struct file_work_threads *threads, struct file_work *work)
{
    work->next = NULL;
    pthread_mutex_lock(&threads->mutex);
    *threads->tail = work;
    threads->tail = &work->next;
    pthread_cond_signal(&threads->changed);
    pthread_mutex_unlock(&threads->mutex);
}

void file_work_threads_close(struct file_work_threads *threads)
{
    if (threads == NULL) {
        return;
    }
    pthread_mutex_lock(&threads->mutex);
    threads->closing = true;
    pthread_cond_broadcast(&threads->changed);
    pthread_mutex_unlock(&threads->mutex);
    for (unsigned i = 0; i < threads->count; i++) {
        pthread_join(threads->threads[i], NULL);
    }
    pthread_cond_destroy(&threads->changed);
    pthread_mutex_destroy(&threads->mutex);
    free(threads);
}

cadre_status file_work_threads_open(struct rpc_loop *loop, unsigned count,
    void (*done)(struct file_work *work), struct file_work_threads **ret_threads,
    struct cadre_error *error)
{
    struct file_work_threads *threads = calloc(1, sizeof *threads + count * sizeof(pthread_t));
    if (threads == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %u threads", count);
    }
    threads->loop = loop;
    threads->done = done;
    threads->tail = &threads->first;
    pthread_mutex_init(&threads->mutex, NULL);
    pthread_cond_init(&threads->changed, NULL);
    for (int why = 0; threads->count < count; threads->count++) {
        why = thread_start(&threads->threads[threads->count], run, threads);
        if (why != 0) {
            file_work_threads_close(threads);
            return cadre_error_errno(error, why, "cannot start %u threads for files", count);
        }
    }
    *ret_threads = threads;
    return CADRE_OK;
}
