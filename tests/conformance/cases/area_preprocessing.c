/* SPDX-License-Identifier: Apache-2.0
 * Keras' preprocessing layers, through the public functions. */
#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "replicas.h"
#include "steps.h"

static void release_lookup(void *lookup)
{
    cadre_lookup_release(lookup);
}

/* Batches of a list, or its rows: none without "batch". */
static cadre_dataset *rows_of(cadre_tensor *rows, json_int_t batch)
{
    cadre_dataset *data = cadre_dataset_tensor_slices(&rows, 1);
    return batch > 0 ? cadre_dataset_batch(data, batch, false) : data;
}

/* --- StringLookup, IntegerLookup --- */

struct special {
    int64_t mask;
    int64_t oov;
};

/* "mask_token" and "oov_token" are of the vocabulary's type. */
static bool lookup_options(struct conformance_case *self, bool strings, struct special *special,
    cadre_lookup_options *ret_options)
{
    json_int_t buckets = 0;
    json_int_t most = 0;
    const json_t *mask = json_object_get(self->given, "mask_token");
    const json_t *oov = json_object_get(self->given, "oov_token");
    if (!case_number(self, self->given, "num_oov_indices", 0, INT32_MAX, 1, &buckets) ||
        !case_number(self, self->given, "max_tokens", INT32_MIN, INT32_MAX, 0, &most)) {
        return false;
    }
    special->mask = json_integer_value(mask);
    special->oov = json_integer_value(oov);
    *ret_options = (cadre_lookup_options){
        .oov_ids = buckets == 0 ? CADRE_LOOKUP_NO_OOV : buckets,
        .max_tokens = most,
        .mask_string = json_string_value(mask),
        .mask_integer = json_is_integer(mask) ? &special->mask : NULL,
        .oov_string = json_string_value(oov),
        .oov_integer = json_is_integer(oov) ? &special->oov : NULL,
    };
    bool known = (mask == NULL || (strings ? json_is_string(mask) : json_is_integer(mask))) &&
                 (oov == NULL || (strings ? json_is_string(oov) : json_is_integer(oov)));
    return known ? true : case_skip(self, "a special token of another type than the vocabulary");
}

/* get_vocabulary(): the tokens of all ids. */
static void check_vocabulary(
    struct conformance_case *self, const cadre_lookup *lookup, const json_t *wanted)
{
    const int64_t size = cadre_lookup_size(lookup);
    int64_t *numbers = case_alloc(self, (size_t)size, sizeof *numbers);
    cadre_tensor *ids = NULL;
    cadre_tensor *tokens = NULL;
    for (int64_t i = 0; i < size; i++) {
        numbers[i] = i;
    }
    if (!case_ok(self, cadre_tensor_from_data(CADRE_I64, 1, &size, numbers, &ids), "the ids")) {
        return;
    }
    case_keep(self, ids, case_release_tensor);
    if (!case_ok(self, cadre_lookup_invert(lookup, ids, &tokens), "cadre_lookup_invert")) {
        return;
    }
    case_keep(self, tokens, case_release_tensor);
    case_equal(self, "vocabulary", wanted, case_json(self, tokens));
}

static void check_values(
    struct conformance_case *self, const cadre_lookup *lookup, const json_t *wanted)
{
    cadre_tensor *queries = NULL;
    cadre_tensor *found = NULL;
    if (!value_to_tensor(json_object_get(self->given, "inputs"), CADRE_F32, &queries)) {
        case_skip(self, "\"inputs\" is no tensor");
        return;
    }
    case_keep(self, queries, case_release_tensor);
    if (case_verdict(self, cadre_lookup_apply(lookup, queries, &found), "cadre_lookup_apply")) {
        case_keep(self, found, case_release_tensor);
        case_equal(self, "values", wanted, case_json(self, found));
    }
}

