/* SPDX-License-Identifier: Apache-2.0
 * The API boundary: inside of libcadre errors are values, behind its public functions they belong
 * to the calling thread. And the context of a thread that runs a function of the program. */
#ifndef CADRE_RUNTIME_API_API_H
#define CADRE_RUNTIME_API_API_H

#include <stdbool.h>

#include "cadre/replica.h"
#include "common/base/error.h"

/* Ends a public function: keeps the message of a failure for the calling thread. Returns `status`.
 */
cadre_status api_return(cadre_status status, struct cadre_error *error);

/* --- replica context --- */

/* The replica whose function the calling thread runs, or NULL. */
cadre_replica *context_replica(void);
/* The calling thread begins to run the function of a replica of that strategy. */
void context_replica_enter(cadre_replica *replica, cadre_strategy *strategy);
/* The calling thread has left the function of its replica. */
void context_replica_leave(void);

/* --- cross-replica context inside a step: the calling thread is in one replica's function, and
 * what it calls is for all replicas of this task. A frame is on the stack of the function that
 * enters; frames are left in the opposite order. --- */

enum context_kind {
    CONTEXT_MERGE, /* the function of a merge call */
    CONTEXT_UPDATE /* a variable's component is being written by a function of the program */
};

struct context_frame {
    enum context_kind kind;
    cadre_strategy *strategy;
    uint32_t local;         /* CONTEXT_UPDATE: the local replica whose component it is */
    cadre_replica *replica; /* that the thread was in; restored when the frame is left */
    struct context_frame *outer;
};

/* The calling thread begins to run the function of a merge call; `frame` stays the caller's. */
void context_merge_enter(struct context_frame *frame, cadre_strategy *strategy);
/* Ends that; `frame` must be the innermost one. */
void context_merge_leave(struct context_frame *frame);

/* Until context_update_leave plain assignments change only the component of local replica `local`
 * (UpdateContext of TensorFlow). */
void context_update_enter(struct context_frame *frame, cadre_strategy *strategy, uint32_t local);
/* Ends that; `frame` must be the innermost one. */
void context_update_leave(struct context_frame *frame);

/* Whether the calling thread's innermost context is an update; *ret_local is its local replica. */
bool context_update(uint32_t *ret_local);

/* Whether the calling thread runs the function of a merge call, or an update in one. */
bool context_merging(void);

/* Marks the calling thread as one that runs closures of a ps job's worker, or not. */
void context_set_worker(bool is_worker);
/* Whether the calling thread is marked so. */
bool context_worker(void);

/* The strategy of the replica, merge call or update; NULL in none of them. */
cadre_strategy *context_strategy(void);

/* FAILED_PRECONDITION in a replica function, which may not call `function`. */
cadre_status context_require_cross(const char *function, struct cadre_error *error);

/* --- names that the program gives: they are sent, and written to checkpoints --- */

/* 1 to 127 bytes of printable ASCII, else INVALID_ARGUMENT; `what` is named so in the message. */
cadre_status name_check(const char *what, const char *name, struct cadre_error *error);
/* The same of what a program reports, which pages show: <, > and & are refused, too. */
cadre_status reported_name_check(const char *name, struct cadre_error *error);

#endif
