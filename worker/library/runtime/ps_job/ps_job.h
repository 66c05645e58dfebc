/* SPDX-License-Identifier: Apache-2.0
 * What a task of a job with parameter servers has besides a strategy: who else is there, its
 * connections, the variables on servers that it knows, and on the chief the closures. One in a
 * process.
 *
 *     chief       a strategy of one replica; the crew hangs on it; schedules closures
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
    struct link_terms terms;           /* once the key is known */
    struct link_listener *listener;    /* of the chief; taken over by who serves it: NULL then */
    char address[LIMIT_ADDRESS_BYTES]; /* of the listener; "" without one */
    struct client *client;             /* of the chief, workers and the evaluator */
    cadre_parameter_server_options options;
    uint64_t wait_timeout_us; /* how long a server that was lost is waited for */
    struct served_variables *served;
    struct scheduler *scheduler; /* of the chief */
    /* The crew's own. */
    struct session *session;             /* until somebody says hello with it */
    struct ps_task *ps_task;             /* of the tasks that have no strategy */
    struct closure_numbers *numbers;     /* of the chief */
    _Atomic uint64_t step;               /* of the chief: that was noted last */
    _Atomic uint64_t done_watermark;     /* of the others: what the chief said last */
    struct local_servers *local_servers; /* of a chief by hand: the threads that are the others */
};

/* The calling thread's, of threads that stand for another task; else the process's. NULL before it
 * is one of a crew. */
struct ps_job_state *ps_job_current(void);

/* The calling thread stands for that task from now on; NULL: for the process's again. */
void ps_job_enter(struct ps_job_state *ps_job);

/* The process is that task from now on; NULL: of no crew any more. */
void ps_job_set_current(struct ps_job_state *ps_job);

/* --- its beginning and end --- */

/* This process's, of the crew that the environment tells (by hand: its chief): its session, a
 * directory that knows nobody yet, and unless it is a worker or an evaluator a listener. */
cadre_status ps_job_begin(struct ps_job_state **ret_ps_job, struct cadre_error *error);
/* `self` with such a directory, without a session; listens at a free port of `host` unless that is
 * NULL. */
cadre_status ps_job_new(const struct directory_self *self, const char *host,
    struct ps_job_state **ret_ps_job, struct cadre_error *error);
/* Waits for the coordinator's word: who it is to the others from then on, and its client.
 * `unwanted`: whether what the calling thread does is not wanted any more, so that it waits for no
 * server that was lost. */
cadre_status ps_job_connect(
    struct ps_job_state *ps_job, bool (*unwanted)(void), struct cadre_error *error);
/* Waits for each server. */
cadre_status ps_job_await_servers(struct ps_job_state *ps_job, struct cadre_error *error);
/* Ends its connections, once its scheduler and its variables have ended; the directory is there
 * until ps_job_free. NULL is
 * allowed, for both. */
void ps_job_end(struct ps_job_state *ps_job);
void ps_job_free(struct ps_job_state *ps_job);

/* --- the numbers of closures and pushes --- */

/* Closure numbers, for pushes: the chief's, from 1. Those below ps_job_done_watermark are done for
 * good (a worker knows it from the chief's last closure). Any thread. */
uint64_t ps_job_next_closure(void);
uint64_t ps_job_done_watermark(void);

/* On a worker: as the chief says with each closure; never less than before. */
void ps_job_raise_watermark(uint64_t watermark);

/* Of the calling thread: the closure that it runs and the next ordinal in it; outside of closures,
 * on the chief, a number of its own each time. FAILED_PRECONDITION: an evaluator pushes nothing.
 * What was taken outside of closures is given back by ps_job_push_done, with ok once it is
 * acknowledged; a closure's by its end: on the chief, who calls it for closures too, in a thread
 * that runs none. */
cadre_status ps_job_push_key(
    uint64_t *ret_closure, uint32_t *ret_ordinal, struct cadre_error *error);
void ps_job_push_done(uint64_t closure);
/* In a closure: some shards refused that push as too old, and the others have it. The next one is
 * the same once more, so each shard takes it once, in whichever attempt; and a closure that is run
 * again makes the same pushes, however often some are refused. */
void ps_job_push_retry(uint64_t closure, uint32_t ordinal);

/* Set by the thread that runs closures; 0: none. */
void ps_job_enter_closure(uint64_t closure);
uint64_t ps_job_closure(void);

/* --- for the evaluator --- */

/* On the chief, at each join: so many steps of the ledger are done. Its servers are told, when it
 * is connected to them. */
cadre_status ps_job_publish_step(uint64_t step, struct cadre_error *error);

#endif
