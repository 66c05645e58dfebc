/* SPDX-License-Identifier: Apache-2.0
 * See file_patterns.h. Files are found by glob(3). Objects are listed from the last "/" before the
 * first wildcard on, and matched as glob matches files: "*", "?" and brackets match no "/" and no
 * "." at the start of a name. */
#include "worker/library/input/sources/file_patterns.h"

#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/storage/storage.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/files/record_index_file.h"
#include "worker/library/input/node/node.h"

/* Names that were found. */
struct found_names {
    char **names;
    size_t count;
    size_t room;
};

static void found_names_clear(struct found_names *found)
{
    for (size_t i = 0; i < found->count; i++) {
        free(found->names[i]);
    }
    free(found->names);
}

static cadre_status found_names_add(
    struct found_names *found, const char *name, const char *pattern, struct cadre_error *error)
{
    if (found->count == found->room && !fault_point("input.glob")) {
        size_t room = found->room == 0 ? 64 : 2 * found->room;
        char **names = realloc(found->names, room * sizeof names[0]);
        found->names = names != NULL ? names : found->names;
        found->room = names != NULL ? room : found->room;
    }
    char *copy = found->count < found->room ? strdup(name) : NULL;
    if (copy == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "list_files: no memory for the files that match \"%s\"", pattern);
    }
    found->names[found->count++] = copy;
    return CADRE_OK;
}

static bool ends_with(const char *path, const char *end)
{
    size_t length = strlen(path);
    size_t end_length = strlen(end);
    return length >= end_length && strcmp(path + length - end_length, end) == 0;
}

/* Folders, which GLOB_MARK marks, and indexes that Cadre keeps beside the files they are of. */
static bool is_no_data(const char *path)
{
    return ends_with(path, "/") || ends_with(path, RECORD_INDEX_SUFFIX) ||
           ends_with(path, RECORD_INDEX_SUFFIX ".part");
}

/* --- files --- */

/* The folder that glob() could not read; it has no argument for it. */
static _Thread_local struct {
    int errnum; /* 0: none */
    char path[256];
} unread;

/* A folder that is not there has no files; one that cannot be read may have some. */
static int note_unread(const char *path, int errnum)
{
    if (errnum == ENOENT || errnum == ENOTDIR) {
        return 0;
    }
    unread.errnum = errnum;
    snprintf(unread.path, sizeof unread.path, "%s", path);
    return 1;
}

static cadre_status add_files(
    const char *pattern, struct found_names *found, struct cadre_error *error)
{
    glob_t files = {0};
    unread.errnum = 0;
    int result =
        fault_point("input.glob") ? GLOB_NOSPACE : glob(pattern, GLOB_MARK, note_unread, &files);
    cadre_status status = CADRE_OK;
    if (result == GLOB_NOSPACE) {
        status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "list_files: no memory for the files that match \"%s\"", pattern);
    } else if (result != 0 && result != GLOB_NOMATCH) {
        status = cadre_error_errno(error, unread.errnum != 0 ? unread.errnum : EIO,
            "list_files: \"%s\" leads to the folder %s, which cannot be read", pattern,
            unread.errnum != 0 ? unread.path : "?");
    }
    for (size_t i = 0; status == CADRE_OK && i < files.gl_pathc; i++) {
        if (!is_no_data(files.gl_pathv[i])) {
            status = found_names_add(found, files.gl_pathv[i], pattern, error);
        }
    }
    globfree(&files);
    return status;
}

/* --- objects --- */

struct matching {
    const char *pattern;
    struct found_names *found;
    cadre_status status;
    struct cadre_error *error;
};

static bool add_match(void *user, const struct storage_entry *entry)
{
    struct matching *matching = user;
    if (!entry->is_folder && !is_no_data(entry->path) &&
        fnmatch(matching->pattern, entry->path, FNM_PATHNAME | FNM_PERIOD) == 0) {
        matching->status =
            found_names_add(matching->found, entry->path, matching->pattern, matching->error);
    }
    return matching->status == CADRE_OK;
}

