/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's core inside a program: one job, and for each of its tasks a worker with one
 * slot, so that each task is placed, lost and placed again by itself. Records are not stored: the
 * ledger of such a run ends with its processes. No threads, no sockets: the owner calls it from one
 * thread at a time, and receives the core's actions in callbacks.
 *
 * A worker index is 0 to tasks - 1. At the start the task of slot i is on worker i. */
#ifndef CADRE_RUNTIME_EMBEDDED_CORE_H
#define CADRE_RUNTIME_EMBEDDED_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/task_message.h"

struct embedded_core;

/* Called from within the functions of this header; they call none of them. */
struct embedded_core_events {
    /* A task was placed on that worker: its process may begin, or has begun. */
    void (*placed)(uint32_t worker_index, uint32_t slot, uint64_t incarnation, void *user);
    /* A message to the task of that worker. What `down` points to is valid until the next call of a
     * function of this header. */
    void (*down)(uint32_t worker_index, const struct task_down *down, void *user);
    /* The task of that worker is to end. */
    void (*stop)(uint32_t worker_index, void *user);
    /* The job fails for this reason; called before its tasks are stopped. */
    void (*fails)(cadre_status code, const char *text, void *user);
    /* All tasks have permission to exit. */
    void (*done)(void *user);
    void *user;
};

struct embedded_core_options {
    uint32_t tasks;
    struct ps_job
        ps_job; /* of a job with parameter servers: what its tasks are; no servers: none */
    /* The name of each worker in messages, 1 to LIMIT_NAME_BYTES - 1 bytes; copied by the core
     * when the worker connects. */
    const char *(*name)(uint32_t worker_index, void *user);
    void *user;
    uint64_t restored; /* the position that the job goes on from; 0: from the beginning */
    uint64_t lease_us; /* how long a task whose worker disconnected may come back */
    uint64_t wait_us;  /* then for another in its stead */
};

/* Makes the core with its job, which is not placed yet; *ret_inside is the caller's to close. */
cadre_status embedded_core_open(const struct embedded_core_options *options,
    const struct embedded_core_events *events, struct embedded_core **ret_inside,
    struct cadre_error *error);
/* Frees it. Accepts NULL. */
void embedded_core_close(struct embedded_core *inside);

/* A process has connected as this worker, which was disconnected. If the job waits for a task, that
 * task is placed on it. */
void embedded_core_connect(struct embedded_core *inside, uint32_t worker_index, uint64_t now_us);

/* Once, when the workers of the first tasks are connected: places the job on them. */
void embedded_core_start(struct embedded_core *inside, uint64_t now_us);

/* A message from the task of that worker. */
void embedded_core_receive(
    struct embedded_core *inside, uint32_t worker_index, const struct task_up *up, uint64_t now_us);

/* The process of that worker has disconnected. */
void embedded_core_disconnect(struct embedded_core *inside, uint32_t worker_index, uint64_t now_us);

/* All connected workers are alive. To be called each third of the lease. */
void embedded_core_heartbeat(struct embedded_core *inside, uint64_t now_us);

/* Lets the core act on the time. The next call is due at embedded_core_wake_us. */
void embedded_core_tick(struct embedded_core *inside, uint64_t now_us);
/* The monotonic time of the next tick. */
uint64_t embedded_core_wake_us(const struct embedded_core *inside);

#endif
