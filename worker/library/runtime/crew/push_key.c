/* SPDX-License-Identifier: Apache-2.0
 * By what servers tell pushes apart: the closure of the thread that pushes, and which push of it.
 */
#include "common/pure/assert.h"
#include "worker/library/runtime/crew/closure_numbers.h"
#include "worker/library/runtime/crew/crew.h"

/* What the calling thread runs; closure 0: none. */
static _Thread_local struct {
    uint64_t closure;
    uint32_t ordinal; /* of its next push */
} running;

void crew_enter_closure(uint64_t closure)
{
    CADRE_ASSERT(closure == 0 || running.closure == 0); /* one after the other */
    running.closure = closure;
    running.ordinal = 0;
}

uint64_t crew_closure(void)
{
    return running.closure;
}

uint64_t crew_next_closure(void)
{
    struct crew_state *crew = crew_current();
    CADRE_ASSERT(crew != NULL && crew->numbers != NULL);
    return closure_numbers_next(crew->numbers);
}

uint64_t crew_done_below(void)
{
    struct crew_state *crew = crew_current();
    return crew == NULL            ? 0
           : crew->numbers != NULL ? closure_numbers_done_below(crew->numbers)
                                   : atomic_load(&crew->done_below);
}

void crew_heard_done_below(uint64_t below)
{
    struct crew_state *crew = crew_current();
    if (crew != NULL) {
        uint64_t known = atomic_load(&crew->done_below);
        while (known < below && !atomic_compare_exchange_weak(&crew->done_below, &known, below)) {
        }
    }
}

cadre_status crew_push_key(uint64_t *ret_closure, uint32_t *ret_ordinal, struct cadre_error *error)
{
    struct crew_state *crew = crew_current();
    *ret_closure = running.closure;
    *ret_ordinal = 0;
    if (running.closure != 0) {
        *ret_ordinal = running.ordinal++;
        return CADRE_OK;
    }
    if (crew != NULL && crew->numbers != NULL) {
        *ret_closure = closure_numbers_next(crew->numbers);
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        crew != NULL && crew->role == ROLE_EVALUATOR
            ? "an evaluator reads variables and changes none; let the chief or a closure do it"
            : "a variable on servers is changed by the chief or inside a closure, by the thread "
              "that runs it, and this thread runs none");
}

void crew_push_again(uint64_t closure, uint32_t ordinal)
{
    if (closure != 0 && closure == running.closure && running.ordinal == ordinal + 1) {
        running.ordinal = ordinal;
    }
}

void crew_push_done(uint64_t closure)
{
    CADRE_ASSERT(closure != 0);
    struct crew_state *crew = crew_current();
    if (closure != running.closure && crew != NULL && crew->numbers != NULL) {
        closure_numbers_done(crew->numbers, closure);
    }
}
