/* SPDX-License-Identifier: Apache-2.0
 * The descriptions of variables in the manifest: written by manifest.c, read by tasks that make
 * the variables they lack. */
#include "worker/library/runtime/state/checkpoint/manifest_variables.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/state/layout/registered.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/state/layout/streamed.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_list.h"

static const char *const aggregations[] = {[CADRE_AGGREGATION_NONE] = "NONE",
    [CADRE_AGGREGATION_SUM] = "SUM",
    [CADRE_AGGREGATION_MEAN] = "MEAN",
    [CADRE_AGGREGATION_ONLY_FIRST_REPLICA] = "ONLY_FIRST_REPLICA"};

static const char on_read[] = "on_read";
static const char keep_on_host[] = "keep_on_host";
static const char in_function[] = "in_function";
static const char counts[] = "counts";

/* --- writing --- */

#define TEXT_BYTES (96 + CADRE_RANK_MAX * 21)

/* Type, dimensions and aggregation. Returns how much of `text` that is. */
static size_t write_shape(char text[TEXT_BYTES], cadre_dtype dtype, uint32_t rank,
    const int64_t *dims, cadre_aggregation aggregation)
{
    int used = snprintf(text, TEXT_BYTES, "%s ", cadre_dtype_name(dtype));
    for (uint32_t i = 0; i < rank; i++) {
        used += snprintf(
            text + used, TEXT_BYTES - (size_t)used, "%s%" PRId64, i == 0 ? "" : "x", dims[i]);
    }
    used += snprintf(text + used, TEXT_BYTES - (size_t)used, "%s %s", rank == 0 ? "-" : "",
        aggregations[aggregation]);
    CADRE_ASSERT((size_t)used < TEXT_BYTES);
    return (size_t)used;
}

static size_t manifest_variables_flag(
    char text[TEXT_BYTES], size_t used, bool so, const char *word)
{
    int more = so ? snprintf(text + used, TEXT_BYTES - used, " %s", word) : 0;
    CADRE_ASSERT(more >= 0 && used + (size_t)more < TEXT_BYTES);
    return used + (size_t)more;
}

/* One string for each, because a checkpoint waits for this. */
static json_t *text_of(const cadre_variable *variable)
{
    char text[TEXT_BYTES];
    size_t used =
        write_shape(text, variable->dtype, variable->rank, variable->dims, variable->aggregation);
    used = manifest_variables_flag(text, used, variable->on_read, on_read);
    used = manifest_variables_flag(text, used, variable->keep_on_host, keep_on_host);
    used = manifest_variables_flag(text, used, variable->origin.in_function, in_function);
    (void)manifest_variables_flag(text, used, variable->counts, counts);
    return json_string(text);
}

/* Slots of optimizers on parameter servers: variables of a job that goes on without servers. */
static bool add_slots(json_t *all, const struct cadre_strategy *strategy)
{
    struct streamed *streamed = strategy->state_part->streamed;
    const int64_t one[1] = {1};
    bool added = true;
    for (uint32_t i = 0; i < streamed_count(strategy); i++) {
        struct safetensors_entry entry;
        char text[TEXT_BYTES];
        bool is_count = false;
        if (!streamed->ops->is_slot(streamed, i, &is_count)) {
            continue;
        }
        streamed->ops->describe(streamed, i, &entry);
        size_t used = write_shape(
            text, entry.dtype, entry.rank, is_count ? one : entry.dims, CADRE_AGGREGATION_NONE);
        used = manifest_variables_flag(text, used, is_count, keep_on_host);
        (void)manifest_variables_flag(text, used, is_count, counts);
        added = added && json_object_set_new(all, entry.name, json_string(text)) == 0;
    }
    return added;
}

json_t *manifest_variables(const struct cadre_strategy *strategy)
{
    json_t *all = json_object();
    bool added = add_slots(all, strategy);
    for (uint32_t i = 0; added && i < strategy->variables->count; i++) {
        const cadre_variable *variable = strategy->variables->list[i];
        added = json_object_set_new(all, variable->name, text_of(variable)) == 0;
    }
    if (!added) {
        json_decref(all);
        return NULL;
    }
    return all;
}

/* --- reading --- */

/* One description, as a plan that points into it. */
struct described {
    struct variable_plan plan;
    cadre_variable_options options;
    int64_t dims[CADRE_RANK_MAX];
    bool in_function;
};

static bool read_dtype(const char *name, cadre_dtype *ret_dtype)
{
    for (int dtype = CADRE_DTYPE_NONE + 1; dtype <= CADRE_STRING; dtype++) {
        if (strcmp(cadre_dtype_name((cadre_dtype)dtype), name) == 0) {
            *ret_dtype = (cadre_dtype)dtype;
            return true;
        }
    }
    return false;
}

