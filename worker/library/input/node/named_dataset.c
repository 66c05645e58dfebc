/* SPDX-License-Identifier: Apache-2.0
 * The transformation that gives components their names. It changes no element. */
#include <inttypes.h>

#include "worker/library/device/argument.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/input/node/node.h"

struct named_dataset {
    cadre_dataset base;
    const char *const *own; /* [count]; NULL: it takes the names away */
    uint32_t count;
};

static void named_locate(
    const cadre_dataset *self, struct element_position positions[], size_t count)
{
    (void)self;
    (void)positions;
    (void)count;
}

static cadre_status named_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    const struct named_dataset *named = (const struct named_dataset *)self;
    if (inputs[0].count != named->count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "named: %" PRIu32 " names were given to elements of %" PRIu32 " components",
            named->count, inputs[0].count);
    }
    *ret_spec = inputs[0];
    ret_spec->names = named->own;
    return CADRE_OK;
}

static cadre_dataset *named_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    static const char *const none[CADRE_ELEMENT_TENSORS_MAX];
    const struct named_dataset *named = (const struct named_dataset *)self;
    return cadre_dataset_named(inputs[0], named->own != NULL ? named->own : none, named->count);
}

static void named_describe(const cadre_dataset *self, struct description *text)
{
    const struct named_dataset *named = (const struct named_dataset *)self;
    char names[NAMES_TEXT_BYTES];
    description_add(text, "%s", component_names_text(named->own, named->count, names));
}

static const struct dataset_ops named_ops = {
    .name = "named",
    .rebuild = named_rebuild,
    .describe = named_describe,
    .spec = named_spec,
    .locate = named_locate,
    .keeps_elements = true,
};

cadre_dataset *cadre_dataset_named(cadre_dataset *data, const char *const names[], size_t count)
{
    struct cadre_error error = {0};
    const char *const *own = NULL;
    if (!dataset_usable(data)) {
        return data;
    }
    if (names == NULL || count < 1 || count > CADRE_ELEMENT_TENSORS_MAX) {
        cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "named: %zu names%s; give one for each component, of which there are 1 to %d", count,
            names == NULL ? ", and the array is NULL" : "", CADRE_ELEMENT_TENSORS_MAX);
        return dataset_failed(data, &error);
    }
    if (component_names_intern(names, (uint32_t)count, "named", &own, &error) != CADRE_OK) {
        return dataset_failed(data, &error);
    }
    struct named_dataset *named = dataset_new(sizeof *named, &named_ops, data);
    if (named == NULL) {
        return NULL;
    }
    named->own = own;
    named->count = (uint32_t)count;
    named->base.has_names = true;
    return &named->base;
}

const char *const *dataset_names(cadre_dataset *data)
{
    cadre_element_spec spec = {0};
    if (!data->has_names) {
        return NULL;
    }
    const char *const *names = atomic_load_explicit(&data->names, memory_order_acquire);
    return names != NULL || dataset_spec(data, &spec, NULL) != CADRE_OK ? names : spec.names;
}

cadre_status cadre_element_named(
    const cadre_element *element, const char *name, cadre_tensor **ret_tensor)
{
    struct cadre_error error = {0};
    uint32_t component = 0;
    cadre_status status = argument_require(ret_tensor, __func__, "ret_tensor", &error);
    if (status == CADRE_OK) {
        *ret_tensor = NULL;
        status = argument_require(element, __func__, "element", &error);
    }
    status = status == CADRE_OK ? argument_require(name, __func__, "name", &error) : status;
    if (status == CADRE_OK) {
        status = component_names_find(
            element->names, element->count, name, __func__, &component, &error);
    }
    if (status != CADRE_OK) {
        return cadre_error_publish(&error);
    }
    *ret_tensor = element->tensors[component];
    return CADRE_OK;
}
