/* SPDX-License-Identifier: Apache-2.0
 * What a strategy keeps for its state, besides its variables. */
#ifndef CADRE_RUNTIME_LAYOUT_STATE_PART_H
#define CADRE_RUNTIME_LAYOUT_STATE_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/runtime/strategy/strategy_hooks.h"
#include "worker/library/runtime/variables/variable.h"

struct requested_names;
struct checkpointer;
struct checkpoint_reader;
struct registered_state;
struct restoration;
struct streamed;

/* The initial value of a variable; restore/initial_value.h finds it. */
struct initial_value {
    const cadre_initializer *initializer;
    bool may_lack;            /* a checkpoint may not hold it: then the initializer's counts */
    struct restoration *from; /* holds it; NULL: another source does */
    bool restored;            /* it is a checkpoint's */
    cadre_tensor *strings;    /* owned; of a variable of strings that is restored, at the first task
                               */
    struct cadre_error own;   /* why it could not be made here; code OK: it could */
};

/* A variable that the current step creates; create/variable_in_step.c makes it. */
struct variable_in_step {
    cadre_variable *variable; /* what local replica 0 has made last */
    struct initial_value value;
    void *values; /* of the chief: where it evaluated; NULL: nowhere, or it is in the component */
    bool staged;  /* that is memory of its own, for a component on a device */
};

struct state_part {
    struct checkpointer *checkpointer;
    struct checkpoint_reader *restoring; /* of the checkpoint to go on from, while read; or NULL */
    struct restoration *restoration;     /* values that its program takes; or NULL */
    bool passed_over;                    /* likewise: they are the job's already */
    struct streamed *streamed;           /* borrowed; on servers, in its checkpoints too; or NULL */
    struct registered_state *registered; /* in order of registration */
    uint32_t registered_count;
    enum loop_point loop_point;  /* of the program's loop */
    enum loop_point captured_at; /* where registered state was taken that was not given there yet */
    /* While a generation forms: the positions and strings that are given, or were taken. */
    char *text; /* owned; or NULL */
    size_t text_bytes;
    bool receiving; /* state_receive was called, and neither its commit nor its undo */
    struct variable_in_step in_step;
    struct requested_names *asked; /* [local_replicas] by replica functions */
};

#endif
