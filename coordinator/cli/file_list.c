/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/file_list.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/near_miss.h"
#include "common/model/limits.h"
#include "common/pure/object_path.h"

/* The folder that is read, and those around it. */
struct folder {
    const struct folder *around;
    dev_t device;
    ino_t inode;
};

/* One --file: the list, and what its folder or pattern has so far. */
struct addition {
    struct file_list *list;
    const char *path; /* as it was given */
    uint64_t bytes;
    size_t folders;
    struct cadre_error *error;
};

static cadre_status file_list_no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the list of files");
}

/* "FOLDER/NAME", "NAME" when the folder is "", or "FOLDER" when the name is; NULL: no memory. */
static char *file_list_join(const char *folder, const char *name)
{
    char *path = NULL;
    size_t length = strlen(folder);
    bool slash = length > 0 && name[0] != '\0' && folder[length - 1] != '/';
    if (fault_point("file_list.allocate") ||
        asprintf(&path, "%s%s%s", folder, slash ? "/" : "", name) < 0) {
        return NULL;
    }
    return path;
}

static cadre_status append(struct addition *addition, const char *path, const char *name)
{
    struct file_list *list = addition->list;
    if (list->count == LIMIT_FILES_PER_JOB) {
        return cadre_error_set(addition->error, CADRE_RESOURCE_EXHAUSTED,
            "%.300s: with its files the job has more than %d; pack them into one, or put them on "
            "a shared folder",
            addition->path, LIMIT_FILES_PER_JOB);
    }
    if (list->count == list->room) {
        size_t room = list->room > 0 ? 2 * list->room : 16;
        cadre_file *files =
            fault_point("file_list.allocate") ? NULL : realloc(list->files, room * sizeof *files);
        if (files == NULL) {
            return file_list_no_memory(addition->error);
        }
        list->files = files;
        list->room = room;
    }
    char *own_path = file_list_join(path, "");
    char *own_name = file_list_join(name, "");
    if (own_path == NULL || own_name == NULL) {
        free(own_path);
        free(own_name);
        return file_list_no_memory(addition->error);
    }
    list->files[list->count++] = (cadre_file){.path = own_path, .name = own_name};
    return CADRE_OK;
}

/* ---- folders ---- */

struct entries {
    char **names;
    size_t count;
};

static void entries_free(struct entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        free(entries->names[i]);
    }
    free(entries->names);
}

static int file_list_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One entry more; a folder with more entries than a job has files need not be read to its end. */
static cadre_status entries_add(
    struct addition *addition, const char *path, const char *name, struct entries *entries)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        return CADRE_OK;
    }
    if (entries->count == LIMIT_FILES_PER_JOB) {
        return cadre_error_set(addition->error, CADRE_RESOURCE_EXHAUSTED,
            "%.300s has more than %d entries, and a job takes as many files", path,
            LIMIT_FILES_PER_JOB);
    }
    entries->names[entries->count] = file_list_join(name, "");
    if (entries->names[entries->count] == NULL) {
        return file_list_no_memory(addition->error);
    }
    entries->count++;
    return CADRE_OK;
}

/* All names of a folder, in order; entries_free() follows on success and on error. */
static cadre_status entries_read(
    struct addition *addition, const char *path, struct entries *ret_entries)
{
    cadre_status status = CADRE_OK;
    *ret_entries = (struct entries){.names = fault_point("file_list.allocate")
                                                 ? NULL
                                                 : calloc(LIMIT_FILES_PER_JOB, sizeof(char *))};
    if (ret_entries->names == NULL) {
        return file_list_no_memory(addition->error);
    }
    bool refused = fault_point("file_list.open");
    DIR *folder = refused ? NULL : opendir(path);
    if (folder == NULL) {
        return cadre_error_errno(
            addition->error, refused ? EACCES : errno, "cannot read the folder %.300s", path);
    }
    while (status == CADRE_OK) {
        errno = fault_point("file_list.read") ? EIO : 0;
        const struct dirent *entry = errno == 0 ? readdir(folder) : NULL;
        if (entry == NULL && errno != 0) {
            status =
                cadre_error_errno(addition->error, errno, "cannot read the folder %.300s", path);
        }
        if (entry == NULL) {
            break;
        }
        status = entries_add(addition, path, entry->d_name, ret_entries);
    }
    closedir(folder);
    qsort(ret_entries->names, ret_entries->count, sizeof(char *), file_list_compare);
    return status;
}

