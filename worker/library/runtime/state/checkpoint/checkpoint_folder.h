/* SPDX-License-Identifier: Apache-2.0
 * The folder of checkpoints, or "s3://bucket/key" of an object store:
 * its files are named by common/checkpoint/name.h. It may have other users: only checkpoints whose
 * manifest has the name of the same run are removed, and unfinished files of dead writers. */
#ifndef CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H
#define CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/checkpoint/name.h"

/* Who is in the names of what a task of this incarnation writes there (common/checkpoint/name.h);
 * 0: no one. */
uint64_t checkpoint_folder_writer(const char *folder, uint64_t incarnation);

/* Makes and removes a file; an error when that fails. */
cadre_status checkpoint_folder_check(const char *folder, struct cadre_error *error);

/* Removes temporary files whose writer is dead, as far as possible. */
void checkpoint_folder_remove_stale(const char *folder);

/* Of the checkpoints of `run` up to position `published` keeps the newest `kept`, removes the
 * others: the tensors first, so that no tensors stay whose run is unknown. Of one position also
 * those go that have no manifest, as their writer died, once another writer has written it. */
cadre_status checkpoint_folder_prune(const char *folder, const char *run, uint64_t published,
    uint32_t kept, struct cadre_error *error);

/* The positions of those of `run` up to `published`, newest first; *ret_positions is the caller's
 * to free. */
cadre_status checkpoint_folder_list(const char *folder, const char *run, uint64_t published,
    uint64_t **ret_positions, size_t *ret_count, struct cadre_error *error);

/* Writes a small file that all with the same folder can read: the name of the run, in a file named
 * after it. */
cadre_status checkpoint_token_write(const char *folder, const char *run, struct cadre_error *error);
/* OK: the token of that run is in the folder. NOT_FOUND: it is not, or is another one. */
cadre_status checkpoint_token_find(const char *folder, const char *run, struct cadre_error *error);
/* Removes it, as far as possible. */
void checkpoint_token_remove(const char *folder, const char *run);

#endif
