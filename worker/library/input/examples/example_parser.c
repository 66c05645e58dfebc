/* SPDX-License-Identifier: Apache-2.0
 * Descriptions of features, checked and prepared; see example_parser.h. */
#include "worker/library/input/examples/example_parser.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "worker/library/device/device.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/component_names.h"

_Static_assert(CADRE_ELEMENT_TENSORS_MAX * 2 <= EXAMPLE_TABLE_SLOTS && EXAMPLE_TABLE_SLOTS <= 256,
    "the table of names stays at most half full, and its slots hold any feature's number");

static const char *const kind_names[] = {"FIXED", "SEQUENCE", "VARYING", "SPARSE"};

/* Names differ in their length, or in few places: these are the likely ones. */
static size_t hash_name(const uint8_t *name, size_t bytes)
{
    if (bytes == 0) {
        return 0;
    }
    size_t before_last = bytes > 1 ? name[bytes - 2] : 0;
    size_t sum =
        bytes + 3u * name[0] + 5u * name[bytes / 2] + 7u * name[bytes - 1] + 11 * before_last;
    return sum % EXAMPLE_TABLE_SLOTS;
}

/* The slot of a name, or the empty one where it would stand. */
static size_t find_slot(const cadre_example_parser *parser, const uint8_t *name, size_t bytes)
{
    size_t slot = hash_name(name, bytes);
    while (parser->slots[slot] != 0) {
        const struct wanted_feature *wanted = &parser->wanted[parser->slots[slot] - 1];
        if (wanted->name_bytes == bytes && memcmp(wanted->name, name, bytes) == 0) {
            break;
        }
        slot = (slot + 1) % EXAMPLE_TABLE_SLOTS;
    }
    return slot;
}

static cadre_status check_kind(const cadre_feature *feature, struct cadre_error *error)
{
    int kind = (int)feature->kind;
    if (kind < CADRE_FEATURE_FIXED || kind > CADRE_FEATURE_SPARSE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "feature \"%s\": %d is no kind; use one of enum cadre_feature_kind", feature->name,
            kind);
    }
    if (feature->dtype != CADRE_F32 && feature->dtype != CADRE_I64 &&
        feature->dtype != CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "feature \"%s\" is wanted as %s; examples hold f32, i64 and string only, so ask for "
            "one "
            "of these and convert it",
            feature->name, cadre_dtype_name(feature->dtype));
    }
    uint32_t rank_max = feature->kind == CADRE_FEATURE_FIXED      ? CADRE_RANK_MAX - 1
                        : feature->kind == CADRE_FEATURE_SEQUENCE ? CADRE_RANK_MAX - 2
                                                                  : 0;
    if (feature->rank > rank_max) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "feature \"%s\" has rank %" PRIu32 "; one of kind %s has at most %" PRIu32,
            feature->name, feature->rank, kind_names[kind], rank_max);
    }
    return CADRE_OK;
}

/* The default, as it is used: a tensor of its own, which no caller can write to. */
static cadre_status take_default(
    struct wanted_feature *wanted, cadre_tensor *given, struct cadre_error *error)
{
    bool sequence = wanted->kind == CADRE_FEATURE_SEQUENCE;
    int64_t count = sequence ? 1 : wanted->count;
    if (wanted->kind == CADRE_FEATURE_VARYING || wanted->kind == CADRE_FEATURE_SPARSE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "feature \"%s\" is %s and has a default; where it is missing it has no values",
            wanted->name, kind_names[wanted->kind]);
    }
    if (cadre_tensor_dtype(given) != wanted->dtype || cadre_tensor_count(given) != count) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "feature \"%s\": the default is %s; %" PRId64 " elements of type %s are needed",
            wanted->name,
            tensor_shape_text(cadre_tensor_dtype(given), cadre_tensor_rank(given),
                cadre_tensor_dims(given), shape),
            count, cadre_dtype_name(wanted->dtype));
    }
    CADRE_TRY(tensor_require_host(given, "cadre_example_parser_create", error));
    return tensor_from_data(wanted->dtype, sequence ? 0 : wanted->rank, wanted->dims,
        cadre_tensor_const_data(given), &wanted->default_value, error);
}

