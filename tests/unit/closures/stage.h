/* SPDX-License-Identifier: Apache-2.0
 * A chief and its workers in this process, over real connections; and functions for closures that
 * the test continues at chosen points. */
#ifndef CADRE_TESTS_CLOSURES_STAGE_H
#define CADRE_TESTS_CLOSURES_STAGE_H

#include <pthread.h>

#include "cadre/cluster_coordinator.h"
#include "tests/unit/runtime/training.h"
#include "worker/library/runtime/closures/closure_worker.h"
#include "worker/library/runtime/closures/scheduler.h"

#define STAGE_WORKERS_MAX 8
#define STAGE_IDS         4096

struct stage_worker {
    struct ps_job_state ps_job;
    pthread_t thread;
    bool started;
    cadre_status status;
    struct cadre_error error;
};

struct stage {
    cadre_strategy *strategy;
    struct ps_job_state chief;
    char address[LIMIT_ADDRESS_BYTES];
    uint32_t workers;
    struct stage_worker worker[STAGE_WORKERS_MAX];
};

/* The chief alone, of so many workers; then they come. */
void stage_open(struct stage *stage, uint32_t workers);
void stage_start(struct stage *stage, uint32_t worker);
void stage_open_all(struct stage *stage, uint32_t workers);
/* Waits until so many are connected. */
void stage_await_connected(struct stage *stage, uint32_t workers);
/* In the order of a strategy's end; workers must have ended in order. */
void stage_close(struct stage *stage);
/* The first half of it. */
void stage_end_scheduler(struct stage *stage);

/* The arguments of ps_job.h's functions. */
uint64_t stage_done_count(void);   /* ps_job_push_done, of this stage */
uint64_t stage_noted_step(void);   /* ps_job_publish_step */
uint64_t stage_number_count(void); /* ps_job_next_closure */

/* --- functions of closures, registered by the first stage_open ---
 *   hold(id)      counts and waits until the test lets `id` go; fails with the code it was given
 *   tally(id)     counts, returns id and 2 * id
 *   echo(...)     returns its arguments
 *   fail          INVALID_ARGUMENT
 *   quick         nothing */

/* Those called `id` end from now on, with this code. */
void stage_let(int64_t id, cadre_status code);
/* Waits until `id` has begun so often. Where it ran last. */
uint32_t stage_await_run(int64_t id, uint32_t times);
uint32_t stage_runs(int64_t id);
uint64_t stage_number(int64_t id); /* of the closure, the same in all runs */

/* Schedules function(id). */
cadre_remote_value *stage_schedule(struct stage *stage, const char *function, int64_t id);
cadre_tensor *stage_i64(int64_t value);

#endif
