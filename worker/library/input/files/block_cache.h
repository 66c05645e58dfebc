/* SPDX-License-Identifier: Apache-2.0
 * What is kept in memory of a file that is read here and there. A read from the page cache costs a
 * system call; a shuffled epoch of small records is nothing but such reads. So once a good part of
 * a file was read in small pieces, all of it is kept as it is read on, in large pieces. All files
 * together keep no more than a sixteenth of the machine's memory; a file that does not fit is read
 * as before. It is a copy, not a mapping: a file that is cut short meanwhile is an error, not a
 * signal. */
#ifndef CADRE_WORKER_INPUT_FILES_BLOCK_CACHE_H
#define CADRE_WORKER_INPUT_FILES_BLOCK_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "worker/library/input/files/input_file.h"

/* A read of this many bytes or more costs little besides the copying; it is not worth keeping. */
#define BLOCK_CACHE_READ_BYTES ((size_t)16 << 10)

struct block_cache;

/* For a file of `bytes` bytes. NULL when there is no memory. */
struct block_cache *block_cache_new(int64_t bytes);

/* NULL is allowed. No thread may be in block_cache_find, or use what it gave. */
void block_cache_free(struct block_cache *blocks);

/* Where bytes [offset, offset + bytes) of the file lie in memory, valid until block_cache_free.
 * NULL: they are not kept; read them. Says by the way that such a read is needed. Any thread.
 * `blocks` may be NULL, and belongs to `file`. */
const char *block_cache_find(
    struct block_cache *blocks, const struct input_file *file, int64_t offset, size_t bytes);

/* Bytes that all files together keep at most, from now on. For tests, as is how much
 * they keep. */
void block_cache_set_limit(uint64_t bytes);
uint64_t block_cache_bytes(void);

#endif
