/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/closures/connection_idle.h"

#include <unistd.h>

#include "common/pure/assert.h"

void connection_idle_leave(struct connection *connection)
{
    struct scheduler *scheduler = connection->scheduler;
    if (!connection->idle) {
        return;
    }
    connection->idle = false;
    *(connection->idle_before != NULL ? &connection->idle_before->idle_next
                                      : &scheduler->idle_first) = connection->idle_next;
    *(connection->idle_next != NULL ? &connection->idle_next->idle_before : &scheduler->idle_last) =
        connection->idle_before;
}

void connection_idle_enter(struct connection *connection)
{
    CADRE_ASSERT(connection->running_count == 0);
    struct scheduler *scheduler = connection->scheduler;
    if (connection->idle) {
        return;
    }
    connection->idle = true;
    connection->idle_next = NULL;
    connection->idle_before = scheduler->idle_last;
    *(scheduler->idle_last != NULL ? &scheduler->idle_last->idle_next : &scheduler->idle_first) =
        connection;
    scheduler->idle_last = connection;
}

void connection_wake(struct connection *connection)
{
    uint64_t one = 1;
    connection_idle_leave(connection);
    ssize_t written = write(connection->wake, &one, sizeof one);
    CADRE_ASSERT(written == (ssize_t)sizeof one);
}

void connection_wake_idle(struct scheduler *scheduler)
{
    if (scheduler->idle_first != NULL && scheduler->queue.queued > 0) {
        connection_wake(scheduler->idle_first);
    }
}
