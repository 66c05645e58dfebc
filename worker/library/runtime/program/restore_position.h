/* SPDX-License-Identifier: Apache-2.0
 * The position of a checkpoint, before there is a strategy that could load it. */
#ifndef CADRE_RUNTIME_RESTORE_POSITION_H
#define CADRE_RUNTIME_RESTORE_POSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
