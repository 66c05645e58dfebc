/* SPDX-License-Identifier: Apache-2.0
 * Components of values, found by their names. */
#include <stdlib.h>
#include <string.h>

#include "worker/library/device/argument.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/values/values.h"

/* The values to search, and what was found. */
struct search {
    cadre_per_replica *const *values;
    uint32_t value_count;
    const char *name;
    uint32_t equal;  /* components with that name */
    uint32_t nested; /* components inside a structure with that name */
};

static bool is_equal(const struct search *search, const char *own)
{
    return own != NULL && strcmp(own, search->name) == 0;
}

/* The rest of a name inside the structure; NULL: it is not in it. */
static const char *rest_of(const struct search *search, const char *own)
{
    size_t bytes = strlen(search->name);
    bool inside = own != NULL && strncmp(own, search->name, bytes) == 0 && own[bytes] == '/';
    return inside ? own + bytes + 1 : NULL;
}

static void values_named_count(struct search *search)
{
    for (uint32_t v = 0; v < search->value_count; v++) {
        const cadre_per_replica *value = search->values[v];
        for (uint32_t i = 0; value->names != NULL && i < value->components; i++) {
            search->equal += is_equal(search, value->names[i]) ? 1 : 0;
            search->nested += rest_of(search, value->names[i]) != NULL ? 1 : 0;
        }
    }
}

static cadre_status values_named_missing(const struct search *search, struct cadre_error *error)
{
    const char *names[CADRE_ELEMENT_TENSORS_MAX];
    uint32_t names_count = 0;
    uint32_t unused = 0;
    for (uint32_t v = 0; v < search->value_count; v++) {
        const cadre_per_replica *value = search->values[v];
        for (uint32_t i = 0; i < value->components && names_count < CADRE_ELEMENT_TENSORS_MAX;
             i++) {
            names[names_count++] = value->names == NULL ? NULL : value->names[i];
        }
    }
    return component_names_find(
        names, names_count, search->name, "cadre_values_named", &unused, error);
}

/* The components that were counted, as a value; those of a structure without its name. */
static cadre_status values_named_take(
    const struct search *search, cadre_per_replica **ret_values, struct cadre_error *error)
{
    struct names_builder made = {0};
    const bool whole = search->equal > 0;
    cadre_per_replica *taken = NULL;
    CADRE_TRY(
        per_replica_new_of(search->values[0]->replicas, whole ? 1 : search->nested, &taken, error));
    for (uint32_t v = 0; v < search->value_count; v++) {
        cadre_per_replica *value = search->values[v];
        for (uint32_t i = 0; value->names != NULL && i < value->components; i++) {
            const char *rest = rest_of(search, value->names[i]);
            if (whole ? is_equal(search, value->names[i]) : rest != NULL) {
                per_replica_add_part(taken, value, i, 1);
                names_builder_add(&made, NULL, whole ? NULL : rest);
            }
        }
    }
    cadre_status status =
        whole ? CADRE_OK : names_builder_intern(&made, "cadre_values_named", &taken->names, error);
    if (status != CADRE_OK) {
        cadre_per_replica_release(taken);
        return status;
    }
    *ret_values = taken;
    return CADRE_OK;
}

static cadre_status values_named_find(
    struct search *search, cadre_per_replica **ret_values, struct cadre_error *error)
{
    for (uint32_t v = 0; v < search->value_count; v++) {
        CADRE_TRY(per_replica_require(search->values[v], "cadre_values_named", "values", error));
        if (search->values[v]->replicas != search->values[0]->replicas) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "cadre_values_named: value 0 is one of %u replicas and value %u one of %u; give "
                "values of one strategy",
                search->values[0]->replicas, v, search->values[v]->replicas);
        }
    }
    values_named_count(search);
    if (search->nested > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_values_named: '%s' has %u components in these values; a value has at most %d",
            search->name, search->nested, CADRE_ELEMENT_TENSORS_MAX);
    }
    /* No component has the name, or several have. */
    bool found = search->equal == 1 || (search->equal == 0 && search->nested > 0);
    return found ? values_named_take(search, ret_values, error)
                 : values_named_missing(search, error);
}

cadre_status cadre_values_named(cadre_per_replica *const values[], uint32_t n_values,
    const char *name, cadre_per_replica **ret_values)
{
    struct search search = {.values = values, .value_count = n_values, .name = name};
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_values, __func__, "ret_values", &error);
    if (status == CADRE_OK) {
        *ret_values = NULL;
        status = argument_require(n_values == 0 ? NULL : values, __func__, "values", &error);
    }
    status = status == CADRE_OK ? argument_require(name, __func__, "name", &error) : status;
    status = status == CADRE_OK ? values_named_find(&search, ret_values, &error) : status;
    return api_return(status, &error);
}
