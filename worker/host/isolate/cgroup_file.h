/* SPDX-License-Identifier: Apache-2.0
 * The small files of a control group. */
#ifndef CADRE_WORKER_ISOLATE_CGROUP_FILE_H
#define CADRE_WORKER_ISOLATE_CGROUP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_FILE_BYTES 512 /* of a path: a folder's, and the longest name of a file in it */

/* Writes a file of a group. 0 or an errno. */
int cgroup_file_write(const char *folder, const char *name, const char *text);
/* The same for a number. */
int cgroup_file_write_number(const char *folder, const char *name, uint64_t number);

/* Reads the first `text_bytes` - 1 bytes, terminated; false: there is no such file. */
bool cgroup_file_read(const char *folder, const char *name, char *text, size_t text_bytes);

/* The number that the file holds, or, with a key, the one behind it ("oom_kill 3"). 0 when it is
 * not there, or no number ("max"). */
uint64_t cgroup_file_number(const char *folder, const char *name, const char *key);

/* Whether the group has this file. */
bool cgroup_file_exists(const char *folder, const char *name);

#endif
