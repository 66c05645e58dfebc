/* SPDX-License-Identifier: Apache-2.0
 * Checkpoint files: the variables of a strategy at one position. */
#ifndef CADRE_RUNTIME_CHECKPOINT_H
#define CADRE_RUNTIME_CHECKPOINT_H

#include "worker/runtime/strategy.h"

/* Whether a file can be made in the folder, so that a program need not train before it hears that
 * it cannot. */
cadre_status checkpoint_probe(const char *folder, struct cadre_error *error);

/* Writes checkpoint-<position>.safetensors to `folder`, whole or not at all, and tells the
 * coordinator once it is durable. Mirrored variables are stored once. */
cadre_status checkpoint_write(
    cadre_strategy *strategy, const char *folder, struct cadre_error *error);

/* Sets the variables of the strategy to those of the file, on every local replica. NOT_FOUND names
 * a variable that the file lacks, INVALID_ARGUMENT one of another shape. */
cadre_status checkpoint_read(
    cadre_strategy *strategy, const char *path, uint64_t *ret_position, struct cadre_error *error);

#endif