/* A name without wildcards: it is looked up. */
static cadre_status add_object(
    const char *path, struct found_names *found, struct cadre_error *error)
{
    struct storage_object *object = NULL;
    cadre_status status = storage_open(NULL, path, &object, error);
    storage_close(object);
    if (status == CADRE_NOT_FOUND || (status == CADRE_OK && is_no_data(path))) {
        return CADRE_OK;
    }
    return status == CADRE_OK ? found_names_add(found, path, path, error) : status;
}

static cadre_status add_objects(
    const char *pattern, struct found_names *found, struct cadre_error *error)
{
    const char *wildcard = pattern + strcspn(pattern, "*?[\\");
    const char *key = strchr(strstr(pattern, "://") + 3, '/');
    if (*wildcard == '\0' || strncmp(pattern, "s3://", 5) != 0) {
        return add_object(pattern, found, error);
    }
    if (key == NULL || wildcard < key) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "list_files: \"%s\": the objects of one bucket are listed; write its name without a "
            "wildcard",
            pattern);
    }
    const char *slash = memrchr(pattern, '/', (size_t)(wildcard - pattern));
    CADRE_FREE_AT_EXIT char *folder = strndup(pattern, (size_t)(slash + 1 - pattern));
    CADRE_FREE_AT_EXIT char *starts = strndup(slash + 1, (size_t)(wildcard - slash - 1));
    if (folder == NULL || starts == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "list_files: no memory for the pattern \"%s\"", pattern);
    }
    struct matching matching = {.pattern = pattern, .found = found, .error = error};
    bool deep = strchr(wildcard, '/') != NULL;
    CADRE_TRY(storage_list(
        NULL, folder, starts[0] != '\0' ? starts : NULL, deep, add_match, &matching, error));
    return matching.status;
}

/* --- both --- */

/* Adds what matches `pattern` to `found`. */
static cadre_status add_matches(
    const char *pattern, struct found_names *found, struct cadre_error *error)
{
    size_t before = found->count;
    CADRE_TRY(storage_is_object(pattern) ? add_objects(pattern, found, error)
                                         : add_files(pattern, found, error));
    if (found->count == before) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "list_files: no file matches \"%s\"; look at the pattern%s", pattern,
            storage_is_object(pattern) ? ""
                                       : ", and at the folder the program "
                                         "runs in");
    }
    return CADRE_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names that were found, sorted by their bytes and each once. */
static cadre_status make_names(
    struct found_names *found, cadre_tensor **ret_names, struct cadre_error *error)
{
    qsort(found->names, found->count, sizeof found->names[0], compare_names);
    CADRE_FREE_AT_EXIT cadre_string *names =
        fault_point("input.glob") ? NULL : malloc(found->count * sizeof *names);
    if (names == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "list_files: no memory for %zu names", found->count);
    }
    int64_t count = 0;
    for (size_t i = 0; i < found->count; i++) {
        const char *path = found->names[i];
        if (i == 0 || strcmp(path, found->names[i - 1]) != 0) {
            names[count++] = (cadre_string){.bytes = path, .size = strlen(path)};
        }
    }
    return tensor_from_data(CADRE_STRING, 1, &count, names, ret_names, error);
}

cadre_status file_patterns_find(const char *const patterns[], size_t pattern_count,
    cadre_tensor **ret_names, struct cadre_error *error)
{
    struct found_names found = {0};
    cadre_status status = CADRE_OK;
    for (size_t i = 0; status == CADRE_OK && i < pattern_count; i++) {
        if (patterns[i] == NULL) {
            status = cadre_error_set(
                error, CADRE_INVALID_ARGUMENT, "list_files: pattern %zu is NULL", i);
        } else {
            status = add_matches(patterns[i], &found, error);
        }
    }
    if (status == CADRE_OK) {
        status = make_names(&found, ret_names, error);
    }
    found_names_clear(&found);
    return status;
}
