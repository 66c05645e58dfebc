/* SPDX-License-Identifier: Apache-2.0 */
#include "shaker.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/library/runtime/task/task_state.h"

static struct {
    struct task *task;
    pthread_t thread;
    unsigned pause_ms;
    uint32_t most;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t again;
    uint32_t shaken; /* generations */
    bool still;
} shaker = {.lock = PTHREAD_MUTEX_INITIALIZER, .again = PTHREAD_COND_INITIALIZER};

/* Not while variables are written, for then the program's thread is not in a collective. Returns
 * the number of the generation; 0: not now. */
static uint64_t break_mesh(struct task *task)
{
    uint64_t generation = 0;
    pthread_mutex_lock(&task->lock);
    if (!task->core.applying && task->core.generation.number > 0) {
        task_step(
            task, &(struct task_event){.type = TASK_EVENT_PEER_ERROR, .text = "the test shook it"});
        generation = task->core.generation.number;
    }
    pthread_mutex_unlock(&task->lock);
    return generation;
}

/* False: it is over. */
static bool note_shaken(bool is_next)
{
    pthread_mutex_lock(&shaker.lock);
    shaker.shaken += is_next ? 1 : 0;
    bool goes_on = !shaker.still && shaker.shaken < shaker.most;
    pthread_cond_broadcast(&shaker.again);
    pthread_mutex_unlock(&shaker.lock);
    return goes_on;
}

static void *shake(void *user)
{
    unsigned seed = (unsigned)getpid();
    uint64_t newest = 0;
    bool goes_on = true;
    (void)user;
    while (goes_on) {
        poll(NULL, 0, rand_r(&seed) % (int)shaker.pause_ms); /* what disturbs, not what waits */
        uint64_t generation = break_mesh(shaker.task);
        goes_on = note_shaken(generation > newest);
        newest = generation > newest ? generation : newest;
    }
    return NULL;
}

bool shaker_start(struct task *task, unsigned pause_ms, uint32_t most)
{
    shaker.task = task;
    shaker.pause_ms = pause_ms;
    shaker.most = most;
    return pthread_create(&shaker.thread, NULL, shake, NULL) == 0;
}

void shaker_await(uint32_t generations)
{
    pthread_mutex_lock(&shaker.lock);
    while (shaker.shaken < generations) {
        pthread_cond_wait(&shaker.again, &shaker.lock);
    }
    pthread_mutex_unlock(&shaker.lock);
}

void shaker_stop(void)
{
    pthread_mutex_lock(&shaker.lock);
    shaker.still = true;
    pthread_mutex_unlock(&shaker.lock);
    pthread_join(shaker.thread, NULL);
}
