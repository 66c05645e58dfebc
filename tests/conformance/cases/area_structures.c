/* SPDX-License-Identifier: Apache-2.0
 * Structures: elements that are dicts and tuples, several arguments of a step, and dicts as
 * results.
 *
 * "dataset" is {"slices": [[..], ..]}, {"zip": [dataset, ..]} or {"repeat_of": dataset, "count":
 * n}; then, as they are there and in this order: "names", "batch", "enumerate", "take". "arguments"
 * of the step are {"batch": true}, {"part": name of the batch's}, {"value": ..} for all replicas or
 * {"per_replica": [..]}, each with a "name" or without. The function "returns" inputs: by the name
 * of the output that of the input. What is expected are the "names" of a batch, the number of
 * "steps", and of each the "results", by name, as lists over the replicas or dicts. */
#include <string.h>

#include "areas.h"
#include "replicas.h"

#define ARGUMENTS_MAX 8

/* `status` is what a call gave that others follow, which may be the one that an error is wanted of.
 * False: the case is over. */
static bool goes_on(struct conformance_case *self, cadre_status status, const char *what)
{
    return status == CADRE_OK || case_verdict(self, status, what);
}

/* --- datasets --- */

static bool build(
    struct conformance_case *self, const json_t *description, cadre_dataset **ret_data);

static bool build_slices(
    struct conformance_case *self, const json_t *columns, cadre_dataset **ret_data)
{
    cadre_tensor *tensors[CADRE_ELEMENT_TENSORS_MAX];
    size_t count = json_array_size(columns);
    if (count == 0 || count > CADRE_ELEMENT_TENSORS_MAX) {
        return case_skip(self, "no columns, or too many");
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *column = json_array_get(columns, i);
        if (!case_tensor(self, column, case_dtype_of(column), &tensors[i])) {
            return false;
        }
    }
    *ret_data = cadre_dataset_tensor_slices(tensors, count);
    return true;
}

static bool build_zip(struct conformance_case *self, const json_t *parts, cadre_dataset **ret_data)
{
    cadre_dataset *datasets[ARGUMENTS_MAX];
    size_t count = json_array_size(parts);
    if (count == 0 || count > ARGUMENTS_MAX) {
        return case_skip(self, "a zip of nothing, or of too many");
    }
    for (size_t i = 0; i < count; i++) {
        if (!build(self, json_array_get(parts, i), &datasets[i])) {
            while (i-- > 0) {
                cadre_dataset_release(datasets[i]);
            }
            return false;
        }
    }
    *ret_data = cadre_dataset_zip(datasets, count);
    return true;
}

/* What stands behind the source. */
static bool transform(
    struct conformance_case *self, const json_t *description, cadre_dataset **data)
{
    const char *names[CADRE_ELEMENT_TENSORS_MAX + 1];
    const json_t *list = json_object_get(description, "names");
    json_int_t batch;
    json_int_t take;
    size_t count = json_array_size(list);
    if (count > CADRE_ELEMENT_TENSORS_MAX + 1 ||
        !case_number(self, description, "batch", 1, 1000, 0, &batch) ||
        !case_number(self, description, "take", 0, 1000, -1, &take)) {
        return case_skip(self, "a transformation that is not known");
    }
    for (size_t i = 0; i < count; i++) {
        names[i] = json_string_value(json_array_get(list, i)); /* NULL: none */
    }
    *data = list != NULL ? cadre_dataset_named(*data, names, count) : *data;
    *data = batch > 0 ? cadre_dataset_batch(*data, batch, false) : *data;
    if (json_object_get(description, "enumerate") != NULL) {
        *data = cadre_dataset_enumerate(*data, 0);
    }
    *data = take >= 0 ? cadre_dataset_take(*data, take) : *data;
    return true;
}

static bool build(
    struct conformance_case *self, const json_t *description, cadre_dataset **ret_data)
{
    static const char *const known[] = {
        "slices", "zip", "repeat_of", "count", "names", "batch", "enumerate", "take", NULL};
    const json_t *slices = json_object_get(description, "slices");
    const json_t *zip = json_object_get(description, "zip");
    const json_t *repeated = json_object_get(description, "repeat_of");
    json_int_t count;
    if (!case_knows(self, description, known) ||
        !case_number(self, description, "count", -1, 1000, 1, &count)) {
        return false;
    }
    bool built = slices != NULL ? build_slices(self, slices, ret_data)
                 : zip != NULL  ? build_zip(self, zip, ret_data)
                                : build(self, repeated, ret_data);
    if (!built) {
        return false;
    }
    *ret_data = repeated != NULL ? cadre_dataset_repeat(*ret_data, count) : *ret_data;
    if (!transform(self, description, ret_data)) {
        cadre_dataset_release(*ret_data);
        return false;
    }
    return true;
}

/* --- steps --- */

struct step {
    struct conformance_case *self;
    cadre_strategy *strategy;
    cadre_per_replica *batch;
    cadre_argument arguments[ARGUMENTS_MAX];
    uint32_t argument_count;
    cadre_per_replica *outputs[CADRE_OUTPUTS_MAX];
    uint32_t output_count;
};

static cadre_status return_inputs(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    json_t *returns = user;
    const char *output;
    json_t *input;
    (void)inputs;
    (void)outputs;
    json_object_foreach(returns, output, input)
    {
        cadre_tensor *tensor;
        CADRE_TRY(cadre_replica_input(replica, json_string_value(input), &tensor));
        CADRE_TRY(cadre_replica_output(replica, output, cadre_tensor_retain(tensor)));
    }
    return CADRE_OK;
}

