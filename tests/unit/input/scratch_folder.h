/* SPDX-License-Identifier: Apache-2.0
 * A folder for a test's files, under TMPDIR or /tmp, removed at the end. */
#ifndef CADRE_TESTS_INPUT_SCRATCH_FOLDER_H
#define CADRE_TESTS_INPUT_SCRATCH_FOLDER_H

#include <stddef.h>

/* cmocka group fixtures: make and remove the folder. */
int scratch_setup(void **state);
int scratch_teardown(void **state);

/* The path of `name` in the folder; one of eight buffers that are used in turn. */
const char *scratch_path(const char *name);

/* Writes a file and returns its path. */
const char *scratch_write(const char *name, const void *bytes, size_t size);

#endif
