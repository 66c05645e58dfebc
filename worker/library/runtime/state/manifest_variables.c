/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/manifest_variables.h"

#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/border/name.h"
#include "worker/library/runtime/state/manifest_stream.h"
#include "worker/library/runtime/state/registered.h"
#include "worker/library/runtime/state/streamed.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_list.h"

/* --- writing --- */

static json_t *entry_of(const cadre_variable *variable)
{
    json_t *dims = json_array();
    int failed = dims == NULL ? 1 : 0;
    for (uint32_t i = 0; i < variable->rank; i++) {
        failed |= json_array_append_new(dims, json_integer(variable->dims[i]));
    }
    json_t *entry = json_pack("{s:s, s:s, s:o, s:i, s:b, s:b, s:b}", "name", variable->name,
        "dtype", cadre_dtype_name(variable->dtype), "dims", dims, "aggregation",
        (int)variable->aggregation, "on_read", variable->on_read ? 1 : 0, "keep_on_host",
        variable->keep_on_host ? 1 : 0, "in_function", variable->origin.in_function ? 1 : 0);
    if (failed != 0) {
        json_decref(entry);
        return NULL;
    }
    return entry;
}

json_t *manifest_variables(const struct cadre_strategy *strategy)
{
    json_t *all = json_array();
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        if (json_array_append_new(all, entry_of(strategy->variables->list[i])) != 0) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

/* --- reading --- */

/* One of the list, as a plan whose parts lie here. */
struct described {
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

static bool read_dims(const json_t *list, struct described *described)
{
    size_t rank = json_array_size(list);
    bool whole = json_is_array(list) && rank <= CADRE_RANK_MAX;
    for (size_t i = 0; whole && i < rank; i++) {
        const json_t *dim = json_array_get(list, i);
        whole = json_is_integer(dim) && json_integer_value(dim) >= 0;
        described->dims[i] = json_integer_value(dim);
    }
    described->plan.rank = (uint32_t)(whole ? rank : 0);
    return whole;
}

static bool read_options(const json_t *entry, struct described *described)
{
    const json_t *aggregation = json_object_get(entry, "aggregation");
    json_int_t number = json_is_integer(aggregation) ? json_integer_value(aggregation) : -1;
    cadre_variable_options *options = &described->options;
    bool on_read = false;
    bool whole = number >= 0 && number <= CADRE_AGGREGATION_ONLY_FIRST_REPLICA &&
                 manifest_read_bool(entry, "on_read", &on_read) &&
                 manifest_read_bool(entry, "keep_on_host", &options->keep_on_host);
    options->aggregation = (cadre_aggregation)number;
    options->synchronization = on_read ? CADRE_SYNC_ON_READ : CADRE_SYNC_AUTO;
    return whole && !(on_read && described->plan.dtype == CADRE_STRING);
}

static bool read_entry(const json_t *entry, cadre_strategy *strategy, struct described *described)
{
    struct cadre_error ignored;
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    *described = (struct described){.plan = {.strategy = strategy,
                                        .name = json_string_value(json_object_get(entry, "name")),
                                        .dims = described->dims,
                                        .options = &described->options}};
    return name_check("variable", described->plan.name, &ignored) == CADRE_OK &&
           read_dtype(dtype, &described->plan.dtype) &&
           read_dims(json_object_get(entry, "dims"), described) && read_options(entry, described) &&
           manifest_read_bool(entry, "in_function", &described->in_function);
}

/* Whether the tensor is not a variable's here: "w" or "w/m" where "w" lies on parameter servers. */
static bool is_of_others(const cadre_strategy *strategy, const char *name)
{
    char start[LIMIT_NAME_BYTES];
    bool others = registered_stands_as(strategy, name) || streamed_stands_as(strategy, name);
    for (const char *at = strchr(name, '/'); !others && at != NULL; at = strchr(at + 1, '/')) {
        memcpy(start, name, (size_t)(at - name));
        start[at - name] = '\0';
        others = streamed_stands_as(strategy, start);
    }
    return others;
}

static cadre_status make(const struct described *described, struct cadre_error *error)
{
    cadre_strategy *strategy = described->plan.strategy;
    cadre_variable *variable = NULL;
    CADRE_TRY(variables_room(strategy, error));
    CADRE_TRY(variable_new(&described->plan, &variable, error));
    variable_is_fresh(strategy, variable);
    variables_put(strategy, variable);
    variable->origin.late = true;
    variable->origin.in_function = described->in_function;
    return CADRE_OK;
}

static cadre_status take(
    const json_t *entry, cadre_strategy *strategy, bool *ret_made, struct cadre_error *error)
{
    struct described described;
    if (!read_entry(entry, strategy, &described)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "this is no manifest of a checkpoint that can be read here: what it says of the "
            "variable '%.64s' is not whole",
            described.plan.name == NULL ? "" : described.plan.name);
    }
    if (cadre_variable_find(strategy, described.plan.name) != NULL ||
        is_of_others(strategy, described.plan.name)) {
        return CADRE_OK;
    }
    *ret_made = true;
    return make(&described, error);
}

cadre_status manifest_make_variables(struct cadre_strategy *strategy, const char *text,
    size_t bytes, bool *ret_made, struct cadre_error *error)
{
    *ret_made = false;
    json_error_t where;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    const json_t *all = json_object_get(root, "variables");
    cadre_status status = CADRE_OK; /* what else is wrong with it manifest_read says */
    for (size_t i = 0; status == CADRE_OK && i < json_array_size(all); i++) {
        status = take(json_array_get(all, i), strategy, ret_made, error);
    }
    json_decref(root);
    return status;
}
