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
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/pure/assert.h"

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

/* ---- in steps ---- */

struct store_copy {
    struct statements target;
    sqlite3_backup *backup;
    bool is_whole;
};

static const char doing_step[] = "copy a part of the ledger to it";

cadre_status statements_copy_begin(struct statements *statements, const char *path,
    struct store_copy **ret_copy, struct cadre_error *error)
{
    struct store_copy *copy = calloc(1, sizeof *copy);
    if (copy == NULL || (copy->target.path = strdup(path)) == NULL) {
        free(copy);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to copy the store %s", statements->path);
    }
    (void)unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    cadre_status status = fd >= 0 ? open_target(&copy->target, path, error)
                                  : cadre_error_errno(error, errno,
                                        "cannot copy the store %s to %s", statements->path, path);
    if (fd >= 0) {
        close(fd);
    }
    if (status == CADRE_OK) {
        copy->backup =
            sqlite3_backup_init(copy->target.database, "main", statements->database, "main");
        status =
            copy->backup != NULL ? CADRE_OK : statements_fail(&copy->target, doing_step, error);
    }
    if (status != CADRE_OK) {
        store_sqlite_copy_end(copy);
        return status;
    }
    *ret_copy = copy;
    return CADRE_OK;
}

cadre_status store_sqlite_copy_step(
    struct store_copy *copy, unsigned pages, bool *ret_whole, struct cadre_error *error)
{
    CADRE_ASSERT(copy->backup != NULL);
    int result =
        fault_point("store.run") ? SQLITE_IOERR : sqlite3_backup_step(copy->backup, (int)pages);
    *ret_whole = result == SQLITE_DONE;
    if (result == SQLITE_OK) {
        return CADRE_OK;
    }
    int finished = sqlite3_backup_finish(copy->backup); /* it leaves the failure in the target */
    copy->backup = NULL;
    copy->is_whole = result == SQLITE_DONE && finished == SQLITE_OK;
    if (copy->is_whole) {
        return CADRE_OK;
    }
    *ret_whole = false;
    return statements_fail(&copy->target, doing_step, error);
}

void store_sqlite_copy_end(struct store_copy *copy)
{
    if (copy == NULL) {
        return;
    }
    if (copy->backup != NULL) {
        (void)sqlite3_backup_finish(copy->backup);
    }
    if (!copy->is_whole) {
        (void)unlink(copy->target.path);
    }
    statements_close(&copy->target); /* which frees the path */
    free(copy);
}

/* ---- at once ---- */

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
