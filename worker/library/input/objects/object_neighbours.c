/* SPDX-License-Identifier: Apache-2.0
 * See object_neighbours.h. */
#include "worker/library/input/objects/object_neighbours.h"

#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t neighbours_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t neighbours_left = PTHREAD_COND_INITIALIZER;
/* Under the lock. */
static struct object_neighbours current; /* read NULL: none */
static uint64_t reading;                 /* calls of it that are in progress */
static atomic_bool on;

void object_neighbours_set(const struct object_neighbours *neighbours)
{
    pthread_mutex_lock(&neighbours_lock);
    current = (struct object_neighbours){0};
    atomic_store(&on, false);
    while (reading > 0) {
        pthread_cond_wait(&neighbours_left, &neighbours_lock);
    }
    if (neighbours != NULL) {
        current = *neighbours;
        atomic_store(&on, true);
    }
    pthread_mutex_unlock(&neighbours_lock);
}

bool object_neighbours_on(void)
{
    return atomic_load_explicit(&on, memory_order_relaxed);
}

uint64_t object_neighbours_run(uint64_t first, uint64_t count)
{
    uint64_t left = OBJECT_SEGMENT_BLOCKS - first % OBJECT_SEGMENT_BLOCKS;
    return object_neighbours_on() && left < count ? left : count;
}

bool object_neighbours_read(
    const struct object *object, uint64_t offset, void *const places[], size_t bytes)
{
    if (!object_neighbours_on()) {
        return false;
    }
    pthread_mutex_lock(&neighbours_lock);
    struct object_neighbours neighbours = current;
    reading += neighbours.read != NULL;
    pthread_mutex_unlock(&neighbours_lock);
    if (neighbours.read == NULL) {
        return false;
    }
    bool there = neighbours.read(neighbours.user, object, offset, places, bytes);
    pthread_mutex_lock(&neighbours_lock);
    if (--reading == 0) {
        pthread_cond_broadcast(&neighbours_left);
    }
    pthread_mutex_unlock(&neighbours_lock);
    return there;
}
