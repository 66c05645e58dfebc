/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/manifest_late.h"

#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/border/name.h"
#include "worker/library/runtime/state/manifest_stream.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_list.h"

/* --- writing --- */

static json_t *late_of(const cadre_variable *variable)
{
    json_t *dims = json_array();
    int failed = dims == NULL ? 1 : 0;
    for (uint32_t i = 0; i < variable->rank; i++) {
        failed |= json_array_append_new(dims, json_integer(variable->dims[i]));
    }
    json_t *late = json_pack("{s:s, s:s, s:o, s:i, s:b, s:b, s:b}", "name", variable->name, "dtype",
        cadre_dtype_name(variable->dtype), "dims", dims, "aggregation", (int)variable->aggregation,
        "on_read", variable->on_read ? 1 : 0, "keep_on_host", variable->keep_on_host ? 1 : 0,
        "in_function", variable->origin.in_function ? 1 : 0);
    if (failed != 0) {
        json_decref(late);
        return NULL;
    }
    return late;
}

json_t *manifest_late(const struct cadre_strategy *strategy)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        const cadre_variable *variable = strategy->variables->list[i];
        if (variable->origin.late && json_array_append_new(all, late_of(variable)) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

/* --- reading --- */

/* One of the list, as a plan whose parts lie here. */
struct late {
    struct variable_plan plan;
    cadre_variable_options options;
    int64_t dims[CADRE_RANK_MAX];
    bool in_function;
};

static bool read_dtype(const char *name, cadre_dtype *ret_dtype)
{
    for (int dtype = CADRE_DTYPE_NONE + 1; name != NULL && dtype <= CADRE_STRING; dtype++) {
        if (strcmp(cadre_dtype_name((cadre_dtype)dtype), name) == 0) {
            *ret_dtype = (cadre_dtype)dtype;
            return true;
        }
    }
    return false;
}

static bool read_dims(const json_t *list, struct late *late)
{
    size_t rank = json_array_size(list);
    bool whole = json_is_array(list) && rank <= CADRE_RANK_MAX;
    for (size_t i = 0; whole && i < rank; i++) {
        const json_t *dim = json_array_get(list, i);
        whole = json_is_integer(dim) && json_integer_value(dim) >= 0;
        late->dims[i] = json_integer_value(dim);
    }
    late->plan.rank = (uint32_t)(whole ? rank : 0);
    return whole;
}

static bool read_late(const json_t *entry, cadre_strategy *strategy, struct late *late)
{
    struct cadre_error ignored;
    const json_t *aggregation = json_object_get(entry, "aggregation");
    bool on_read = false;
    *late = (struct late){.plan = {.strategy = strategy,
                              .name = json_string_value(json_object_get(entry, "name")),
                              .dims = late->dims,
                              .options = &late->options}};
    bool whole =
        name_check("variable", late->plan.name, &ignored) == CADRE_OK &&
        read_dtype(json_string_value(json_object_get(entry, "dtype")), &late->plan.dtype) &&
        read_dims(json_object_get(entry, "dims"), late) && json_is_integer(aggregation) &&
        json_integer_value(aggregation) >= 0 &&
        json_integer_value(aggregation) <= CADRE_AGGREGATION_ONLY_FIRST_REPLICA &&
        manifest_read_bool(entry, "on_read", &on_read) &&
        manifest_read_bool(entry, "keep_on_host", &late->options.keep_on_host) &&
        manifest_read_bool(entry, "in_function", &late->in_function);
    late->options.aggregation = (cadre_aggregation)json_integer_value(aggregation);
    late->options.synchronization = on_read ? CADRE_SYNC_ON_READ : CADRE_SYNC_AUTO;
    return whole && !(on_read && late->plan.dtype == CADRE_STRING);
}

static cadre_status make(const struct late *late, struct cadre_error *error)
{
    cadre_strategy *strategy = late->plan.strategy;
    cadre_variable *variable = NULL;
    CADRE_TRY(variables_room(strategy, error));
    CADRE_TRY(variable_new(&late->plan, &variable, error));
    variable_is_fresh(strategy, variable);
    variables_put(strategy, variable);
    variable->origin.late = true;
    variable->origin.in_function = late->in_function;
    return CADRE_OK;
}

static cadre_status take(
    const json_t *entry, cadre_strategy *strategy, bool *ret_made, struct cadre_error *error)
{
    struct late late;
    if (!read_late(entry, strategy, &late)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "this is no manifest of a checkpoint that can be read here: what it says of a variable "
            "that was created late, '%.64s', is not whole",
            late.plan.name == NULL ? "" : late.plan.name);
    }
    cadre_variable *variable = cadre_variable_find(strategy, late.plan.name);
    if (variable == NULL) {
        *ret_made = true;
        return make(&late, error);
    }
    variable->origin.late = true;
    return CADRE_OK;
}

cadre_status manifest_make_late(struct cadre_strategy *strategy, const char *text, size_t bytes,
    bool *ret_made, struct cadre_error *error)
{
    *ret_made = false;
    json_error_t where;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    const json_t *all = json_object_get(root, "late");
    cadre_status status = CADRE_OK; /* what else is wrong with it manifest_read says */
    for (size_t i = 0; status == CADRE_OK && i < json_array_size(all); i++) {
        status = take(json_array_get(all, i), strategy, ret_made, error);
    }
    json_decref(root);
    return status;
}
