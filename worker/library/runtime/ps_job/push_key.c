/* SPDX-License-Identifier: Apache-2.0
 * Keys of pushes: the closure of the thread that pushes, and the ordinal of the push in it. */
#include "common/pure/assert.h"
#include "worker/library/runtime/ps_job/closure_numbers.h"
#include "worker/library/runtime/ps_job/ps_job.h"

/* What the calling thread runs; closure 0: none. */
static _Thread_local struct {
    uint64_t closure;
    uint32_t ordinal; /* of its next push */
} running;

void ps_job_enter_closure(uint64_t closure)
{
    CADRE_ASSERT(closure == 0 || running.closure == 0); /* a thread runs one closure at a time */
    running.closure = closure;
    running.ordinal = 0;
}

uint64_t ps_job_closure(void)
{
    return running.closure;
}

uint64_t ps_job_next_closure(void)
{
    struct ps_job_state *ps_job = ps_job_current();
    CADRE_ASSERT(ps_job != NULL && ps_job->numbers != NULL);
    return closure_numbers_next(ps_job->numbers);
}

uint64_t ps_job_done_watermark(void)
{
    struct ps_job_state *ps_job = ps_job_current();
    return ps_job == NULL            ? 0
           : ps_job->numbers != NULL ? closure_numbers_watermark(ps_job->numbers)
                                     : atomic_load(&ps_job->done_watermark);
}

void ps_job_raise_watermark(uint64_t watermark)
{
    struct ps_job_state *ps_job = ps_job_current();
    if (ps_job != NULL) {
        uint64_t known = atomic_load(&ps_job->done_watermark);
        while (known < watermark &&
               !atomic_compare_exchange_weak(&ps_job->done_watermark, &known, watermark)) {
        }
    }
}

cadre_status ps_job_push_key(
    uint64_t *ret_closure, uint32_t *ret_ordinal, struct cadre_error *error)
{
    struct ps_job_state *ps_job = ps_job_current();
    *ret_closure = running.closure;
    *ret_ordinal = 0;
    if (running.closure != 0) {
        *ret_ordinal = running.ordinal++;
        return CADRE_OK;
    }
    if (ps_job != NULL && ps_job->numbers != NULL) {
        *ret_closure = closure_numbers_next(ps_job->numbers);
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        ps_job != NULL && ps_job->role == ROLE_EVALUATOR
            ? "an evaluator reads variables and changes none; let the chief or a closure do it"
            : "a variable on servers is changed by the chief or inside a closure, by the thread "
              "that runs it, and this thread runs none");
}

void ps_job_push_retry(uint64_t closure, uint32_t ordinal)
{
    if (closure != 0 && closure == running.closure && running.ordinal == ordinal + 1) {
        running.ordinal = ordinal;
    }
}

void ps_job_push_done(uint64_t closure)
{
    CADRE_ASSERT(closure != 0);
    struct ps_job_state *ps_job = ps_job_current();
    if (closure != running.closure && ps_job != NULL && ps_job->numbers != NULL) {
        closure_numbers_done(ps_job->numbers, closure);
    }
}
