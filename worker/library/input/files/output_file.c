/* SPDX-License-Identifier: Apache-2.0
 * See output_file.h. */
#include "worker/library/input/files/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/storage/writer.h"

struct output_file {
    struct storage_writer *object; /* NULL: it is a file */
    char *path;
    char *part; /* what it is called until it is finished */
    int fd;     /* -1: of an object, or closed */
};

static void output_file_free(struct output_file *file)
{
    if (file->fd >= 0) {
        close(file->fd);
    }
    free(file->path);
    free(file->part);
    free(file);
}

/* Creates PATH.part-PID-N, a name that does not exist yet. */
static cadre_status create_part(struct output_file *file, struct cadre_error *error)
{
    static atomic_uint_fast64_t made;
    do {
        free(file->part);
        file->part = NULL;
        if (asprintf(&file->part, "%s.part-%ld-%" PRIuFAST64, file->path, (long)getpid(),
                atomic_fetch_add(&made, 1)) < 0) {
            file->part = NULL;
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for a path beside %s", file->path);
        }
        file->fd = open(file->part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (file->fd < 0 && errno == EEXIST);
    if (file->fd < 0) {
        return cadre_error_errno(error, errno, "cannot create the file %s", file->path);
    }
    return CADRE_OK;
}

cadre_status output_file_open(
    const char *path, struct output_file **ret_file, struct cadre_error *error)
{
    *ret_file = NULL;
    struct output_file *file = fault_point("input.writer") ? NULL : calloc(1, sizeof *file);
    char *copy = strdup(path);
    if (file == NULL || copy == NULL) {
        free(file);
        free(copy);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory to write it", path);
    }
    *file = (struct output_file){.path = copy, .fd = -1};
    cadre_status status = storage_is_object(path)
                              ? storage_writer_open(NULL, path, &file->object, error)
                              : create_part(file, error);
    if (status != CADRE_OK) {
        output_file_free(file);
        return status;
    }
    *ret_file = file;
    return CADRE_OK;
}

cadre_status output_file_add(
    struct output_file *file, const void *bytes, size_t size, struct cadre_error *error)
{
    return file->object != NULL ? storage_writer_add(file->object, bytes, size, error)
                                : file_write_all(file->fd, file->part, bytes, size, error);
}

/* The folder's own entry: without it the name may be lost with the power. */
static cadre_status sync_folder(const struct output_file *file, struct cadre_error *error)
{
    const char *slash = strrchr(file->path, '/');
    char *folder =
        slash == NULL ? strdup(".")
                      : strndup(file->path, slash == file->path ? 1 : (size_t)(slash - file->path));
    int fd = folder == NULL ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    int errnum = folder == NULL ? ENOMEM : errno;
    if (fd >= 0) {
        close(fd);
    }
    free(folder);
    /* Folders that may be written but not read cannot be synced, nor can those of some systems. */
    return synced || errnum == EACCES || errnum == EINVAL
               ? CADRE_OK
               : cadre_error_errno(
                     error, errnum, "cannot put the name of %s on the disk", file->path);
}

static cadre_status name_file(struct output_file *file, struct cadre_error *error)
{
    if (fault_point("input.writer-sync") ? (errno = EIO, true) : fsync(file->fd) != 0) {
        return cadre_error_errno(error, errno, "cannot write %s", file->path);
    }
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0) {
        return cadre_error_errno(error, errno, "cannot write %s", file->path);
    }
    if (rename(file->part, file->path) != 0) {
        return cadre_error_errno(error, errno, "cannot name the file %s", file->path);
    }
    return sync_folder(file, error);
}

cadre_status output_file_finish(struct output_file *file, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    if (file->object != NULL) {
        status = storage_writer_finish(file->object, error);
        output_file_free(file);
        return status;
    }
    status = name_file(file, error);
    if (status != CADRE_OK) {
        output_file_abort(file);
        return status;
    }
    output_file_free(file);
    return CADRE_OK;
}

void output_file_abort(struct output_file *file)
{
    if (file == NULL) {
        return;
    }
    if (file->object != NULL) {
        storage_writer_abort(file->object);
    } else {
        unlink(file->part); /* nothing where it has its name */
    }
    output_file_free(file);
}
