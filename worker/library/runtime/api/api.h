/* SPDX-License-Identifier: Apache-2.0
 * The border between libcadre's inside, where errors are values, and its public functions; and the
 * context that a thread is in while it runs a function of the program. */
#ifndef CADRE_RUNTIME_API_API_H
#define CADRE_RUNTIME_API_API_H

#include <stdbool.h>

#include "cadre/replica.h"
#include "common/base/error.h"

/* Ends a public function: leaves the message of a failure with the calling thread. */
cadre_status api_return(cadre_status status, struct cadre_error *error);

/* --- replica context --- */

/* The replica whose function the calling thread runs, or NULL. */
cadre_replica *context_replica(void);
/* It begins to run the function of a replica of that strategy; and is done with it. */
void context_replica_enter(cadre_replica *replica, cadre_strategy *strategy);
void context_replica_leave(void);

/* --- cross-replica context inside a step: what the calling thread runs is a part of one replica's
 * function, and speaks for all of this task. A frame lies on the stack of whoever enters; they are
 * left in the opposite order. --- */

enum context_kind {
    CONTEXT_MERGE, /* the function of a merge call */
    CONTEXT_UPDATE /* a variable's component is being written by a function of the program */
};

struct context_frame {
    enum context_kind kind;
    cadre_strategy *strategy;
    uint32_t local;         /* CONTEXT_UPDATE: the local replica whose component it is */
    cadre_replica *replica; /* that the thread was in; it is there again afterwards */
    struct context_frame *outer;
};

void context_merge_enter(struct context_frame *frame, cadre_strategy *strategy);
void context_merge_leave(struct context_frame *frame);

/* Plain assignments in between touch only the component of local replica `local`.
 * (UpdateContext.) */
void context_update_enter(struct context_frame *frame, cadre_strategy *strategy, uint32_t local);
void context_update_leave(struct context_frame *frame);

/* Whether the calling thread's innermost context is an update: then of which local replica. */
bool context_update(uint32_t *ret_local);

/* Whether it runs the function of a merge call, or an update in it. */
bool context_merging(void);

/* Whether the calling thread runs functions of a crew's worker. */
void context_set_worker(bool is_worker);
bool context_worker(void);

/* The strategy of the replica, merge call or update; NULL in none of them. */
cadre_strategy *context_strategy(void);

/* FAILED_PRECONDITION in a replica function, which may not call `function`. */
cadre_status context_require_cross(const char *function, struct cadre_error *error);

#endif