/* "2x3", or "-" of a scalar. */
static bool read_dims(const char *text, struct described *described)
{
    uint32_t *rank = &described->plan.rank;
    *rank = 0;
    for (const char *at = text; strcmp(text, "-") != 0; at++) {
        char *end;
        errno = 0;
        int64_t dim =
            *rank < CADRE_RANK_MAX && *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : -1;
        if (dim < 0 || errno != 0) {
            return false;
        }
        described->dims[(*rank)++] = dim;
        at = end;
        if (*at != 'x') {
            return *at == '\0';
        }
    }
    return true;
}

static bool read_aggregation(const char *name, cadre_aggregation *ret_aggregation)
{
    for (size_t i = 0; i < CADRE_COUNT_OF(aggregations); i++) {
        if (strcmp(aggregations[i], name) == 0) {
            *ret_aggregation = (cadre_aggregation)i;
            return true;
        }
    }
    return false;
}

static bool read_flag(const char *word, struct described *described)
{
    if (strcmp(word, on_read) == 0 && described->plan.dtype != CADRE_STRING) {
        described->options.synchronization = CADRE_SYNC_ON_READ;
    } else if (strcmp(word, keep_on_host) == 0) {
        described->options.keep_on_host = true;
    } else if (strcmp(word, in_function) == 0) {
        described->in_function = true;
    } else if (strcmp(word, counts) == 0) {
        described->plan.counts = true;
    } else {
        return false;
    }
    return true;
}

static bool read_string_list(
    const char *name, const json_t *value, cadre_strategy *strategy, struct described *described)
{
    char text[TEXT_BYTES];
    char *rest = text;
    struct cadre_error ignored;
    *described = (struct described){.plan = {.strategy = strategy,
                                        .name = name,
                                        .dims = described->dims,
                                        .options = &described->options}};
    if (!json_is_string(value) || json_string_length(value) >= sizeof text ||
        name_check("variable", name, &ignored) != CADRE_OK) {
        return false;
    }
    memcpy(text, json_string_value(value), json_string_length(value) + 1);
    const char *dtype = strsep(&rest, " ");
    const char *dims = strsep(&rest, " ");
    const char *aggregation = strsep(&rest, " ");
    bool whole = aggregation != NULL && read_dtype(dtype, &described->plan.dtype) &&
                 read_dims(dims, described) &&
                 read_aggregation(aggregation, &described->options.aggregation);
    while (whole && rest != NULL) {
        whole = read_flag(strsep(&rest, " "), described);
    }
    return whole;
}

/* Whether the tensor is not a variable's here: "w" or "w/m" where "w" is on parameter servers. */
static bool is_of_others(const cadre_strategy *strategy, const char *name)
{
    char start[LIMIT_NAME_BYTES];
    bool others = registered_has_name(strategy, name) || streamed_has_name(strategy, name);
    for (const char *at = strchr(name, '/'); !others && at != NULL; at = strchr(at + 1, '/')) {
        memcpy(start, name, (size_t)(at - name));
        start[at - name] = '\0';
        others = streamed_has_name(strategy, start);
    }
    return others;
}

static cadre_status manifest_variables_make(
    const struct described *described, struct cadre_error *error)
{
    cadre_strategy *strategy = described->plan.strategy;
    cadre_variable *variable = NULL;
    CADRE_TRY(variables_room(strategy, error));
    CADRE_TRY(variable_new(&described->plan, &variable, error));
    variable_mark_fresh(strategy, variable);
    variables_put(strategy, variable);
    variable->origin.late = true;
    variable->origin.in_function = described->in_function;
    return CADRE_OK;
}

static cadre_status manifest_variables_take(const char *name, const json_t *value,
    cadre_strategy *strategy, bool *ret_made, struct cadre_error *error)
{
    struct described described;
    if (!read_string_list(name, value, strategy, &described)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "this is not a manifest of a checkpoint that can be read here: its description of the "
            "variable '%.64s' is not whole",
            name);
    }
    if (variable_lookup(strategy, name) != NULL || is_of_others(strategy, name)) {
        return CADRE_OK;
    }
    *ret_made = true;
    return manifest_variables_make(&described, error);
}

cadre_status manifest_make_variables(struct cadre_strategy *strategy, const char *text,
    size_t bytes, bool *ret_made, struct cadre_error *error)
{
    *ret_made = false;
    json_error_t where;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
    json_t *all = json_object_get(root, "variables");
    cadre_status status = CADRE_OK; /* other faults are found by manifest_read */
    const char *name;
    json_t *value;
    json_object_foreach(all, name, value)
    {
        status = status == CADRE_OK
                     ? manifest_variables_take(name, value, strategy, ret_made, error)
                     : status;
    }
    json_decref(root);
    return status;
}
