/* SPDX-License-Identifier: Apache-2.0
 * A copy of the database as a file of its own, page by page: what is committed, also what only the
 * write-ahead log has. */
#include "coordinator/store/sqlite_statements.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"

/* The file is ours alone and not synced until it is whole: no locks, no journal. */
static cadre_status open_target(
    struct statements *target, const char *path, struct cadre_error *error)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (sqlite3_open_v2(path, &target->database, flags, "unix-none") != SQLITE_OK) {
        return statements_fail(target, "open it", error);
    }
    return statements_execute(
        target, "open it", "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF", error);
}

static cadre_status copy_pages(
    struct statements *target, struct statements *source, struct cadre_error *error)
{
    static const char doing[] = "copy the ledger to it";
    sqlite3_backup *backup =
        sqlite3_backup_init(target->database, "main", source->database, "main");
    if (backup == NULL) {
        return statements_fail(target, doing, error);
    }
    int result = sqlite3_backup_step(backup, -1);
    (void)sqlite3_backup_finish(backup); /* it leaves the failure in the target */
    return result == SQLITE_DONE ? CADRE_OK : statements_fail(target, doing, error);
}

static cadre_status fill(struct statements *source, const char *path, struct cadre_error *error)
{
    struct statements target = {.path = strdup(path)};
    if (target.path == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to copy the store %s", source->path);
    }
    cadre_status status = open_target(&target, path, error);
    status = status == CADRE_OK ? copy_pages(&target, source, error) : status;
    statements_close(&target);
    return status;
}

cadre_status statements_copy(
    struct statements *statements, const char *path, struct cadre_error *error)
{
    char temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    if (length < 0 || (size_t)length >= sizeof temporary) {
        return cadre_error_errno(error, ENAMETOOLONG, "cannot copy the store %s", statements->path);
    }
    CADRE_CLOSE_AT_EXIT int fd = mkostemp(temporary, O_CLOEXEC); /* 0600 */
    if (fd < 0) {
        return cadre_error_errno(
            error, errno, "cannot copy the store %s to %s", statements->path, path);
    }
    cadre_status status = fill(statements, temporary, error);
    if (status != CADRE_OK) {
        unlink(temporary);
        return status;
    }
    return file_replace(fd, temporary, path, error);
}
