/* SPDX-License-Identifier: Apache-2.0
 * Data that is read at any offset, by several threads at once: a file, or an object of a store
 * (common/storage/storage.h). Which of the two it is the path says, and is decided here alone. A
 * file is never mapped: one that is cut short while it is read must give an error, not a signal. */
#ifndef CADRE_WORKER_INPUT_FILES_INPUT_FILE_H
#define CADRE_WORKER_INPUT_FILES_INPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/input/objects/object.h"

struct block_cache;

struct input_file {
    char *path;
    int fd;                     /* -1: opened for each read, or it is an object */
    int64_t bytes;              /* its size when it was opened */
    struct block_cache *blocks; /* what is kept of it in memory (block_cache.h); may be NULL */
    struct object *object;      /* NULL: it is a file */
};

/* Opens a regular file or an object and notes its size. `keep_open` holds the descriptor until the
 * close. On success the file is the caller's to close; on error it is zeroed. */
cadre_status input_file_open(
    struct input_file *file, const char *path, bool keep_open, struct cadre_error *error);

/* The path is opened soon: an object is looked up in the background, and so much of its start is
 * fetched. Nothing for a file. */
void input_file_expect(const char *path, size_t bytes);

/* Path `number` is opened now, in a loop over all of them: those behind it, several at a time, are
 * looked up meanwhile. */
void input_files_expect(const char *const paths[], size_t count, size_t number);

/* The size of the file or object now. */
cadre_status input_file_size(const char *path, int64_t *ret_bytes, struct cadre_error *error);

/* Reads exactly `bytes` bytes at `offset`. DATA_LOSS when the file ends before: names the file,
 * what is there and what should be. */
cadre_status input_file_read(const struct input_file *file, int64_t offset, void *to, size_t bytes,
    struct cadre_error *error);

/* The same for one who reads on from there: what follows in an object is fetched ahead. `ahead` is
 * the reader's, zeroed before its first read, and ended (object_ahead_end) before the close. */
cadre_status input_file_read_on(const struct input_file *file, struct object_ahead *ahead,
    int64_t offset, void *to, size_t bytes, struct cadre_error *error);

/* These bytes are read soon: those of an object are fetched, several at the same time. Nothing for
 * a file. */
void input_file_ask(const struct input_file *file, int64_t offset, size_t bytes);

/* Adds ", NAME (N bytes)": the name without its folder. */
struct description;
void input_file_describe(const struct input_file *file, struct description *text);

/* A zeroed file is allowed. */
void input_file_close(struct input_file *file);

#endif
