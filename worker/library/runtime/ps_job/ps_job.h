/* SPDX-License-Identifier: Apache-2.0
 * What a task of a job with parameter servers has besides a strategy: the other tasks' addresses,
 * its connections, its list of variables on servers, and on the chief the closures. One in a
 * process.
 *
 *     chief       a strategy of one replica, which owns this state; schedules closures
 *     worker, ps  no strategy: cadre_serve, until the chief is done
 *     evaluator   no strategy: its own loop (cadre_next_evaluation), which reads variables
 *     by hand     one process is all of them: servers and workers are threads of it */
#ifndef CADRE_RUNTIME_PS_JOB_PS_JOB_H
#define CADRE_RUNTIME_PS_JOB_PS_JOB_H

#include <stdatomic.h>

#include "cadre/parameter_server.h"
#include "worker/library/ps/client/client.h"
#include "worker/library/ps/directory.h"
#include "worker/library/ps/link/link.h"

struct served_variables; /* worker/library/runtime/served */
struct scheduler;        /* worker/library/runtime/closures */

struct ps_task;
struct closure_numbers;
struct local_servers;
struct session;

struct ps_job_state {
    enum role role;
    uint32_t index;
    struct directory *directory;
    struct link_terms terms;           /* set by ps_job_connect */
    struct link_listener *listener;    /* of the chief; NULL once the scheduler or server owns it */
    char address[LIMIT_ADDRESS_BYTES]; /* of the listener; "" without one */
    struct client *client;             /* of the chief, workers and the evaluator */
    cadre_parameter_server_options options;
    uint64_t wait_timeout_us; /* how long a call waits for a lost server */
    struct served_variables *served;
    struct scheduler *scheduler; /* of the chief */
    /* Set by the files of this folder. */
    struct session *session;             /* until ps_task or the chief's task owns it */
    struct ps_task *ps_task;             /* of the tasks that have no strategy */
    struct closure_numbers *numbers;     /* of the chief */
    _Atomic uint64_t step;               /* of the chief: the step that was noted last */
    _Atomic uint64_t done_watermark;     /* of the other tasks: as the chief sent it last */
    struct local_servers *local_servers; /* of a chief by hand: the threads that are the other
                                          * tasks */
};

/* That of the calling thread, when the thread acts for another task, else the process's. NULL
 * before ps_job_set_current. */
struct ps_job_state *ps_job_current(void);

/* The calling thread acts for that task from now on; NULL: for the process again. */
void ps_job_enter(struct ps_job_state *ps_job);

/* The process is that task from now on; NULL: of no ps job any more. */
void ps_job_set_current(struct ps_job_state *ps_job);

/* --- beginning and end --- */

/* Makes this process's state, of the ps job in the environment (by hand: its chief): its session,
 * an empty directory, and unless it is a worker or an evaluator a listener. */
cadre_status ps_job_begin(struct ps_job_state **ret_ps_job, struct cadre_error *error);
/* Makes the state of task `self` with an empty directory, without a session; listens on the first
 * free port of `ports` (NULL: any) at `host` unless that is NULL. */
cadre_status ps_job_new(const struct directory_self *self, const char *host,
    const struct port_range *ports, struct ps_job_state **ret_ps_job, struct cadre_error *error);
/* Waits for the coordinator's first list of tasks, then makes the terms of links and the client.
 * `unwanted`: true when the result of the calling thread is not needed any more, so that it waits
 * for no lost server. */
cadre_status ps_job_connect(
    struct ps_job_state *ps_job, bool (*unwanted)(void), struct cadre_error *error);
/* Waits until each server answers. */
cadre_status ps_job_await_servers(struct ps_job_state *ps_job, struct cadre_error *error);
/* Ends its connections, after its scheduler and its variables; the directory stays until
 * ps_job_free. NULL is allowed. */
void ps_job_end(struct ps_job_state *ps_job);
/* Frees it, after ps_job_end. NULL is allowed. */
void ps_job_free(struct ps_job_state *ps_job);

/* --- numbers of closures and pushes --- */

/* The next number for a closure or push of the chief, from 1. Any thread. */
uint64_t ps_job_next_closure(void);
/* All closures with smaller numbers are done; a worker has it from the chief's last closure. Any
 * thread. */
uint64_t ps_job_done_watermark(void);

/* On a worker: sets the number that the chief sends with each closure; a smaller one is ignored. */
void ps_job_raise_watermark(uint64_t watermark);

/* The key of the calling thread's next push: the closure that it runs and the next ordinal in it;
 * outside of closures, on the chief, a new number each time. FAILED_PRECONDITION: an evaluator
 * pushes nothing. A number that was taken outside of closures ends with ps_job_push_done. */
cadre_status ps_job_push_key(
    uint64_t *ret_closure, uint32_t *ret_ordinal, struct cadre_error *error);
/* The push or closure of that number is acknowledged and is not sent again; on the chief. */
void ps_job_push_done(uint64_t closure);
/* In a closure: some shards refused the push as too old, and the others have it. The next push has
 * the same key, so each shard takes it once, in whichever attempt; a closure that runs again makes
 * the same pushes, however often some are refused. */
void ps_job_push_retry(uint64_t closure, uint32_t ordinal);

/* Set by the thread that runs closures; 0: none. */
void ps_job_enter_closure(uint64_t closure);
/* The closure that the calling thread runs; 0: none. */
uint64_t ps_job_closure(void);

/* --- for the evaluator --- */

/* On the chief, at each join, and at its beginning if it goes on from a checkpoint: writes the
 * number of steps in the ledger to server 0, when the client is connected. */
cadre_status ps_job_publish_step(uint64_t step, struct cadre_error *error);

#endif
