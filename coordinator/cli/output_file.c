/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"

/* Opens the folder `name` of `parent_fd`, made when it is not there; closes the parent. */
static int step_into(int parent_fd, const char *name)
{
    int fd = -1;
    if (mkdirat(parent_fd, name, 0755) == 0 || errno == EEXIST) {
        fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    int reason = errno;
    close(parent_fd);
    errno = reason;
    return fd;
}

/* The folder of `path` below the root; its last part is copied to ret_name. */
static int open_folder(int root_fd, const char *path, char ret_name[256])
{
    int fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 3);
    const char *slash;
    while (fd >= 0 && (slash = strchr(path, '/')) != NULL) {
        char part[FILE_NAME_PART_BYTES_MAX + 1];
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        fd = step_into(fd, part);
        path = slash + 1;
    }
    snprintf(ret_name, 256, "%s", path);
    return fd;
}

static cadre_status output_file_exists(const char *path, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_ALREADY_EXISTS,
        "%s is there already: --force replaces it, -o FOLDER puts the files elsewhere", path);
}

cadre_status output_file_open(int root_fd, const char *path, bool force,
    struct output_file *ret_file, struct cadre_error *error)
{
    static unsigned counter;
    struct stat status;
    *ret_file = (struct output_file){.folder_fd = -1, .fd = -1};
    cadre_status code = file_name_check(path, error);
    if (code != CADRE_OK) {
        return cadre_error_wrap(error, code, "an output's name is not one to write to");
    }
    ret_file->folder_fd = open_folder(root_fd, path, ret_file->name);
    if (ret_file->folder_fd < 0) {
        return cadre_error_errno(error, errno, "cannot make the folder for %s", path);
    }
    if (!force && fstatat(ret_file->folder_fd, ret_file->name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        code = output_file_exists(path, error);
        output_file_close(ret_file);
        return code;
    }
    snprintf(ret_file->temporary, sizeof ret_file->temporary, ".cadre-get-%ld-%u", (long)getpid(),
        ++counter);
    ret_file->fd = openat(ret_file->folder_fd, ret_file->temporary,
        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (ret_file->fd < 0) {
        code = cadre_error_errno(error, errno, "cannot write %s", path);
        ret_file->temporary[0] = '\0';
        output_file_close(ret_file);
        return code;
    }
    return CADRE_OK;
}

cadre_status output_file_commit(
    struct output_file *output_file, const char *path, bool force, struct cadre_error *error)
{
    int fd = output_file->fd;
    output_file->fd = -1;
    if (close(fd) != 0) {
        return cadre_error_errno(error, errno, "cannot write %s", path);
    }
    int rc = renameat2(output_file->folder_fd, output_file->temporary, output_file->folder_fd,
        output_file->name, force ? 0 : RENAME_NOREPLACE);
    if (rc != 0 &&
        errno == EINVAL) { /* a file system without that flag; existence was checked before */
        rc = renameat(output_file->folder_fd, output_file->temporary, output_file->folder_fd,
            output_file->name);
    }
    if (rc != 0) {
        return errno == EEXIST ? output_file_exists(path, error)
                               : cadre_error_errno(error, errno, "cannot write %s", path);
    }
    output_file->temporary[0] = '\0';
    return CADRE_OK;
}

void output_file_close(struct output_file *output_file)
{
    if (output_file->fd >= 0) {
        close(output_file->fd);
    }
    if (output_file->folder_fd >= 0) {
        if (output_file->temporary[0] != '\0') {
            unlinkat(output_file->folder_fd, output_file->temporary, 0);
        }
        close(output_file->folder_fd);
    }
    *output_file = (struct output_file){.folder_fd = -1, .fd = -1};
}
