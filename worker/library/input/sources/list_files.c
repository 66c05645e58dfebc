/* SPDX-License-Identifier: Apache-2.0
 * The source of the names of files, as the shell's patterns find them. They are the rows of a
 * tensor; a source of its own only so that its description has the names: without their folders,
 * which differ from machine to machine. */
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/node.h"
#include "worker/library/input/files/record_index_file.h"
#include "worker/library/input/node/source.h"

struct list_dataset {
    cadre_dataset base;
    cadre_tensor *names; /* CADRE_STRING [n] */
};

static void list_destroy(cadre_dataset *self)
{
    cadre_tensor_release(((struct list_dataset *)self)->names);
}

static cadre_status list_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)self;
    (void)inputs;
    (void)error;
    *ret_spec = (cadre_element_spec){.count = 1, .tensors = {{.dtype = CADRE_STRING}}};
    return CADRE_OK;
}

static cadre_status list_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    cadre_tensor *names = ((struct list_dataset *)self)->names;
    CADRE_TRY(id_list_add(ids, position.index, error));
    CADRE_TRY(tensor_view_row(names, (int64_t)position.index, &ret_element->tensors[0], error));
    ret_element->count = 1;
    return CADRE_OK;
}

static void list_describe(const cadre_dataset *self, struct description *text)
{
    const cadre_tensor *names = ((const struct list_dataset *)self)->names;
    const cadre_string *paths = cadre_tensor_const_data(names);
    description_add(text, "%" PRId64 " files", cadre_tensor_rows(names));
    for (int64_t i = 0; i < cadre_tensor_rows(names); i++) {
        const char *folder_end = memrchr(paths[i].bytes, '/', paths[i].size);
        const char *name = folder_end == NULL ? paths[i].bytes : folder_end + 1;
        int length = (int)(paths[i].bytes + paths[i].size - name);
        description_add(text, ", %.*s", length, name);
    }
}

static const struct dataset_ops list_ops = {
    .name = "list_files",
    .describe = list_describe,
    .destroy = list_destroy,
    .spec = list_spec,
    .at = list_at,
    .ids_at = source_ids_at,
};

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

/* Adds what matches `pattern` to `found`. */
static cadre_status add_matches(
    const char *pattern, bool first, glob_t *found, struct cadre_error *error)
{
    size_t before = first ? 0 : found->gl_pathc;
    unread.errnum = 0;
    int result = fault_point("input.glob")
                     ? GLOB_NOSPACE
                     : glob(pattern, GLOB_MARK | (first ? 0 : GLOB_APPEND), note_unread, found);
    if (result == GLOB_NOSPACE) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "list_files: no memory for the files that match \"%s\"", pattern);
    }
    if (result != 0 && result != GLOB_NOMATCH) {
        return cadre_error_errno(error, unread.errnum != 0 ? unread.errnum : EIO,
            "list_files: \"%s\" leads to the folder %s, which cannot be read", pattern,
            unread.errnum != 0 ? unread.path : "?");
    }
    bool matched = false;
    for (size_t i = before; result == 0 && i < found->gl_pathc; i++) {
        matched = matched || !is_no_data(found->gl_pathv[i]);
    }
    if (!matched) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "list_files: no file matches \"%s\"; look at the pattern, and at the folder the "
            "program "
            "runs in",
            pattern);
    }
    return CADRE_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names that were found, sorted by their bytes and each once. */
static cadre_status make_names(glob_t *found, cadre_tensor **ret_names, struct cadre_error *error)
{
    qsort(found->gl_pathv, found->gl_pathc, sizeof found->gl_pathv[0], compare_names);
    cadre_string *names =
        fault_point("input.glob") ? NULL : malloc(found->gl_pathc * sizeof *names);
    if (names == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "list_files: no memory for %zu names", found->gl_pathc);
    }
    int64_t count = 0;
    for (size_t i = 0; i < found->gl_pathc; i++) {
        const char *path = found->gl_pathv[i];
        if (!is_no_data(path) && (i == 0 || strcmp(path, found->gl_pathv[i - 1]) != 0)) {
            names[count++] = (cadre_string){.bytes = path, .size = strlen(path)};
        }
    }
    cadre_status status = tensor_from_data(CADRE_STRING, 1, &count, names, ret_names, error);
    free(names);
    return status;
}

static cadre_status find_files(const char *const patterns[], size_t pattern_count,
    cadre_tensor **ret_names, struct cadre_error *error)
{
    glob_t found = {0};
    cadre_status status = CADRE_OK;
    for (size_t i = 0; status == CADRE_OK && i < pattern_count; i++) {
        if (patterns[i] == NULL) {
            status = cadre_error_set(
                error, CADRE_INVALID_ARGUMENT, "list_files: pattern %zu is NULL", i);
        } else {
            status = add_matches(patterns[i], i == 0, &found, error);
        }
    }
    if (status == CADRE_OK) {
        status = make_names(&found, ret_names, error);
    }
    globfree(&found);
    return status;
}

cadre_dataset *cadre_dataset_list_files(
    const char *const patterns[], size_t pattern_count, const cadre_list_files_options *options)
{
    struct cadre_error error = {0};
    if (patterns == NULL || pattern_count == 0) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "list_files: no pattern given; give at least one, such as \"data/*.tfrecord\"");
        return dataset_failed(NULL, &error);
    }
    cadre_tensor *names = NULL;
    if (find_files(patterns, pattern_count, &names, &error) != CADRE_OK) {
        return dataset_failed(NULL, &error);
    }
    struct list_dataset *list = dataset_new(sizeof *list, &list_ops, NULL);
    if (list == NULL) {
        cadre_tensor_release(names);
        return NULL;
    }
    list->base.cardinality = cadre_tensor_rows(names);
    list->names = names;
    return options != NULL && options->shuffle
               ? cadre_dataset_shuffle(&list->base, CADRE_SHUFFLE_ALL, options->seed, NULL)
               : &list->base;
}
