/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"

/* Leaves what is before the last folder of the path. */
static void cut_last(char *path)
{
    char *end = path + strlen(path);
    while (end > path && end[-1] == '/') {
        end--;
    }
    while (end > path && end[-1] != '/') {
        end--;
    }
    *end = '\0';
}

/* How many of the folders in `path`, counted from its end, are not there. */
static size_t missing_folders(const char *path)
{
    char part[PATH_MAX];
    size_t count = 0;
    struct stat status;
    snprintf(part, sizeof part, "%s", path);
    while (part[0] != '\0' && stat(part, &status) != 0 && errno == ENOENT) {
        count++;
        cut_last(part);
    }
    return count;
}

cadre_status output_folder_open(
    const char *path, struct output_folder *ret_folder, struct cadre_error *error)
{
    *ret_folder = (struct output_folder){.path = path, .fd = -1};
    ret_folder->made = missing_folders(path);
    cadre_status code = folder_make(path, 0755, error);
    if (code == CADRE_OK) {
        ret_folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        code = ret_folder->fd >= 0
                   ? CADRE_OK
                   : cadre_error_errno(error, errno, "cannot open the folder %s", path);
    }
    if (code != CADRE_OK) {
        output_folder_close(ret_folder);
    }
    return code;
}

void output_folder_close(struct output_folder *folder)
{
    char part[PATH_MAX];
    if (folder->fd >= 0) {
        close(folder->fd);
    }
    snprintf(part, sizeof part, "%s", folder->made > 0 ? folder->path : "");
    for (size_t i = 0; i < folder->made; i++) {
        (void)rmdir(part); /* one with something in it stays, and so do those above it */
        cut_last(part);
    }
    *folder = (struct output_folder){.fd = -1};
}

/* Goes into the folder `name`, made when it is not there. False: errno says why it stays. */
static bool step_into(struct output_file *file, const char *name)
{
    bool made = mkdirat(file->folder_fd, name, 0755) == 0;
    if (!made && errno != EEXIST) {
        return false;
    }
    int fd = openat(file->folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int reason = errno;
    if (fd < 0) {
        if (made) {
            (void)unlinkat(file->folder_fd, name, AT_REMOVEDIR);
        }
        errno = reason;
        return false;
    }
    close(file->folder_fd);
    file->folder_fd = fd;
    file->made = made ? file->made + 1 : 0;
    return true;
}

/* Goes into the folder of `path` below the root, as far as errno does not say why not. */
static bool enter_folder(struct output_file *file, int root_fd, const char *path)
{
    file->folder_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 3);
    bool good = file->folder_fd >= 0;
    const char *name = path;
    const char *slash;
    while (good && (slash = strchr(name, '/')) != NULL) {
        char part[FILE_NAME_PART_BYTES_MAX + 1];
        snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
        good = step_into(file, part);
        if (good) {
            snprintf(file->folder, sizeof file->folder, "%.*s", (int)(slash - path), path);
            name = slash + 1;
        }
    }
    snprintf(file->name, sizeof file->name, "%s", name);
    return good;
}

/* Goes out of the folder and removes it. False: something else is in it by now. No name is looked
 * up but in the folder that holds it, so no symbolic link leads elsewhere. */
static bool step_out(struct output_file *file)
{
    char *slash = strrchr(file->folder, '/');
    int fd = openat(file->folder_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    close(file->folder_fd);
    file->folder_fd = fd;
    bool removed = unlinkat(fd, slash != NULL ? slash + 1 : file->folder, AT_REMOVEDIR) == 0;
    *(slash != NULL ? slash : file->folder) = '\0';
    return removed;
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
    if (!enter_folder(ret_file, root_fd, path)) {
        code = cadre_error_errno(error, errno, "cannot make the folder for %s", path);
        output_file_close(ret_file);
        return code;
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
    output_file->made = 0;
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
        while (output_file->made > 0 && step_out(output_file)) {
            output_file->made--;
        }
        close(output_file->folder_fd);
    }
    *output_file = (struct output_file){.folder_fd = -1, .fd = -1};
}
