/* SPDX-License-Identifier: Apache-2.0
 * A store of objects in memory behind common/storage/storage.h, for tests of what reads and writes
 * objects: programs that link it have this one and no other. Paths of files are refused. All
 * functions are thread-safe. */
#ifndef CADRE_TESTS_INPUT_FAKE_STORAGE_H
#define CADRE_TESTS_INPUT_FAKE_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/storage/storage.h"

/* What was asked of the store since the last clear. */
struct fake_counts {
    uint64_t opens;
    uint64_t reads;
    uint64_t bytes;   /* that were read */
    uint64_t at_once; /* reads at a time, at most */
    uint64_t lists;
    uint64_t listed; /* names that were given */
    uint64_t puts;
    uint64_t uploads; /* begun */
    uint64_t open_uploads;
};

/* No objects, no counts, no failures. */
void fake_storage_clear(void);
void fake_storage_clear_counts(void);
struct fake_counts fake_storage_counts(void);

/* Makes the object, or another state of it. */
void fake_storage_set(const char *path, const void *bytes, size_t size);
/* The bytes of an object, valid until it changes; NULL: there is none. */
const void *fake_storage_find(const char *path, size_t *ret_size);

/* The next `times` calls of any kind for paths that contain `text` fail so. */
void fake_storage_fail(const char *text, cadre_status code, unsigned times);

/* Reads wait from now on; until they may go on. */
void fake_storage_hold(void);
void fake_storage_release(void);

#endif