static cadre_status add_feature(
    cadre_example_parser *parser, const cadre_feature *feature, struct cadre_error *error)
{
    if (feature->name == NULL) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "feature %" PRIu32 " has no name", parser->count);
    }
    CADRE_TRY(check_kind(feature, error));
    size_t name_bytes = strlen(feature->name);
    size_t slot = find_slot(parser, (const uint8_t *)feature->name, name_bytes);
    if (parser->slots[slot] != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "feature \"%s\" is described twice, as number %d and number %" PRIu32, feature->name,
            parser->slots[slot] - 1, parser->count);
    }
    struct wanted_feature *wanted = &parser->wanted[parser->count];
    *wanted = (struct wanted_feature){
        .name = fault_point("input.example") ? NULL : strdup(feature->name),
        .name_bytes = name_bytes,
        .kind = feature->kind,
        .dtype = feature->dtype,
        .holds = feature->dtype == CADRE_STRING ? EXAMPLE_STRINGS
                 : feature->dtype == CADRE_F32  ? EXAMPLE_FLOATS
                                                : EXAMPLE_INTS,
        .rank = feature->rank,
    };
    if (wanted->name == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a feature's name");
    }
    parser->count++;
    parser->slots[slot] = (uint8_t)parser->count;
    memcpy(wanted->dims, feature->dims, feature->rank * sizeof feature->dims[0]);
    cadre_status status = tensor_shape_check(
        wanted->dtype, wanted->rank, wanted->dims, &wanted->count, &wanted->value_bytes, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "feature \"%s\"", feature->name);
    }
    if (wanted->kind == CADRE_FEATURE_SEQUENCE && wanted->count == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "feature \"%s\" is a SEQUENCE of values without elements, so their number is "
            "undefined; give its values a shape with elements",
            feature->name);
    }
    return feature->default_value == NULL ? CADRE_OK
                                          : take_default(wanted, feature->default_value, error);
}

static cadre_status example_parser_create(const cadre_feature features[], size_t count,
    cadre_example_parser **ret_parser, struct cadre_error *error)
{
    CADRE_TRY(argument_require(ret_parser, "cadre_example_parser_create", "ret_parser", error));
    *ret_parser = NULL;
    CADRE_TRY(argument_require(features, "cadre_example_parser_create", "features", error));
    if (count < 1 || count > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "an example of %zu features is wanted; 1 to %d can be had", count,
            CADRE_ELEMENT_TENSORS_MAX);
    }
    cadre_example_parser *parser = fault_point("input.example") ? NULL : calloc(1, sizeof *parser);
    if (parser == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an example parser");
    }
    for (size_t i = 0; i < count; i++) {
        cadre_status status = add_feature(parser, &features[i], error);
        if (status != CADRE_OK) {
            cadre_example_parser_release(parser);
            return status;
        }
    }
    *ret_parser = parser;
    return CADRE_OK;
}

cadre_status cadre_example_parser_create(
    const cadre_feature features[], size_t count, cadre_example_parser **ret_parser)
{
    struct cadre_error error = {0};
    cadre_status status = example_parser_create(features, count, ret_parser, &error);
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}

void cadre_example_parser_release(cadre_example_parser *parser)
{
    if (parser == NULL) {
        return;
    }
    for (uint32_t i = 0; i < parser->count; i++) {
        free(parser->wanted[i].name);
        cadre_tensor_release(parser->wanted[i].default_value);
    }
    free(parser);
}

/* The shape of one value behind `unknown` dimensions that differ. */
static void add_spec(
    cadre_element_spec *spec, const struct wanted_feature *wanted, uint32_t unknown)
{
    cadre_tensor_spec *tensor = &spec->tensors[spec->count++];
    *tensor = (cadre_tensor_spec){.dtype = wanted->dtype, .rank = wanted->rank + unknown};
    for (uint32_t axis = 0; axis < unknown; axis++) {
        tensor->dims[axis] = CADRE_DIMENSION_ANY;
    }
    memcpy(tensor->dims + unknown, wanted->dims, wanted->rank * sizeof wanted->dims[0]);
}

/* Features are components of that name, and those that are several have parts. Features may have
 * names that make these no names of components: then there are none. */
static cadre_status name_components(const cadre_example_parser *parser, bool batch,
    cadre_element_spec *spec, struct cadre_error *error)
{
    struct names_builder names = {0};
    for (uint32_t i = 0; i < parser->count; i++) {
        const struct wanted_feature *wanted = &parser->wanted[i];
        if (wanted->kind == CADRE_FEATURE_SPARSE) {
            names_builder_add_sparse(&names, wanted->name);
        } else if (batch && wanted->kind == CADRE_FEATURE_VARYING) {
            names_builder_add_ragged(&names, wanted->name);
        } else {
            names_builder_add(&names, wanted->name, NULL);
        }
    }
    cadre_status status = names_builder_intern(&names, "example", &spec->names, error);
    return status == CADRE_INVALID_ARGUMENT ? CADRE_OK : status;
}

