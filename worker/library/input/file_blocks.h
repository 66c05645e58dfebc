/* SPDX-License-Identifier: Apache-2.0
 * What is kept in memory of a file that is read here and there. A read from the page cache costs a
 * system call; a shuffled epoch of small records is nothing but such reads. So once a good part of
 * a file was read in small pieces, all of it is kept as it is read on, in large pieces. All files
 * together keep no more than a sixteenth of the machine's memory; a file that does not fit is read
 * as before. It is a copy, not a mapping: a file that is cut short meanwhile is an error, not a
 * signal. */
#ifndef CADRE_WORKER_INPUT_FILE_BLOCKS_H
#define CADRE_WORKER_INPUT_FILE_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "worker/library/input/input_file.h"

/* A read of this many bytes or more costs little besides the copying; it is not worth keeping. */
#define FILE_BLOCKS_READ_BYTES ((size_t)16 << 10)

struct file_blocks;

/* For a file of `bytes` bytes. NULL when there is no memory. */
struct file_blocks *file_blocks_new(int64_t bytes);

/* NULL is allowed. No thread may be in file_blocks_look, or use what it gave. */
void file_blocks_free(struct file_blocks *blocks);

/* Where bytes [offset, offset + bytes) of the file lie in memory, valid until file_blocks_free.
 * NULL: they are not kept; read them. Says by the way that such a read is needed. Any thread.
 * `blocks` may be NULL, and belongs to `file`. */
const char *file_blocks_look(
    struct file_blocks *blocks, const struct input_file *file, int64_t offset, size_t bytes);

/* Bytes that all files together keep at most, from now on. For tests, and for the curious: how much
 * they keep. */
void file_blocks_limit(uint64_t bytes);
uint64_t file_blocks_kept(void);

#endif