static void lookup_layer(struct conformance_case *self, bool strings)
{
    json_int_t batch = 0;
    json_int_t replicas = 0;
    struct special special;
    cadre_lookup_options options;
    cadre_tensor *rows = NULL;
    cadre_lookup *lookup = NULL;
    if (!case_number(self, self->given, "batch", 1, 65536, 0, &batch) ||
        !case_number(self, self->given, "num_replicas", 1, REPLICAS_MAX, 1, &replicas) ||
        !lookup_options(self, strings, &special, &options)) {
        return;
    }
    if (!value_to_tensor(json_object_get(self->given, "adapt"), CADRE_F32, &rows)) {
        case_skip(self, "\"adapt\" is no tensor");
        return;
    }
    case_keep(self, rows, case_release_tensor);
    cadre_strategy *strategy = case_strategy(self, (uint32_t)replicas);
    if (strategy == NULL) {
        return;
    }
    /* An error is that of looking "inputs" up where there are any. */
    cadre_status status = cadre_lookup_adapt(strategy, rows_of(rows, batch), &options, &lookup);
    bool looks_up = json_object_get(self->given, "inputs") != NULL;
    if (looks_up ? !case_ok(self, status, "cadre_lookup_adapt")
                 : !case_verdict(self, status, "cadre_lookup_adapt")) {
        return;
    }
    case_keep(self, lookup, release_lookup);
    const json_t *vocabulary = json_object_get(self->expect, "vocabulary");
    const json_t *values = json_object_get(self->expect, "values");
    if (vocabulary != NULL) {
        check_vocabulary(self, lookup, vocabulary);
    }
    if (looks_up) {
        check_values(self, lookup, values);
    }
}

/* --- layers that are map functions with options --- */

/* One call of the function, as a dataset makes it. */
static void check_map(
    struct conformance_case *self, cadre_tensor *inputs, cadre_map_function function, void *options)
{
    const cadre_element in = {.count = 1, .tensors[0] = inputs};
    cadre_element out = {0};
    cadre_status status = function(&in, &out, options);
    case_keep(self, out.tensors[0], case_release_tensor);
    if (case_verdict(self, status, "the map function")) {
        const json_t *dtype = json_object_get(self->expect, "dtype");
        const char *name = cadre_dtype_name(cadre_tensor_dtype(out.tensors[0]));
        case_equal(self, "values", json_object_get(self->expect, "values"),
            case_json(self, out.tensors[0]));
        if (dtype != NULL && strcmp(json_string_value(dtype), name) != 0) {
            case_fail(self, "the result is of %s", name);
        }
    }
}

static bool inputs_of(struct conformance_case *self, cadre_tensor **ret_inputs)
{
    const json_t *value = json_object_get(self->given, "inputs");
    cadre_dtype dtype = case_dtype_of(value);
    return case_dtype(self, self->given, dtype, &dtype) &&
           case_tensor(self, value, dtype, ret_inputs);
}

static void rescaling(struct conformance_case *self)
{
    cadre_tensor *inputs = NULL;
    cadre_rescaling_options options = {
        .scale = json_number_value(json_object_get(self->given, "scale")),
        .offset = json_number_value(json_object_get(self->given, "offset")),
    };
    if (inputs_of(self, &inputs)) {
        check_map(self, inputs, cadre_rescaling_map, &options);
    }
}

static void category_encoding(struct conformance_case *self)
{
    static const char *const modes[] = {[CADRE_ENCODE_MULTI_HOT] = "multi_hot",
        [CADRE_ENCODE_ONE_HOT] = "one_hot",
        [CADRE_ENCODE_COUNT] = "count"};
    cadre_tensor *inputs = NULL;
    json_int_t categories = 0;
    const char *mode = json_string_value(json_object_get(self->given, "output_mode"));
    cadre_category_encoding_options options = {0};
    if (!case_number(self, self->given, "num_tokens", INT32_MIN, INT32_MAX, 0, &categories) ||
        !inputs_of(self, &inputs)) {
        return;
    }
    options.num_tokens = categories;
    for (unsigned i = 0; mode != NULL && i < 3; i++) {
        if (strcmp(modes[i], mode) == 0) {
            options.mode = (cadre_encoding_mode)i;
            mode = NULL;
        }
    }
    if (mode != NULL) {
        case_skip(self, "an output mode that is not known");
        return;
    }
    check_map(self, inputs, cadre_category_encoding_map, &options);
}

/* --- images, in a dataset: what is drawn is of its samples --- */

static void release_data(void *data)
{
    cadre_dataset_release(data);
}

static void release_iterator(void *iterator)
{
    cadre_iterator_release(iterator);
}

