/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/text.h"

#define NOWHERE "virtual" /* an address that is never connected */

static struct message *take(struct message_pool *pool)
{
    struct message *message = pool->free;
    if (message != NULL) {
        pool->free = message->next;
    } else {
        message = malloc(sizeof(*message));
        CADRE_ASSERT(message != NULL);
    }
    message->references = 1;
    message->guarded = false;
    message->term = 0;
    message->tasks = NULL;
    message->roster = NULL;
    message->streams = NULL;
    message->members = NULL;
    pool->in_use++;
    return message;
}

static const char *keep(struct message *message, int which, const char *string)
{
    if (string == NULL) {
        return NULL;
    }
    struct text text = text_begin(message->strings[which], LIMIT_TEXT_BYTES);
    text_add(&text, string);
    return message->strings[which];
}

static void keep_task_up(struct message *message, struct task_up *up)
{
    switch (up->type) {
    case TASK_UP_HELLO:
        up->hello.mesh_address = keep(message, 0, up->hello.mesh_address);
        up->hello.library_version = keep(message, 1, up->hello.library_version);
        break;
    case TASK_UP_REPORT:
        up->report.text = keep(message, 0, up->report.text);
        break;
    case TASK_UP_PART:
        up->part.path = keep(message, 0, up->part.path);
        break;
    case TASK_UP_STREAM:
        up->stream.name = keep(message, 0, up->stream.name);
        break;
    case TASK_UP_ARRIVE:
    case TASK_UP_PROGRESS:
    case TASK_UP_SHARDS:
    case TASK_UP_JOIN:
    case TASK_UP_STALL:
    case TASK_UP_PREEMPT:
    case TASK_UP_BACKED:
    case TASK_UP_VALUES:
    case TASK_UP_SPANS:
        break;
    }
}

struct message *message_of_task_up(struct message_pool *pool, const struct task_up *up)
{
    struct message *message = take(pool);
    message->task_up = *up;
    keep_task_up(message, &message->task_up);
    return message;
}

struct message *message_of_up(struct message_pool *pool, const struct agent_up *up)
{
    struct message *message = take(pool);
    message->up = *up;
    if (up->type == AGENT_UP_RELAY) {
        keep_task_up(message, &message->up.relay_up.up);
    } else if (up->type == AGENT_UP_TASK_COLLECTED) {
        message->up.collected.text = keep(message, 0, up->collected.text);
    } else if (up->type == AGENT_UP_HELLO && up->hello.task_count > 0) {
        size_t bytes = up->hello.task_count * sizeof(*message->tasks);
        message->tasks = malloc(bytes);
        CADRE_ASSERT(message->tasks != NULL);
        memcpy(message->tasks, up->hello.tasks, bytes);
        message->up.hello.tasks = message->tasks;
    }
    return message;
}

struct message *message_of_down(struct message_pool *pool, const struct agent_down *down)
{
    struct message *message = take(pool);
    message->down = *down;
    if (down->type == AGENT_DOWN_REFUSED) {
        message->down.refused.text = keep(message, 0, down->refused.text);
    }
    if (down->type != AGENT_DOWN_RELAY) {
        return message;
    }
    struct task_down *body = &message->down.relay_down.down;
    if (body->type == TASK_DOWN_PLAN) {
        size_t bytes = body->plan.roster_count * sizeof(*message->roster);
        message->roster = malloc(bytes + 1);
        CADRE_ASSERT(message->roster != NULL);
        memcpy(message->roster, body->plan.roster, bytes);
        for (size_t i = 0; i < body->plan.roster_count; i++) {
            message->roster[i].mesh_address = NOWHERE;
        }
        body->plan.roster = message->roster;
    } else if (body->type == TASK_DOWN_WARM) {
        size_t bytes = body->warm.stream_count * sizeof(*message->streams);
        message->streams = malloc(bytes + 1);
        CADRE_ASSERT(message->streams != NULL);
        memcpy(message->streams, body->warm.streams, bytes);
        body->warm.streams = message->streams;
    } else if (body->type == TASK_DOWN_MEMBERS) {
        size_t bytes = body->members.member_count * sizeof(*message->members);
        message->members = malloc(bytes + 1);
        CADRE_ASSERT(message->members != NULL);
        memcpy(message->members, body->members.members, bytes);
        for (size_t i = 0; i < body->members.member_count; i++) {
            message->members[i].address = NOWHERE;
        }
        body->members.members = message->members;
    } else if (body->type == TASK_DOWN_ABORT) {
        body->reason = keep(message, 0, body->reason);
    } else if (body->type == TASK_DOWN_REFUSED) {
        body->refused.text = keep(message, 0, body->refused.text);
    }
    return message;
}

void message_drop(struct message_pool *pool, struct message *message)
{
    if (message == NULL) {
        return;
    }
    CADRE_ASSERT(message->references > 0);
    if (--message->references > 0) {
        return;
    }
    free(message->tasks);
    free(message->roster);
    free(message->streams);
    free(message->members);
    message->tasks = NULL;
    message->roster = NULL;
    message->streams = NULL;
    message->next = pool->free;
    pool->free = message;
    CADRE_ASSERT(pool->in_use > 0);
    pool->in_use--;
}

void message_pool_free(struct message_pool *pool)
{
    while (pool->free != NULL) {
        struct message *message = pool->free;
        pool->free = message->next;
        free(message);
    }
}
