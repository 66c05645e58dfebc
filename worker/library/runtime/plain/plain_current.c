/* SPDX-License-Identifier: Apache-2.0
 * Which plain program the process is, and that its calls come one at a time. */
#include "common/pure/assert.h"
#include "worker/library/runtime/plain/plain.h"

/* The process is one task of one job. After cadre_plain_finish only the ranks are left. */
static _Atomic(struct plain *) the_plain;
static atomic_bool ranks_known;
static struct plain_ranks standing; /* valid once `ranks_known` */

bool plain_get_ranks(struct plain_ranks *ret_standing)
{
    bool ranks = atomic_load_explicit(&ranks_known, memory_order_acquire);
    if (ranks) {
        *ret_standing = standing;
    }
    return ranks;
}

uint32_t cadre_plain_local_rank(void)
{
    struct plain_ranks at;
    return plain_get_ranks(&at) ? at.local_rank : 0;
}

uint32_t cadre_plain_local_size(void)
{
    struct plain_ranks at;
    return plain_get_ranks(&at) ? at.local_tasks : 1;
}

void plain_current_begin(struct plain *plain, const struct plain_ranks *at)
{
    CADRE_ASSERT(!atomic_load(&ranks_known)); /* once in a process */
    CADRE_ASSERT(at->rank < at->tasks);
    CADRE_ASSERT(at->local_rank < at->local_tasks);
    CADRE_ASSERT(at->local_tasks <= at->tasks);
    standing = *at;
    atomic_store_explicit(&ranks_known, true, memory_order_release);
    atomic_store(&the_plain, plain);
}

void plain_current_end(struct plain *plain)
{
    CADRE_ASSERT(atomic_load(&the_plain) == plain);
    CADRE_ASSERT(atomic_load(&plain->busy) != NULL); /* cadre_plain_finish has taken it */
    atomic_store(&the_plain, NULL);
}

const struct plain *plain_current(void)
{
    return atomic_load(&the_plain);
}

bool plain_is_abort_watch(void)
{
    const struct plain *plain = atomic_load(&the_plain);
    return plain != NULL && plain->watch.runs &&
           pthread_equal(plain->watch.thread, pthread_self()) != 0;
}

/* --- calls --- */

cadre_status plain_enter_last(
    const char *function, struct plain **ret_plain, struct cadre_error *error)
{
    struct plain *plain = atomic_load(&the_plain);
    const char *other = NULL;
    if (plain == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called %s; call it between cadre_plain_init and cadre_plain_finish", function,
            atomic_load(&ranks_known) ? "after the end of the job" : "before the job was joined");
    }
    if (!atomic_compare_exchange_strong(&plain->busy, &other, function)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called while another thread is in %s; call them from one thread at a time",
            function, other);
    }
    *ret_plain = plain;
    return CADRE_OK;
}

cadre_status plain_enter(const char *function, struct plain **ret_plain, struct cadre_error *error)
{
    CADRE_TRY(plain_enter_last(function, ret_plain, error));
    if ((*ret_plain)->failed.code != CADRE_OK) {
        *error = (*ret_plain)->failed;
        plain_leave(*ret_plain);
    }
    return error->code;
}

void plain_leave(struct plain *plain)
{
    CADRE_ASSERT(atomic_load(&plain->busy) != NULL);
    atomic_store(&plain->busy, NULL);
}

cadre_status plain_end_collective(
    struct plain *plain, cadre_status status, struct cadre_error *error)
{
    if (status == CADRE_OK || status == CADRE_INVALID_ARGUMENT) {
        return status;
    }
    task_peer_error(plain->task, plain->roster.generation, error->text);
    plain->failed = *error;
    return status;
}
