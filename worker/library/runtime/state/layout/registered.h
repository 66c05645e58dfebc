/* SPDX-License-Identifier: Apache-2.0
 * State of the program's own that belongs to the job's: bytes under a name. In checkpoints and in
 * the space of state.h it is a tensor of bytes called "state/<name>".
 *
 * It is given back where the program's loop had come to when it was taken (enum loop_point): a task
 * that joins, or goes on from a checkpoint, gets it when its state comes, so that its program can
 * look at it, and once more at that place, whatever its program did to it on the way there. So what
 * is changed before that place is not done twice, and what is changed behind it is not left out.
 * A cadre_next that finds an end which was known when the state was taken is on the way; one that
 * finds an end which was not is behind the place: the step that was begun there held no rows, and
 * by files such steps need not come again. */
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
    void *kept;  /* while a state is received: what it was; else NULL */
    void *given; /* of a task that has no state yet: room for what it is given; else NULL */
    bool waits;  /* for its place: `given` is the state, not what `pointer` points to */
};

/* What the state is of it. */
const void *registered_data(const struct registered_state *state);

/* The state came from elsewhere, taken at `captured_at`, and is in the program's
 * memory. */
void registered_received(cadre_strategy *strategy);

/* The program's loop has come to this place: what waits for it is given. Next to nothing else. */
void registered_deliver(cadre_strategy *strategy, enum loop_point loop_point);

/* Whether one of them stands in checkpoints under `name`. */
bool registered_has_name(const cadre_strategy *strategy, const char *name);

/* Forgets all of them: at the strategy's end. */
void registered_free(cadre_strategy *strategy);

#endif
