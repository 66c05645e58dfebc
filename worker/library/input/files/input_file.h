/* SPDX-License-Identifier: Apache-2.0
 * A data file that is read at any offset, by several threads at once. It is never mapped: a file
 * that is cut short while it is read must give an error, not a signal. */
#ifndef CADRE_WORKER_INPUT_FILES_INPUT_FILE_H
#define CADRE_WORKER_INPUT_FILES_INPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct block_cache;

struct input_file {
    char *path;
    int fd;                     /* -1: opened for each read */
    int64_t bytes;              /* its size when it was opened */
    struct block_cache *blocks; /* what is kept of it in memory (block_cache.h); may be NULL */
};

/* Opens a regular file and notes its size. `keep_open` holds the descriptor until the close. On
 * success the file is the caller's to close; on error it is zeroed. */
cadre_status input_file_open(
    struct input_file *file, const char *path, bool keep_open, struct cadre_error *error);

/* Reads exactly `bytes` bytes at `offset`. DATA_LOSS when the file ends before: names the file,
 * what is there and what should be. */
cadre_status input_file_read(const struct input_file *file, int64_t offset, void *to, size_t bytes,
    struct cadre_error *error);

/* Adds ", NAME (N bytes)": the name without its folder. */
struct description;
void input_file_describe(const struct input_file *file, struct description *text);

/* A zeroed file is allowed. */
void input_file_close(struct input_file *file);

#endif