/* Indices, values and dense shape of `rank` dimensions. */
static void add_sparse_spec(
    cadre_element_spec *spec, const struct wanted_feature *wanted, int64_t rank)
{
    spec->tensors[spec->count++] =
        (cadre_tensor_spec){.dtype = CADRE_I64, .rank = 2, .dims = {CADRE_DIMENSION_ANY, rank}};
    add_spec(spec, wanted, 1);
    spec->tensors[spec->count++] = (cadre_tensor_spec){
        .dtype = CADRE_I64, .rank = 1, .dims = {rank}, .composite = CADRE_COMPOSITE_SPARSE};
}

cadre_status example_check_components(
    const cadre_example_parser *parser, bool batch, struct cadre_error *error)
{
    uint32_t components = 0;
    for (uint32_t i = 0; i < parser->count; i++) {
        const cadre_feature_kind kind = parser->wanted[i].kind;
        components += kind == CADRE_FEATURE_SPARSE             ? 3
                      : kind == CADRE_FEATURE_VARYING && batch ? 2
                                                               : 1;
    }
    return components <= CADRE_ELEMENT_TENSORS_MAX
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "%s of these %" PRIu32 " features has %" PRIu32
                     " components, two for each VARYING one of a batch and three for each SPARSE "
                     "one; an element has at most %d, so ask for fewer",
                     batch ? "a batch" : "an example", parser->count, components,
                     CADRE_ELEMENT_TENSORS_MAX);
}

/* What the components look like, without names. Errors as above. */
static cadre_status example_spec(const cadre_example_parser *parser, bool batch,
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    *ret_spec = (cadre_element_spec){0};
    CADRE_TRY(example_check_components(parser, batch, error));
    for (uint32_t i = 0; i < parser->count; i++) {
        const struct wanted_feature *wanted = &parser->wanted[i];
        const uint32_t rows = batch ? 1 : 0;
        switch (wanted->kind) {
        case CADRE_FEATURE_FIXED:
            add_spec(ret_spec, wanted, rows);
            break;
        case CADRE_FEATURE_SEQUENCE:
            add_spec(ret_spec, wanted, rows + 1);
            break;
        case CADRE_FEATURE_SPARSE:
            add_sparse_spec(ret_spec, wanted, rows + 1);
            break;
        case CADRE_FEATURE_VARYING:
            add_spec(ret_spec, wanted, 1);
            if (batch) {
                ret_spec->tensors[ret_spec->count++] = (cadre_tensor_spec){.dtype = CADRE_I64,
                    .rank = 1,
                    .dims = {CADRE_DIMENSION_ANY},
                    .composite = CADRE_COMPOSITE_RAGGED};
            }
            break;
        }
    }
    return CADRE_OK;
}

static cadre_status publish_spec(const cadre_example_parser *parser, bool batch,
    const char *function, cadre_element_spec *ret_spec)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(parser, function, "parser", &error);
    status = status != CADRE_OK ? status : argument_require(ret_spec, function, "ret_spec", &error);
    status = status != CADRE_OK ? status : example_spec(parser, batch, ret_spec, &error);
    status = status != CADRE_OK ? status : name_components(parser, batch, ret_spec, &error);
    return status == CADRE_OK ? CADRE_OK : cadre_error_publish(&error);
}

cadre_status cadre_example_parser_spec(
    const cadre_example_parser *parser, cadre_element_spec *ret_spec)
{
    return publish_spec(parser, false, __func__, ret_spec);
}

cadre_status cadre_example_parser_batch_spec(
    const cadre_example_parser *parser, cadre_element_spec *ret_spec)
{
    return publish_spec(parser, true, __func__, ret_spec);
}

cadre_status example_damaged(
    const struct example_fault *fault, const void *bytes, size_t size, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "this is no example: at byte %td of %zu %s; if the record is none, do not parse it",
        fault->at - (const uint8_t *)bytes, size, fault->what);
}

cadre_status example_find(const cadre_example_parser *parser, const void *bytes, size_t size,
    struct example_feature found[CADRE_ELEMENT_TENSORS_MAX], struct cadre_error *error)
{
    struct example_reader reader;
    struct example_feature feature;
    memset(found, 0, parser->count * sizeof found[0]);
    example_reader_init(&reader, bytes, size);
    while (example_reader_next(&reader, &feature)) {
        uint8_t number = parser->slots[find_slot(parser, feature.name, feature.name_bytes)];
        if (number != 0) {
            found[number - 1] = feature;
        }
    }
    return reader.fault.what == NULL ? CADRE_OK
                                     : example_damaged(&reader.fault, bytes, size, error);
}
