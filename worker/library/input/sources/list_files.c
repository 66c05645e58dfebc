/* SPDX-License-Identifier: Apache-2.0
 * The source of the names of files and objects, as the shell's patterns find them. They are the
 * rows of a tensor; a source of its own only so that its description has the names: without their
 * folders, which differ from machine to machine. */
#include <inttypes.h>
#include <string.h>

#include "worker/library/device/tensor.h"
#include "worker/library/input/node/node.h"
#include "worker/library/input/node/source.h"
#include "worker/library/input/sources/file_patterns.h"

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
    if (file_patterns_find(patterns, pattern_count, &names, &error) != CADRE_OK) {
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
