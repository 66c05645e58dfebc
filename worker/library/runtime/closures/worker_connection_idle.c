/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/closures/worker_connection_idle.h"

#include <unistd.h>

#include "common/pure/assert.h"

void worker_connection_idle_remove(struct worker_connection *worker_connection)
{
    struct scheduler *scheduler = worker_connection->scheduler;
    if (!worker_connection->idle) {
        return;
    }
    worker_connection->idle = false;
    *(worker_connection->idle_before != NULL ? &worker_connection->idle_before->idle_next
                                             : &scheduler->idle_first) =
        worker_connection->idle_next;
    *(worker_connection->idle_next != NULL ? &worker_connection->idle_next->idle_before
                                           : &scheduler->idle_last) =
        worker_connection->idle_before;
}

void worker_connection_idle_add(struct worker_connection *worker_connection)
{
    CADRE_ASSERT(worker_connection->running_count == 0);
    struct scheduler *scheduler = worker_connection->scheduler;
    if (worker_connection->idle) {
        return;
    }
    worker_connection->idle = true;
    worker_connection->idle_next = NULL;
    worker_connection->idle_before = scheduler->idle_last;
    *(scheduler->idle_last != NULL ? &scheduler->idle_last->idle_next : &scheduler->idle_first) =
        worker_connection;
    scheduler->idle_last = worker_connection;
}

void worker_connection_wake(struct worker_connection *worker_connection)
{
    uint64_t one = 1;
    worker_connection_idle_remove(worker_connection);
    ssize_t written = write(worker_connection->wake, &one, sizeof one);
    CADRE_ASSERT(written == (ssize_t)sizeof one);
}

void worker_connection_wake_idle(struct scheduler *scheduler)
{
    if (scheduler->idle_first != NULL && scheduler->queue.queued > 0) {
        worker_connection_wake(scheduler->idle_first);
    }
}
