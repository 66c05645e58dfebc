/* SPDX-License-Identifier: Apache-2.0
 * Writes files whose names a job chose into one folder, and never outside it. */
#ifndef CADRE_CLI_OUTPUT_FILE_H
#define CADRE_CLI_OUTPUT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/base/files.h"

/* The folder that all of them go into. */
struct output_folder {
    const char *path; /* the caller's */
    int fd;
    size_t made; /* folders at the end of `path` that were not there */
};

/* Opens the folder, and makes it and those above it when they are not there. `path` must live as
 * long as the folder is open. */
cadre_status output_folder_open(
    const char *path, struct output_folder *ret_folder, struct cadre_error *error);

/* Removes the folders that were made, unless something is in them by now; accepts one that is
 * closed. */
void output_folder_close(struct output_folder *folder);

/* A file that is being written. */
struct output_file {
    int folder_fd;                        /* of the folder it goes to */
    int fd;                               /* to write to */
    unsigned made;                        /* folders at the end of `folder` that were not there */
    char folder[FILE_NAME_BYTES_MAX + 1]; /* its path below the root; "": the root itself */
    char temporary[64];
    char name[256];
};

/* Makes the folders between `root` (an open folder) and "a/b/name", following no symbolic link, and
 * a temporary file beside the target. INVALID_ARGUMENT: a name that leads out of it.
 * ALREADY_EXISTS: the target is there and `force` is false. */
cadre_status output_file_open(int root_fd, const char *path, bool force,
    struct output_file *ret_file, struct cadre_error *error);

/* Gives the file its name. */
cadre_status output_file_commit(
    struct output_file *output_file, const char *path, bool force, struct cadre_error *error);

/* Removes what was not committed, and the folders that were made for it; accepts one that is
 * closed. */
void output_file_close(struct output_file *output_file);

#endif
