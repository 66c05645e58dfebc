/* SPDX-License-Identifier: Apache-2.0
 * The checkpoints of a program before it has a strategy: the position of the one to go on from
 * (restore_position.c), and the program's own settings (checkpoint_settings.c). */
#ifndef CADRE_RUNTIME_PROGRAM_CHECKPOINTS_H
#define CADRE_RUNTIME_PROGRAM_CHECKPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/checkpoint.h"
#include "common/base/error.h"
#include "common/model/limits.h"

/* The position in the manifest at `path`. INVALID_ARGUMENT: it is not a manifest. An error names
 * another checkpoint beside it that is whole, if there is one. */
cadre_status restore_position(const char *path, uint64_t *ret_position, struct cadre_error *error);

/* Whether `path` is a folder, whose newest whole checkpoint is to be chosen. */
bool restore_is_folder(const char *path);

/* Replaces the folder in `path` (of `path_bytes`) by the manifest of its newest whole checkpoint.
 * `ret_note` names a newer one that is damaged, or is "". Errors as of
 * checkpoint_choose. */
cadre_status restore_choose(char *path, size_t path_bytes, uint64_t *ret_position,
    char ret_note[LIMIT_TEXT_BYTES], struct cadre_error *error);

struct environment;

/* `clustered`: programs that were started by hand are one job. Makes the directory. On an error
 * nothing was changed. */
cadre_status checkpoint_settings_apply(struct environment *environment, bool clustered,
    const cadre_checkpoint_options *options, struct cadre_error *error);

#endif