/* "values", or one of the results that chance allows; each of them must come in some epoch. */
static void check_images(
    struct conformance_case *self, cadre_tensor *inputs, cadre_map_function function, void *options)
{
    const json_t *possible = json_object_get(self->expect, "one_of");
    size_t count = json_array_size(possible);
    bool *seen = case_alloc(self, count, sizeof *seen);
    cadre_dataset *data =
        cadre_dataset_map(cadre_dataset_tensors(&inputs, 1), function, options, NULL);
    case_keep(self, data, release_data);
    for (uint64_t epoch = 0; epoch < (possible == NULL ? 1 : 32 * count); epoch++) {
        cadre_iterator *iterator = NULL;
        cadre_element out;
        if (!case_ok(self, cadre_dataset_iterate(data, epoch, &iterator), "iterating")) {
            return;
        }
        case_keep(self, iterator, release_iterator);
        if (!case_verdict(self, cadre_iterator_next(iterator, &out), "the map function")) {
            return;
        }
        case_keep(self, out.tensors[0], case_release_tensor);
        const json_t *got = case_json(self, out.tensors[0]);
        if (possible == NULL) {
            case_equal(self, "values", json_object_get(self->expect, "values"), got);
            return;
        }
        size_t which = 0;
        while (which < count && !json_equal(json_array_get(possible, which), got)) {
            which++;
        }
        if (which == count) {
            case_fail(self, "in epoch %d it is none of those that are possible", (int)epoch);
            return;
        }
        seen[which] = true;
    }
    for (size_t i = 0; i < count; i++) {
        if (!seen[i]) {
            case_fail(self, "result %zu never comes", i);
        }
    }
}

static void random_flip(struct conformance_case *self)
{
    static const char *const modes[] = {[CADRE_FLIP_BOTH] = "horizontal_and_vertical",
        [CADRE_FLIP_HORIZONTAL] = "horizontal",
        [CADRE_FLIP_VERTICAL] = "vertical"};
    cadre_tensor *inputs = NULL;
    const char *mode = json_string_value(json_object_get(self->given, "mode"));
    cadre_random_flip_options options = {0};
    for (unsigned i = 0; mode != NULL && i < 3; i++) {
        if (strcmp(modes[i], mode) == 0) {
            options.mode = (cadre_flip_mode)i;
            mode = NULL;
        }
    }
    if (mode != NULL) {
        case_skip(self, "a mode that is not known");
    } else if (inputs_of(self, &inputs)) {
        check_images(self, inputs, cadre_random_flip_map, &options);
    }
}

static void crop_layer(struct conformance_case *self, bool center)
{
    cadre_tensor *inputs = NULL;
    json_int_t height = 0;
    json_int_t width = 0;
    if (!case_number(self, self->given, "height", INT32_MIN, INT32_MAX, 0, &height) ||
        !case_number(self, self->given, "width", INT32_MIN, INT32_MAX, 0, &width) ||
        !inputs_of(self, &inputs)) {
        return;
    }
    cadre_random_crop_options options = {.center = center, .height = height, .width = width};
    check_images(self, inputs, cadre_random_crop_map, &options);
}

static void random_crop(struct conformance_case *self)
{
    crop_layer(self, false);
}

static void center_crop(struct conformance_case *self)
{
    crop_layer(self, true);
}

/* --- all of them --- */

static void string_lookup(struct conformance_case *self)
{
    lookup_layer(self, true);
}

static void integer_lookup(struct conformance_case *self)
{
    lookup_layer(self, false);
}

static const struct {
    const char *name;
    void (*run)(struct conformance_case *self);
    const char *given[10];
} layers[] = {
#define LOOKUP                                                                                     \
    {                                                                                              \
        "layer", "adapt", "batch", "num_replicas", "num_oov_indices", "max_tokens", "mask_token",  \
            "oov_token", "inputs", NULL                                                            \
    }
    {"StringLookup", string_lookup, LOOKUP},
    {"IntegerLookup", integer_lookup, LOOKUP},
    {"Rescaling", rescaling, {"layer", "inputs", "dtype", "scale", "offset", NULL}},
    {"CategoryEncoding", category_encoding,
        {"layer", "inputs", "dtype", "num_tokens", "output_mode", NULL}},
    {"RandomFlip", random_flip, {"layer", "inputs", "dtype", "mode", NULL}},
    {"RandomCrop", random_crop, {"layer", "inputs", "dtype", "height", "width", NULL}},
    {"CenterCrop", center_crop, {"layer", "inputs", "dtype", "height", "width", NULL}},
};

void area_preprocessing(struct conformance_case *self)
{
    const char *name = json_string_value(json_object_get(self->given, "layer"));
    for (size_t i = 0; name != NULL && i < sizeof layers / sizeof layers[0]; i++) {
        if (strcmp(layers[i].name, name) == 0) {
            if (case_knows(self, self->given, layers[i].given)) {
                layers[i].run(self);
            }
            return;
        }
    }
    case_skip(self, "a layer that is not known");
}