static bool take_argument(struct step *step, const json_t *description)
{
    static const char *const known[] = {"batch", "part", "value", "per_replica", "name", NULL};
    struct conformance_case *self = step->self;
    const char *part = json_string_value(json_object_get(description, "part"));
    const json_t *value = json_object_get(description, "value");
    const json_t *each = json_object_get(description, "per_replica");
    cadre_argument *argument = &step->arguments[step->argument_count++];
    *argument = (cadre_argument){.name = json_string_value(json_object_get(description, "name"))};
    if (!case_knows(self, description, known)) {
        return false;
    }
    if (part != NULL) {
        bool found = goes_on(self, cadre_values_named(&step->batch, 1, part, &argument->values),
            "cadre_values_named");
        case_keep(self, argument->values, case_release_values);
        return found;
    }
    if (value != NULL) {
        return case_tensor(self, value, case_dtype_of(value), &argument->tensor);
    }
    if (each != NULL) {
        return case_values(self, step->strategy, each, case_dtype_of(each), &argument->values);
    }
    argument->values = step->batch;
    return true;
}

/* False: the case is over, in whatever way. */
static bool run(struct step *step)
{
    const json_t *list = json_object_get(step->self->given, "arguments");
    json_t *returns = json_object_get(step->self->given, "returns");
    step->argument_count = 0;
    step->output_count = (uint32_t)json_object_size(returns);
    if (json_array_size(list) > ARGUMENTS_MAX || step->output_count > CADRE_OUTPUTS_MAX) {
        return case_skip(step->self, "too many arguments or outputs");
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (!take_argument(step, json_array_get(list, i))) {
            return false;
        }
    }
    cadre_status status =
        list != NULL ? cadre_run_arguments(step->strategy, return_inputs, returns, step->arguments,
                           step->argument_count, step->output_count, step->outputs)
                     : cadre_run(step->strategy, return_inputs, returns, step->batch,
                           step->output_count, step->outputs);
    return goes_on(step->self, status, "the step");
}

/* `wanted` is a list over the replicas, or a dict of such. */
static bool compare(struct conformance_case *self, cadre_per_replica *const values[],
    uint32_t count, const char *name, const json_t *wanted)
{
    cadre_per_replica *part = NULL;
    const char *key;
    json_t *inner;
    bool equal = true;
    bool found =
        goes_on(self, cadre_values_named(values, count, name, &part), "cadre_values_named");
    case_keep(self, part, case_release_values);
    if (!found) {
        return false;
    }
    if (!json_is_object(wanted)) {
        return case_equal(self, name, wanted, case_results(self, part, 0));
    }
    if (cadre_per_replica_components(part) < json_object_size(wanted)) {
        return case_fail(self, "'%s' has %u components", name, cadre_per_replica_components(part));
    }
    json_object_foreach((json_t *)(uintptr_t)wanted, key, inner)
    {
        equal = equal && compare(self, &part, 1, key, inner);
    }
    return equal;
}

static bool compare_results(struct step *step, size_t number)
{
    const json_t *results = json_object_get(step->self->expect, "results");
    const char *name;
    json_t *wanted;
    bool equal = true;
    json_object_foreach(json_array_get(results, number), name, wanted)
    {
        equal = equal && compare(step->self, step->outputs, step->output_count, name, wanted);
    }
    return equal;
}

static bool compare_names(struct conformance_case *self, cadre_distributed_dataset *data)
{
    const json_t *wanted = json_object_get(self->expect, "names");
    cadre_element_spec spec;
    json_t *names = case_keep(self, json_array(), case_release_json);
    if (!case_ok(self, cadre_distributed_spec(data, &spec), "cadre_distributed_spec")) {
        return false;
    }
    for (uint32_t i = 0; spec.names != NULL && i < spec.count; i++) {
        json_array_append_new(
            names, spec.names[i] == NULL ? json_null() : json_string(spec.names[i]));
    }
    return wanted == NULL || json_equal(wanted, names) ||
           case_equal(self, "the names", wanted, names);
}

void area_structures(struct conformance_case *self)
{
    static const char *const known[] = {"num_replicas", "dataset", "arguments", "returns", NULL};
    const json_t *steps = json_object_get(self->expect, "steps");
    struct step step = {.self = self};
    cadre_distributed_dataset *data = NULL;
    cadre_dataset *global = NULL;
    json_int_t replicas;
    json_int_t done = 0;
    if (!case_knows(self, self->given, known) ||
        !case_number(self, self->given, "num_replicas", 1, REPLICAS_MAX, 1, &replicas) ||
        (step.strategy = case_strategy(self, (uint32_t)replicas)) == NULL ||
        !build(self, json_object_get(self->given, "dataset"), &global) ||
        !goes_on(self, cadre_distribute_dataset(step.strategy, global, NULL, &data),
            "cadre_distribute_dataset") ||
        !compare_names(self, data)) {
        return;
    }
    cadre_status status = CADRE_OK;
    while (cadre_next_epoch(data, 1, NULL)) {
        while ((status = cadre_next(data, &step.batch)) == CADRE_OK) {
            if (!run(&step) || !compare_results(&step, (size_t)done++)) {
                return;
            }
        }
    }
    if (status != CADRE_OUT_OF_RANGE) {
        case_verdict(self, status, "cadre_next");
    } else if (case_wanted_error(self->expect) != NULL) {
        case_fail(self, "an error was expected, and all steps went well");
    } else if (steps != NULL && json_integer_value(steps) != done) {
        case_fail(self, "%lld steps were expected, and %lld were there",
            (long long)json_integer_value(steps), (long long)done);
    }
}