static cadre_status add_entry(
    struct addition *addition, const char *path, const char *name, const struct folder *around);

static cadre_status add_folder(struct addition *addition, const char *path, const char *name,
    const struct stat *status, const struct folder *around)
{
    const struct folder folder = {
        .around = around, .device = status->st_dev, .inode = status->st_ino};
    size_t depth = 1;
    for (const struct folder *at = around; at != NULL; at = at->around, depth++) {
        if (at->device == folder.device && at->inode == folder.inode) {
            return cadre_error_set(addition->error, CADRE_INVALID_ARGUMENT,
                "%.300s is a link to a folder that it is in: it has no end; remove the link", path);
        }
    }
    if (depth > FILE_LIST_DEPTH_MAX || ++addition->folders > FILE_LIST_FOLDERS_MAX) {
        return cadre_error_set(addition->error, CADRE_RESOURCE_EXHAUSTED,
            "%.300s: more than %d folders, or more than %d in each other", addition->path,
            FILE_LIST_FOLDERS_MAX, FILE_LIST_DEPTH_MAX);
    }
    struct entries entries;
    cadre_status code = entries_read(addition, path, &entries);
    for (size_t i = 0; i < entries.count && code == CADRE_OK; i++) {
        CADRE_FREE_AT_EXIT char *entry_path = file_list_join(path, entries.names[i]);
        CADRE_FREE_AT_EXIT char *entry_name = file_list_join(name, entries.names[i]);
        code = entry_path == NULL || entry_name == NULL
                   ? file_list_no_memory(addition->error)
                   : add_entry(addition, entry_path, entry_name, &folder);
    }
    entries_free(&entries);
    return code;
}

/* A file or folder of a folder. */
static cadre_status add_entry(
    struct addition *addition, const char *path, const char *name, const struct folder *around)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        return cadre_error_errno(addition->error, errno, "%.300s", path);
    }
    if (S_ISDIR(status.st_mode)) {
        return add_folder(addition, path, name, &status, around);
    }
    if (!S_ISREG(status.st_mode)) {
        return cadre_error_set(addition->error, CADRE_INVALID_ARGUMENT,
            "%.300s is neither a file nor a folder, but a pipe, socket or device", path);
    }
    addition->bytes += (uint64_t)status.st_size;
    if (addition->bytes > LIMIT_BLOB_BYTES) {
        return cadre_error_set(addition->error, CADRE_RESOURCE_EXHAUSTED,
            "%.300s: its files have more than %llu bytes; name those that the tasks read, or put "
            "them on a shared folder",
            addition->path, LIMIT_BLOB_BYTES);
    }
    return append(addition, path, name);
}

/* ---- one --file ---- */

/* The last part of a path without slashes at its end; NULL: no memory. */
static char *file_list_last_part(const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/') {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    return fault_point("file_list.allocate") ? NULL : strndup(path + begin, end - begin);
}

/* The folder's name in the tasks' working folder: "" for that itself. */
static cadre_status choose_folder_name(
    struct addition *addition, const char *path, const char *name, char **ret_name)
{
    *ret_name = name != NULL ? file_list_join(name, "") : file_list_last_part(path);
    if (*ret_name == NULL) {
        return file_list_no_memory(addition->error);
    }
    size_t length = strlen(*ret_name);
    while (length > 0 && (*ret_name)[length - 1] == '/') {
        (*ret_name)[--length] = '\0';
    }
    if (name == NULL && (length == 0 || strcmp(*ret_name, "..") == 0)) {
        return cadre_error_set(addition->error, CADRE_INVALID_ARGUMENT,
            "%.300s: under which name? Write %.300s:NAME, or %.300s:. for the tasks' working "
            "folder itself",
            path, path, path);
    }
    if (strcmp(*ret_name, ".") == 0) {
        (*ret_name)[0] = '\0';
    }
    return CADRE_OK;
}

/* A path that exists. */
static cadre_status add_path(
    struct addition *addition, const char *path, const char *name, const struct stat *status)
{
    CADRE_FREE_AT_EXIT char *own = NULL;
    if (!S_ISDIR(status->st_mode)) { /* what it is, and whether it can be read, the client says */
        own = name != NULL ? file_list_join(name, "") : file_list_last_part(path);
        return own != NULL ? append(addition, path, own) : file_list_no_memory(addition->error);
    }
    size_t before = addition->list->count;
    CADRE_TRY(choose_folder_name(addition, path, name, &own));
    CADRE_TRY(add_folder(addition, path, own, status, NULL));
    if (addition->list->count == before) {
        return cadre_error_set(
            addition->error, CADRE_NOT_FOUND, "the folder %.300s has no files", path);
    }
    return CADRE_OK;
}

