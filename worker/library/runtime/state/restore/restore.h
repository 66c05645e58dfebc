/* SPDX-License-Identifier: Apache-2.0
 * Reading the checkpoint that a job goes on from, while its program makes its variables
 * (STATE_RESTORES): rank 0 reads the initial value of each. */
#ifndef CADRE_RUNTIME_RESTORE_RESTORE_H
#define CADRE_RUNTIME_RESTORE_RESTORE_H

#include "common/base/error.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_read.h"
#include "worker/library/runtime/state/layout/state.h"
#include "worker/library/runtime/variables/variable.h"

struct cadre_strategy;

/* At rank 0: the checkpoint at `path`, open until restore_close; one that is open already takes in
 * the variables that were made since. Errors as of checkpoint_reader_open; they name it. */
cadre_status restore_open(struct cadre_strategy *strategy, const char *path,
    struct checkpoint_reader **ret_reader, struct cadre_error *error);
/* What is read of it is shown to people when it takes long; nothing of a file of tensors alone. */
void restore_report(const struct cadre_strategy *strategy, struct checkpoint_reader *reader);
/* Closes it, if it is open. */
void restore_close(struct cadre_strategy *strategy);

/* The entry of the tensor in it. NOT_FOUND: there is none of that name; INVALID_ARGUMENT: it has
 * another type or shape. */
cadre_status restore_entry(struct checkpoint_reader *reader, const struct state_tensor *tensor,
    const struct safetensors_entry **ret_entry, struct cadre_error *error);

/* Reads its value. */
cadre_status restore_read(struct checkpoint_reader *reader, const struct safetensors_entry *entry,
    const struct state_tensor *tensor, void *into, struct cadre_error *error);

/* Names the checkpoint in the error, and another one beside it that is whole when it is damaged. */
cadre_status restore_failed(const char *path, cadre_status status, struct cadre_error *error);

/* At rank 0 of a job that goes on from a checkpoint: opens that of CADRE_RESTORE, if it is not
 * open. FAILED_PRECONDITION: none is named, or it is not of the position that the job goes on from.
 * Errors name the checkpoint. */
cadre_status restore_require(struct cadre_strategy *strategy, struct cadre_error *error);

/* Likewise: the initial value of a tensor of the state's space, but strings. */
cadre_status restore_tensor(struct cadre_strategy *strategy, const struct state_tensor *tensor,
    void *into, struct cadre_error *error);

/* The initial value of a variable of strings; *ret_strings is the caller's to release. */
cadre_status restore_strings(struct cadre_strategy *strategy, const cadre_variable *variable,
    cadre_tensor **ret_strings, struct cadre_error *error);

/* A part of a strategy_function: every replica gets the strings of rank 0's first one, and local
 * replica 0 makes them the variable's value. `strings`: at rank 0, of restore_strings; else NULL.
 */
cadre_status restore_share_strings(struct cadre_strategy *strategy, uint32_t local,
    cadre_variable *variable, const cadre_tensor *strings, struct cadre_error *error);

#endif
