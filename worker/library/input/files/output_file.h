/* SPDX-License-Identifier: Apache-2.0
 * A file or an object that is written from its start to its end, and is seen as a whole or not at
 * all. Which of the two it is the path says. One thread at a time. */
#ifndef CADRE_WORKER_INPUT_FILES_OUTPUT_FILE_H
#define CADRE_WORKER_INPUT_FILES_OUTPUT_FILE_H

#include <stddef.h>

#include "common/base/error.h"

struct output_file;

/* A file is written under another name beside `path`; an object in requests of 8 MiB, several at
 * the same time. On success it is the caller's to finish or abort; on error *ret_file is NULL. */
cadre_status output_file_open(
    const char *path, struct output_file **ret_file, struct cadre_error *error);

cadre_status output_file_add(
    struct output_file *file, const void *bytes, size_t size, struct cadre_error *error);

/* Puts a file on the disk (fsync) and under its name; ends the upload of an object. Over what had
 * the name, which keeps it on failure. (Only where nothing failed but putting the name itself on
 * the disk, the new file has it, and might not survive a loss of power.) Frees it. */
cadre_status output_file_finish(struct output_file *file, struct cadre_error *error);

/* Nothing is left of it. Frees it. NULL is allowed. */
void output_file_abort(struct output_file *file);

#endif
