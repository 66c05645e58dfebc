/* SPDX-License-Identifier: Apache-2.0
 * What a strategy's state consists of besides its variables, and what is done with it. */
#ifndef CADRE_RUNTIME_STATE_PART_H
#define CADRE_RUNTIME_STATE_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/library/runtime/state/variable_birth.h"
#include "worker/library/runtime/strategy/participant.h"

struct asked_names;
struct checkpointer;
struct checkpoint_reader;
struct registered_state;
struct restoration;
struct streamed;

struct state_part {
    struct checkpointer *checkpointer;
    struct checkpoint_reader *restoring; /* what it goes on from, while it is read; or NULL */
    struct restoration *restoration;     /* what its program takes values from; or NULL */
    bool passed_over;                    /* likewise: they are the job's already */
    struct streamed *streamed;           /* borrowed; on servers, in its checkpoints too; or NULL */
    struct registered_state *registered; /* in order of registration */
    uint32_t registered_count;
    enum loop_place place;    /* where the program's loop stands */
    enum loop_place given_at; /* where registered state was taken that was not given there yet */
    /* While a generation forms: the positions and strings that are given, or were taken. */
    char *text; /* owned; or NULL */
    size_t text_bytes;
    bool receiving;              /* state_receive was called, and neither its commit nor its undo */
    struct variable_birth birth; /* of a variable that the step at hand creates */
    struct asked_names *asked;   /* [local_replicas] by replica functions */
};

#endif
