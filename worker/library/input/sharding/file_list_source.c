/* SPDX-License-Identifier: Apache-2.0
 * See file_list_source.h. */
#include "worker/library/input/sharding/file_list_source.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/source.h"

/* --- the names --- */

struct names_dataset {
    cadre_dataset base;
    cadre_dataset *source; /* a reference: who opens the files asks it */
};

static void names_destroy(cadre_dataset *self)
{
    cadre_dataset_release(((struct names_dataset *)self)->source);
}

static cadre_status names_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    (void)self;
    (void)inputs;
    (void)error;
    *ret_spec = (cadre_element_spec){.count = 1, .tensors = {{.dtype = CADRE_STRING}}};
    return CADRE_OK;
}

static cadre_status names_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error)
{
    const cadre_dataset *source = ((const struct names_dataset *)self)->source;
    const char *path = source->ops->lists->path(source, (size_t)position.index);
    const cadre_string name = {.bytes = path, .size = strlen(path)};
    CADRE_TRY(id_list_add(ids, position.index, error));
    CADRE_TRY(tensor_from_data(CADRE_STRING, 0, NULL, &name, &ret_element->tensors[0], error));
    ret_element->count = 1;
    return CADRE_OK;
}

static void names_describe(const cadre_dataset *self, struct description *text)
{
    const cadre_dataset *source = ((const struct names_dataset *)self)->source;
    description_add(text, "%zu files of %s", source->ops->lists->count(source), source->ops->name);
}

static const struct dataset_ops names_ops = {
    .name = "file_list_source",
    .describe = names_describe,
    .destroy = names_destroy,
    .spec = names_spec,
    .at = names_at,
    .ids_at = source_ids_at,
};

/* --- the reader --- */

static cadre_status open_named(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    const cadre_dataset *source = user;
    const cadre_string *name = cadre_tensor_const_data(in->tensors[0]);
    CADRE_FREE_AT_EXIT char *path = malloc(name->size + 1); /* the string is not terminated */
    if (path == NULL) {
        struct cadre_error error = {0};
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for the name of a file");
        return cadre_error_publish(&error);
    }
    memcpy(path, name->bytes, name->size);
    path[name->size] = '\0';
    *ret_data = source->ops->lists->alone(source, path);
    return CADRE_OK;
}

cadre_dataset *file_list_source_expand(cadre_dataset *source)
{
    CADRE_ASSERT(source->ops->lists != NULL);
    struct names_dataset *names = dataset_new(sizeof *names, &names_ops, NULL);
    if (names == NULL) {
        return NULL;
    }
    names->source = cadre_dataset_retain(source);
    names->base.cardinality = (int64_t)source->ops->lists->count(source);
    return cadre_dataset_flat_map(&names->base, open_named, source);
}

size_t file_list_source_min_files(const cadre_dataset *data)
{
    size_t fewest = data->ops->lists != NULL ? data->ops->lists->count(data) : SIZE_MAX;
    for (uint32_t i = 0; i < data->input_count; i++) {
        size_t files = file_list_source_min_files(data->inputs[i]);
        fewest = files < fewest ? files : fewest;
    }
    return fewest;
}
