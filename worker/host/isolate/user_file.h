/* SPDX-License-Identifier: Apache-2.0
 * Files that a job names, read as the job's user: a daemon that is root may read what that user may
 * not, and what it says of a file would tell of it. */
#ifndef CADRE_WORKER_ISOLATE_USER_FILE_H
#define CADRE_WORKER_ISOLATE_USER_FILE_H

#include <stddef.h>

#include "common/base/error.h"
#include "worker/host/isolate/isolation.h"

/* Calls `call(context)` as that user: the one of this thread, which may be any, is changed
 * meanwhile, and so is that of threads which it starts, and no other's. On an error it was not
 * called. */
cadre_status user_call(const struct isolation_user *user, void (*call)(void *context),
    void *context, struct cadre_error *error);

/* Reads all of a regular file of at most `limit_bytes`, as that user; it may wait for a disk.
 * *ret_bytes is the caller's to free(); a zero
 * byte that is not counted follows. Errors are those of file_open_regular() and file_read(). */
cadre_status user_file_read(const struct isolation_user *user, const char *path, size_t limit_bytes,
    char **ret_bytes, size_t *ret_size, struct cadre_error *error);

#endif
