/* SPDX-License-Identifier: Apache-2.0
 * What a job goes on from, while its program makes its variables (STATE_RESTORES): rank 0 reads
 * from the checkpoint what each of them begins with. */
#ifndef CADRE_RUNTIME_RESTORE_RESTORE_H
#define CADRE_RUNTIME_RESTORE_RESTORE_H

#include "common/base/error.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_read.h"
#include "worker/library/runtime/state/layout/state.h"
#include "worker/library/runtime/variables/variable.h"

struct cadre_strategy;

/* At rank 0: the checkpoint at `path`, open until restore_close; one that is open already knows of
 * the variables that were made since. Errors as of checkpoint_reader_open; they name it. */
cadre_status restore_open(struct cadre_strategy *strategy, const char *path,
    struct checkpoint_reader **ret_reader, struct cadre_error *error);
void restore_close(struct cadre_strategy *strategy);

/* Where the tensor lies in it. NOT_FOUND: it holds none of that name; INVALID_ARGUMENT: of another
 * type or shape. */
cadre_status restore_entry(struct checkpoint_reader *reader, const struct state_tensor *tensor,
    const struct safetensors_entry **ret_entry, struct cadre_error *error);

/* Its value, from where it lies. */
cadre_status restore_read(struct checkpoint_reader *reader, const struct safetensors_entry *entry,
    const struct state_tensor *tensor, void *into, struct cadre_error *error);

/* Names the checkpoint in the error, and another one beside it that is whole when it is damaged. */
cadre_status restore_failed(const char *path, cadre_status status, struct cadre_error *error);

/* At rank 0 of a job that goes on from a checkpoint: opens what CADRE_RESTORE names, if it is not
 * open. FAILED_PRECONDITION: nothing is named, or it is not of the position that the job goes on
 * from. Errors name the checkpoint. */
cadre_status restore_require(struct cadre_strategy *strategy, struct cadre_error *error);

/* Likewise: what a tensor of the state's space begins with, but strings. */
cadre_status restore_tensor(struct cadre_strategy *strategy, const struct state_tensor *tensor,
    void *into, struct cadre_error *error);

/* What a variable of strings begins with; *ret_strings is the caller's to release. */
cadre_status restore_strings(struct cadre_strategy *strategy, const cadre_variable *variable,
    cadre_tensor **ret_strings, struct cadre_error *error);

/* A part of a strategy_function: every replica gets what rank 0's first one has, and local replica
 * 0 makes it the variable's value. `strings`: at rank 0, of restore_strings; else NULL. */
cadre_status restore_share_strings(struct cadre_strategy *strategy, uint32_t local,
    cadre_variable *variable, const cadre_tensor *strings, struct cadre_error *error);

#endif
