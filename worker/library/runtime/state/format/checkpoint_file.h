/* SPDX-License-Identifier: Apache-2.0
 * One file that exists whole or not at all, written piece by piece: under a temporary name that its
 * writer holds locked, then fsync, rename, and fsync of the folder. The temporary file of a writer
 * that died is unlocked, so the next one finds it. In a folder of an object store ("s3://...") it
 * is an upload in parts (common/storage/writer.h), of which nothing is seen before it ends. */
#ifndef CADRE_RUNTIME_FORMAT_CHECKPOINT_FILE_H
#define CADRE_RUNTIME_FORMAT_CHECKPOINT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/storage/writer.h"

/* Temporary files are called "<prefix><name>.<6 characters>". */
#define CHECKPOINT_FILE_PREFIX "."

struct checkpoint_file {
    const char *folder; /* borrowed */
    int fd;             /* -1: none */
    char *temporary;    /* path; NULL: none */
    char *path;
    const char *replaced;          /* below the folder: what the names of objects begin with whose
                                    * uploads this one replaces; borrowed; NULL: its own name */
    struct storage_writer *upload; /* of an object; NULL: none */
    uint64_t added;                /* bytes, of an object */
};

/* Makes the temporary file; `name` is its final name in the folder. Drop it in any case. */
cadre_status checkpoint_file_begin(
    struct checkpoint_file *file, const char *folder, const char *name, struct cadre_error *error);
/* Before bytes are added: `seen` is called for the parts of an object, until checkpoint_file_end()
 * returns. False: it is a file, and the caller hashes what it adds. */
bool checkpoint_file_watch(struct checkpoint_file *file, storage_part_seen *seen, void *user);
/* Appends bytes. */
cadre_status checkpoint_file_add(
    struct checkpoint_file *file, const void *bytes, size_t size, struct cadre_error *error);

/* Makes what was added durable, under the temporary name still; an object is when it ends. */
cadre_status checkpoint_file_settle(struct checkpoint_file *file, struct cadre_error *error);

/* Gives it its name; settle comes before. When only the last fsync fails it has the name, perhaps
 * not for good. */
cadre_status checkpoint_file_end(struct checkpoint_file *file, struct cadre_error *error);

/* Frees all; what was not ended is removed. */
void checkpoint_file_drop(struct checkpoint_file *file);

/* Removes "<folder>/<name>"; OK when there is none. */
cadre_status checkpoint_file_remove(
    const char *folder, const char *name, struct cadre_error *error);

#endif
