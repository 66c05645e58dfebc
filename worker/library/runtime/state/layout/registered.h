/* SPDX-License-Identifier: Apache-2.0
 * State of the program's own that belongs to the job's: bytes under a name. In checkpoints and in
 * the space of state.h it is a tensor of bytes called "state/<name>".
 *
 * It is given back at the point of the program's loop where it was taken (enum loop_point): a task
 * that joins, or goes on from a checkpoint, gets it when its state comes, so that its program can
 * read it, and once more at that point, whatever its program did to it on the way there. So what is
 * changed before that point is not done twice, and what is changed after it is not left out. A
 * cadre_next that finds an end which was known when the state was taken is on the way; one that
 * finds an end which was not is after the point: the step that was begun there held no rows, and by
 * files such steps need not come again. */
#ifndef CADRE_RUNTIME_LAYOUT_REGISTERED_H
#define CADRE_RUNTIME_LAYOUT_REGISTERED_H

#include <stdbool.h>
#include <stddef.h>

#include "cadre/strategy.h"
#include "common/model/limits.h"
#include "worker/library/runtime/strategy/strategy.h"

#define REGISTERED_PREFIX "state/"

struct registered_state {
    char name[LIMIT_NAME_BYTES];
    void *pointer; /* the program's */
    size_t size;
    void *kept;  /* while a state is received: the former bytes; else NULL */
    void *given; /* of a task that has no state yet: room for the bytes to give; else NULL */
    bool waits;  /* for its point: `given` is the state, not what `pointer` points to */
};

/* The bytes that are part of the state. */
const void *registered_data(const struct registered_state *state);

/* The state was received, taken at `captured_at`, and is in the program's memory. */
void registered_received(cadre_strategy *strategy);

/* The program's loop is at this point: gives what waits for it. Costs next to nothing else. */
void registered_deliver(cadre_strategy *strategy, enum loop_point loop_point);

/* Whether one of them is in checkpoints under `name`. */
bool registered_has_name(const cadre_strategy *strategy, const char *name);

/* Frees all of them, at the strategy's end. */
void registered_free(cadre_strategy *strategy);

#endif
