/* SPDX-License-Identifier: Apache-2.0
 * Memory of this process that other processes of the host can map: one sparse memfd, which has no
 * name anywhere, mapped once at full size. A block in it is addressed by its offset, which is the
 * same in every process that maps the file, so a collective between processes of a host reads and
 * writes tensors in their own memory.
 *
 * Pages exist from their first touch, and a block that is freed returns its pages to the system (a
 * hole is punched). The file can neither grow nor shrink (it is sealed), so a process that maps it
 * never reads past its end. Any thread may call any of this.
 *
 * A child of fork() that continues without exec has no arena: the mapping is not inherited, because
 * a write there would be a write into the parent's tensors. Touching one of them ends the child
 * with SIGSEGV; arena_open fails there, and its tensors are in private memory. */
#ifndef CADRE_WORKER_ARENA_H
#define CADRE_WORKER_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define ARENA_ALIGN       ((size_t)64)
#define ARENA_PAGE        ((size_t)4096)
#define ARENA_PAGED_BYTES ((size_t)65536) /* blocks of so many bytes or more begin at a page */

/* Makes the arena; does nothing when there is one. UNAVAILABLE, now and for ever after: this system
 * has no memfd, or not the address space. Callers use private memory then. */
cadre_status arena_open(struct cadre_error *error);

/* A block of at least `bytes` > 0 bytes, aligned to ARENA_ALIGN, or to ARENA_PAGE from
 * ARENA_PAGED_BYTES on, and not set. NULL: there is none, or no arena. */
void *arena_get(size_t bytes);

/* Frees what arena_get returned for the same `bytes`. */
void arena_give(void *memory, size_t bytes);

/* Whether all of the bytes are in the arena, and where in its file they begin. Constant time. False
 * too when there is no arena. */
bool arena_locate(const void *memory, size_t bytes, uint64_t *ret_offset);

/* The file, for sending to other processes; it stays the arena's. -1 when there is none. A process
 * that maps it sees all blocks, so it is sent only to tasks of the same mesh. */
int arena_fd(void);
/* The size of that file; 0 when there is none. */
uint64_t arena_bytes(void);

/* Where offset 0 is in this process; NULL when there is no arena. */
void *arena_base(void);

#endif