static cadre_status add_match(struct addition *addition, const char *path, const char *name)
{
    struct stat status;
    CADRE_FREE_AT_EXIT char *last = file_list_last_part(path);
    CADRE_FREE_AT_EXIT char *beneath = NULL;
    if (name != NULL) {
        CADRE_TRY(choose_folder_name(addition, path, name, &beneath));
    }
    CADRE_FREE_AT_EXIT char *own =
        last != NULL ? file_list_join(beneath != NULL ? beneath : "", last) : NULL;
    if (own == NULL) {
        return file_list_no_memory(addition->error);
    }
    if (stat(path, &status) != 0) {
        return cadre_error_errno(addition->error, errno, "%.300s", path);
    }
    return S_ISDIR(status.st_mode) ? add_path(addition, path, own, &status)
                                   : add_entry(addition, path, own, NULL);
}

static cadre_status add_pattern(struct addition *addition, const char *pattern, const char *name)
{
    glob_t matches = {0};
    cadre_status code = CADRE_OK;
    if (strstr(pattern, "**") != NULL) {
        return cadre_error_set(addition->error, CADRE_INVALID_ARGUMENT,
            "%.300s: \"**\" has no meaning here; give the folder, which counts with all in it",
            pattern);
    }
    int found = fault_point("file_list.allocate") ? GLOB_NOSPACE : glob(pattern, 0, NULL, &matches);
    if (found == GLOB_NOSPACE) {
        code = file_list_no_memory(addition->error);
    } else if (found != 0) {
        code = cadre_error_set(addition->error, CADRE_NOT_FOUND, "no file matches %.300s", pattern);
    }
    for (size_t i = 0; i < matches.gl_pathc && code == CADRE_OK; i++) {
        code = add_match(addition, matches.gl_pathv[i], name);
    }
    globfree(&matches);
    return code;
}

/* ---- an object ---- */

/* The last part of the path of a URL, without what follows it. */
static char *object_name(const char *url)
{
    CADRE_FREE_AT_EXIT char *path =
        fault_point("file_list.allocate") ? NULL : strndup(url, object_url_shown(url));
    return path != NULL ? file_list_last_part(path) : NULL;
}

static cadre_status add_object(struct addition *addition, const char *url, const char *name)
{
    const char *fault = object_url_fault(url);
    if (fault != NULL) {
        size_t shown = object_url_shown(url);
        return cadre_error_set(addition->error, CADRE_INVALID_ARGUMENT, "%.*s %s",
            (int)(shown < 300 ? shown : 300), url, fault);
    }
    CADRE_FREE_AT_EXIT char *own = name != NULL ? file_list_join(name, "") : object_name(url);
    return own != NULL ? append(addition, url, own) : file_list_no_memory(addition->error);
}

const char *file_list_name_of(const char *text)
{
    const char *path = object_url_is(text) ? strchr(strstr(text, "://") + 3, '/') : text;
    const char *colon = path != NULL ? strrchr(path, ':') : NULL;
    return colon != NULL ? colon + 1 : NULL;
}

cadre_status file_list_add(
    struct file_list *list, const char *path, const char *name, struct cadre_error *error)
{
    struct addition addition = {.list = list, .path = path, .error = error};
    struct stat status;
    if (object_url_is(path)) {
        return add_object(&addition, path, name);
    }
    if (stat(path, &status) == 0) {
        return add_path(&addition, path, name, &status);
    }
    int number = errno;
    char near[NEAR_MISS_PATH_BYTES];
    if (number == ENOENT && strpbrk(path, "*?[") != NULL) {
        return add_pattern(&addition, path, name);
    }
    return number == ENOENT && near_miss_file(path, false, near)
               ? cadre_error_set(error, CADRE_NOT_FOUND,
                     "there is no file %.300s; did you mean %.300s?", path, near)
               : cadre_error_errno(error, number, "%.300s", path);
}

void file_list_free(struct file_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free((void *)(uintptr_t)list->files[i].path);
        free((void *)(uintptr_t)list->files[i].name);
        free((void *)(uintptr_t)list->files[i].version);
    }
    free(list->files);
    *list = (struct file_list){0};
}
