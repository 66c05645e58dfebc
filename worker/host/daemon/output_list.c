/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/daemon/outputs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"

void output_list_note(struct output_list *list, cadre_status code, const char *text)
{
    if (list->code == CADRE_OK) {
        list->code = code;
        snprintf(list->text, sizeof list->text, "%s", text);
    }
}

static bool output_list_add(struct output_list *list, const char *name)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? list->capacity * 2 : 32;
        char **grown = realloc(list->names, capacity * sizeof *grown);
        if (grown == NULL) {
            return false;
        }
        list->names = grown;
        list->capacity = capacity;
    }
    list->names[list->count] = strdup(name);
    return list->names[list->count] != NULL && ++list->count > 0;
}

static void output_list_walk(struct output_list *list, int folder_fd, const char *beneath)
{
    DIR *folder = folder_fd >= 0 ? fdopendir(folder_fd) : NULL;
    if (folder == NULL) {
        if (folder_fd >= 0) {
            close(folder_fd);
        }
        output_list_note(
            list, CADRE_PERMISSION_DENIED, "a folder that the task left cannot be read");
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        char name[LIMIT_FILE_NAME_BYTES];
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        int length = snprintf(
            name, sizeof name, "%s%s%s", beneath, beneath[0] != '\0' ? "/" : "", entry->d_name);
        if (length < 0 || (size_t)length >= sizeof name ||
            file_name_check(name, NULL) != CADRE_OK) {
            output_list_note(list, CADRE_INVALID_ARGUMENT,
                "a file that the task left has a name that cannot be sent (too long or not plain "
                "text): it is dropped");
            continue;
        }
        if (fstatat(dirfd(folder), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        if (S_ISDIR(status.st_mode)) {
            output_list_walk(list,
                openat(
                    dirfd(folder), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                name);
        } else if (S_ISREG(status.st_mode) && !output_list_add(list, name)) {
            output_list_note(list, CADRE_RESOURCE_EXHAUSTED,
                "the worker has no memory to list what the task left");
        }
    }
    closedir(folder);
}

void output_list_fill(struct output_list *list)
{
    int folder = open(list->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0) {
        output_list_walk(list, folder, "");
    }
}

struct output_list *output_list_new(struct task_files *task, const char *folder)
{
    struct output_list *list = calloc(1, sizeof *list);
    if (list == NULL || asprintf(&list->folder, "%s/out", folder) < 0) {
        free(list);
        return NULL;
    }
    list->task = task;
    return list;
}

void output_list_free(struct output_list *list)
{
    if (list == NULL) {
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        free(list->names[i]);
    }
    free(list->names);
    free(list->folder);
    free(list);
}
