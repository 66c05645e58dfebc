/* SPDX-License-Identifier: Apache-2.0
 * The room that blocks on the disk take (disk_cache.h): what is there is counted when it begins,
 * and again when it may have become too much; then what was used longest ago is removed, down to
 * seven eighths of the limit, in the background. Several processes share the folder: each counts
 * what it writes itself, and looks at the folder again after an eighth of the room that was left,
 * or a thirty-second of the limit where that is more. */
#ifndef CADRE_WORKER_INPUT_OBJECTS_DISK_CACHE_SPACE_H
#define CADRE_WORKER_INPUT_OBJECTS_DISK_CACHE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

/* The path is copied. */
void disk_cache_space_begin(const char *folder, uint64_t limit);

/* Whether `bytes` more may be written now. Any thread. */
bool disk_cache_space_claim(uint64_t bytes);

/* Whether less than half of the limit is taken: then there is room for what others have, too. Any
 * thread. */
bool disk_cache_space_is_wide(void);

/* Counts what is in the folder and removes what is too much, now, in this thread. Returns the bytes
 * that are left. */
uint64_t disk_cache_space_tidy(const char *folder, uint64_t limit);

#endif
