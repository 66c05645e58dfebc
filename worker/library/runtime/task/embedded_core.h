/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's core inside a program: one job, and for each of its tasks a worker with one
 * slot, so that nothing has to be folded and each task is placed, lost and placed again by itself.
 * Records go nowhere: the ledger of such a run dies with its processes. No threads, no sockets: who
 * owns it calls it from one thread at a time, and is told in callbacks what the core wants.
 *
 * A *place* is a worker: 0 to tasks - 1. At the start the task of slot i is on place i. */
#ifndef CADRE_RUNTIME_EMBEDDED_CORE_H
#define CADRE_RUNTIME_EMBEDDED_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/task_message.h"

struct embedded_core;

/* Called from inside of the functions below; they call none of them. */
struct embedded_core_events {
    /* A task was given a place: its life may begin, or has begun. */
    void (*placed)(uint32_t worker_index, uint32_t slot, uint64_t incarnation, void *user);
    /* To the task of that place. What `down` points to is valid until the next call of a function
     * of this header. */
    void (*down)(uint32_t worker_index, const struct task_down *down, void *user);
    /* The task of that place is not wanted any more. */
    void (*stop)(uint32_t worker_index, void *user);
    /* The job fails, and this is why; before its tasks are stopped. */
    void (*fails)(cadre_status code, const char *text, void *user);
    /* All tasks are told that they may go. */
    void (*done)(void *user);
    void *user;
};

struct embedded_core_options {
    uint32_t tasks;
    struct ps_job
        ps_job; /* of a job with parameter servers: what its tasks are; no servers: none */
    /* Of each place: how people are told of it, 1 to LIMIT_NAME_BYTES - 1 bytes; copied by the
     * core when the place is taken. */
    const char *(*name)(uint32_t worker_index, void *user);
    void *user;
    uint64_t restored; /* the position that the job goes on from; 0: from the beginning */
    uint64_t lease_us; /* how long a task whose place was left may come back */
    uint64_t wait_us;  /* then for another in its place */
};

cadre_status embedded_core_open(const struct embedded_core_options *options,
    const struct embedded_core_events *events, struct embedded_core **ret_inside,
    struct cadre_error *error);
void embedded_core_close(struct embedded_core *inside); /* accepts NULL */

/* Somebody is on this place, which was empty, or was left. A job that waits for a task gets one
 * there. */
void embedded_core_connect(struct embedded_core *inside, uint32_t worker_index, uint64_t now_us);

/* Once, when the places that are to begin are taken: the job is placed on them. */
void embedded_core_start(struct embedded_core *inside, uint64_t now_us);

/* What the task of that place says. */
void embedded_core_receive(
    struct embedded_core *inside, uint32_t worker_index, const struct task_up *up, uint64_t now_us);

/* Nobody is on that place any more. */
void embedded_core_disconnect(struct embedded_core *inside, uint32_t worker_index, uint64_t now_us);

/* Those that are on their places are well. Needed each third of the lease. */
void embedded_core_heartbeat(struct embedded_core *inside, uint64_t now_us);

/* Time has passed. The next call is due at embedded_core_wake_us. */
void embedded_core_tick(struct embedded_core *inside, uint64_t now_us);
uint64_t embedded_core_wake_us(const struct embedded_core *inside);

#endif
