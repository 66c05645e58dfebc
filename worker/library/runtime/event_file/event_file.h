/* SPDX-License-Identifier: Apache-2.0
 * One event file. What is appended is kept in memory and written by a thread of its own, which also
 * makes the folder and the file: no call but event_file_flush waits for a disk. A disk that is full
 * or fails is one warning; what is kept then is written when there is room again, up to a limit. */
#ifndef CADRE_RUNTIME_EVENT_FILE_EVENT_FILE_H
#define CADRE_RUNTIME_EVENT_FILE_EVENT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/runtime/event_file/event_target.h"

#define EVENT_FILE_KEPT_BYTES ((size_t)8 << 20) /* appended and not written */

struct event_file;

/* Of a chief that begins it in `generation`. *ret_file is the caller's to close. */
cadre_status event_file_open(const struct event_target *target, uint64_t generation,
    struct event_file **ret_file, struct cadre_error *error);

/* Copies whole frames; written within a quarter of a second. Where the limit is reached they are
 * counted and dropped. */
void event_file_append(struct event_file *file, const void *frames, size_t size);

/* Bytes that were appended and not dropped. The appending thread. */
uint64_t event_file_size(const struct event_file *file);

/* Waits until all that was appended before is written, the disk refuses it, or a second is over.
 * Any thread. */
void event_file_flush(struct event_file *file);

/* Writes what is left, once, and frees it. Of frames that were dropped there is a warning. Accepts
 * NULL. */
void event_file_close(struct event_file *file);

#endif
