/* SPDX-License-Identifier: Apache-2.0
 * A file in memory, from which short pieces are copied without a system call, also while another
 * process cuts it short.
 *
 * Looking at a page of a mapped file that is no longer there, or cannot be read, is SIGBUS. The
 * first mapping therefore installs a handler for the whole process: for a page of a mapping of ours
 * it puts a page of zeros there and marks the mapping; every other SIGBUS goes to the handler that
 * was there before. A program that installs a handler of its own later must pass on what it does
 * not know, as long as files are mapped; nothing is mapped after it has. */
#ifndef CADRE_WORKER_INPUT_FILES_MAPPED_FILE_H
#define CADRE_WORKER_INPUT_FILES_MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

/* Files that are mapped at a time, by the whole process: a part of the mappings that Linux lets one
 * have (65530), which its heap and threads need too. */
#define MAPPED_FILES_MAX 8192

struct mapping;

/* Zeroed: nothing is mapped. */
struct mapped_file {
    const uint8_t *bytes; /* for addresses only; see mapped_file_copy */
    uint64_t size;
    struct mapping *mapping;
};

/* Maps the first `size` >= 1 bytes of an open file, which may be closed after that.
 * RESOURCE_EXHAUSTED (also: MAPPED_FILES_MAX are) or what the system says when it cannot be mapped.
 */
cadre_status mapped_file_open(
    struct mapped_file *file, int fd, uint64_t size, struct cadre_error *error);

/* Copies [offset, offset + count), which is inside. False: some of the file is no longer there, now
 * or before; what was copied is void, and the mapping is of no more use. Any thread. */
bool mapped_file_copy(const struct mapped_file *file, uint64_t offset, void *to, size_t count);

/* Asks the processor for the first lines of [offset, offset + count). */
void mapped_file_prefetch(const struct mapped_file *file, uint64_t offset, size_t count);

/* Unmaps it, when no thread reads from it any more. A zeroed file is allowed. */
void mapped_file_close(struct mapped_file *file);

#endif
