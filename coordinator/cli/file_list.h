/* SPDX-License-Identifier: Apache-2.0
 * What `--file PATH[:NAME]` stands for: a file, all files of a folder, those that a pattern
 * matches, or an object that workers fetch. */
#ifndef CADRE_CLI_FILE_LIST_H
#define CADRE_CLI_FILE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/client.h"
#include "common/base/error.h"

#define FILE_LIST_DEPTH_MAX   64    /* folders in each other */
#define FILE_LIST_FOLDERS_MAX 16384 /* in one folder or pattern, with those that links lead to */

/* A zeroed one is empty; file_list_free() releases it, and after an error, too. */
struct file_list {
    cadre_file *files; /* paths, names and versions are owned */
    size_t count;      /* at most LIMIT_FILES_PER_JOB */
    size_t room;
};

/* Appends the regular files that `path` is or stands for. In the tasks' working folder a file is
 * `name`, by default the last part of its path. Those of a folder are beneath `name`, by default
 * its last part, with the folders that they are in; "." is no folder at all. A path with "*", "?"
 * or "[" that does not exist is a pattern, as for glob(3): each match is taken as if it were given
 * by itself, and beneath `name`, if there is one.
 *
 * Files and folders whose names begin with "." count in folders, and are matched by patterns that
 * begin with ".". Symbolic links count as what they lead to. Folders without files are not in the
 * list. Files of folders are in the order of their names.
 *
 * "s3://BUCKET/KEY" and "https://HOST/PATH" are objects: one each, which is not looked at here, and
 * by default has the last part of its path as its name.
 *
 * NOT_FOUND: no such file, no match, or a folder without files. INVALID_ARGUMENT: what is neither
 * file nor folder, a link that leads to a folder around it, "**". RESOURCE_EXHAUSTED: more files
 * than a job takes, more bytes in one folder or pattern than in one file of a job, or no memory. */
cadre_status file_list_add(
    struct file_list *list, const char *path, const char *name, struct cadre_error *error);

/* NAME of "PATH:NAME", within the text; NULL: there is no colon. A colon in front of the path of a
 * URL does not count. */
const char *file_list_name_of(const char *text);

/* Empties it. */
void file_list_free(struct file_list *list);

#endif
