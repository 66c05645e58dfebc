/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets.h"

#include "composites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX (INT64_C(1) << 53)
#define ROWS_MAX   (1 << 24) /* of zeros */

static void release_dataset(void *data)
{
    cadre_dataset_release(data);
}

/* --- elements one by one --- */

struct elements {
    const json_t *list;
    cadre_dtype reals;
    bool has_reals; /* integers beside reals are reals */
};

struct walk {
    const struct elements *elements;
    size_t next;
};

static bool element_tensor(
    const struct elements *elements, const json_t *element, cadre_tensor **ret_tensor)
{
    return elements->has_reals ? value_to_real_tensor(element, elements->reals, ret_tensor)
                               : value_to_tensor(element, elements->reals, ret_tensor);
}

static cadre_status begin_walk(uint64_t epoch, void **ret_pass, void *user)
{
    (void)epoch;
    struct walk *walk = calloc(1, sizeof *walk);
    *ret_pass = walk;
    if (walk == NULL) {
        return cadre_fail(CADRE_RESOURCE_EXHAUSTED, "no memory");
    }
    walk->elements = user;
    return CADRE_OK;
}

static cadre_status next_element(void *pass, cadre_element *ret_out, void *user)
{
    struct walk *walk = pass;
    (void)user;
    const json_t *element = json_array_get(walk->elements->list, walk->next++);
    if (element == NULL) {
        return cadre_fail(CADRE_OUT_OF_RANGE, "the end");
    }
    ret_out->count = 1;
    return element_tensor(walk->elements, element, &ret_out->tensors[0])
               ? CADRE_OK
               : cadre_fail(CADRE_INTERNAL, "an element that is no tensor");
}

static void end_walk(void *pass, void *user)
{
    (void)user;
    free(pass);
}

static bool has_real(const json_t *value)
{
    for (size_t i = 0; json_is_array(value) && i < json_array_size(value); i++) {
        if (has_real(json_array_get(value, i))) {
            return true;
        }
    }
    return json_is_real(value);
}

/* What all elements have in common. An empty list has no type of its own. */
static bool common_spec(
    struct conformance_case *self, const struct elements *elements, cadre_tensor_spec *spec)
{
    *spec = (cadre_tensor_spec){.rank = 1, .dims = {CADRE_DIMENSION_ANY}};
    for (size_t i = 0; i < json_array_size(elements->list); i++) {
        cadre_tensor *tensor = NULL;
        if (!element_tensor(elements, json_array_get(elements->list, i), &tensor)) {
            return case_skip(self, "element %zu is no tensor", i);
        }
        cadre_dtype dtype = cadre_tensor_dtype(tensor);
        uint32_t rank = cadre_tensor_rank(tensor);
        bool empty = cadre_tensor_count(tensor) == 0;
        bool differs = spec->dtype != CADRE_DTYPE_NONE && !empty &&
                       (spec->dtype != dtype || spec->rank != rank);
        for (uint32_t axis = 0; axis < rank && !empty && !differs; axis++) {
            int64_t dim = cadre_tensor_dim(tensor, axis);
            bool first = spec->dtype == CADRE_DTYPE_NONE;
            bool keeps = axis > 0 && (first || spec->dims[axis] == dim);
            spec->dims[axis] = keeps ? dim : CADRE_DIMENSION_ANY;
        }
        if (!empty) {
            spec->dtype = dtype;
            spec->rank = rank;
        }
        cadre_tensor_release(tensor);
        if (differs) {
            return case_skip(self, "element %zu is of another type than those before it", i);
        }
    }
    spec->dtype = spec->dtype == CADRE_DTYPE_NONE ? CADRE_I64 : spec->dtype;
    return true;
}

bool dataset_of_elements(struct conformance_case *self, const json_t *elements, cadre_dtype reals,
    cadre_dataset **ret_data)
{
    cadre_element_spec spec = {.count = 1};
    if (!json_is_array(elements)) {
        return case_skip(self, "elements are no list");
    }
    struct elements *user = case_alloc(self, 1, sizeof *user);
    *user = (struct elements){.list = elements, .reals = reals, .has_reals = has_real(elements)};
    if (!common_spec(self, user, &spec.tensors[0])) {
        return false;
    }
    const cadre_generator generator = {
        .output = &spec, .begin = begin_walk, .next = next_element, .end = end_walk, .user = user};
    *ret_data = cadre_dataset_generator(&generator);
    return true;
}

bool dataset_of_slices(struct conformance_case *self, const json_t *values, cadre_dtype reals,
    cadre_dataset **ret_data)
{
    cadre_tensor *tensor = NULL;
    if (!json_is_array(values)) {
        return case_skip(self, "the values of slices are no list");
    }
    if (!value_to_tensor(values, reals, &tensor)) {
        return dataset_of_elements(self, values, reals, ret_data);
    }
    *ret_data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    return true;
}

/* --- rows of zeros --- */

struct rows {
    cadre_tensor_spec spec;
};

static cadre_status next_zeros(void *pass, cadre_element *ret_out, void *user)
{
    (void)pass;
    const struct rows *rows = user;
    int64_t dims[CADRE_RANK_MAX];
    for (uint32_t axis = 0; axis < rows->spec.rank; axis++) {
        dims[axis] = rows->spec.dims[axis] < 0 ? 1 : rows->spec.dims[axis];
    }
    ret_out->count = 1;
    return cadre_tensor_create(rows->spec.dtype, rows->spec.rank, dims, &ret_out->tensors[0]);
}

static bool row_shape(struct conformance_case *self, const json_t *source, cadre_dtype dtype,
    cadre_tensor_spec *ret_spec)
{
    const json_t *shape = json_object_get(source, "row_shape");
    *ret_spec = (cadre_tensor_spec){.dtype = dtype};
    if (!json_is_array(shape) || json_array_size(shape) >= CADRE_RANK_MAX) {
        return case_skip(self, "\"row_shape\" is no shape");
    }
    for (size_t axis = 0; axis < json_array_size(shape); axis++) {
        const json_t *dim = json_array_get(shape, axis);
        if (!json_is_null(dim) && (!json_is_integer(dim) || json_integer_value(dim) < 0)) {
            return case_skip(self, "\"row_shape\" is no shape");
        }
        ret_spec->dims[ret_spec->rank++] =
            json_is_null(dim) ? CADRE_DIMENSION_ANY : json_integer_value(dim);
    }
    return true;
}

static bool endless_rows(struct conformance_case *self, const json_t *source, cadre_dtype reals,
    cadre_dataset **ret_data)
{
    struct rows *rows = case_alloc(self, 1, sizeof *rows);
    if (!row_shape(self, source, reals, &rows->spec)) {
        return false;
    }
    const cadre_element_spec output = {.count = 1, .tensors[0] = rows->spec};
    const cadre_generator generator = {.output = &output,
        .next = next_zeros,
        .cardinality = CADRE_CARDINALITY_INFINITE,
        .user = rows};
    *ret_data = cadre_dataset_generator(&generator);
    return true;
}

static bool zeros(struct conformance_case *self, const json_t *source, cadre_dtype reals,
    cadre_dataset **ret_data)
{
    cadre_tensor_spec spec;
    json_int_t rows = 0;
    if (!row_shape(self, source, reals, &spec) ||
        !case_number(self, source, "rows", 0, ROWS_MAX, 0, &rows)) {
        return false;
    }
    int64_t dims[CADRE_RANK_MAX] = {rows};
    memcpy(dims + 1, spec.dims, spec.rank * sizeof dims[0]);
    cadre_tensor *tensor = NULL;
    if (!case_ok(self, cadre_tensor_create(reals, spec.rank + 1, dims, &tensor), "zeros")) {
        return false;
    }
    *ret_data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    return true;
}

/* --- sources --- */

static bool range(struct conformance_case *self, const json_t *source, cadre_dataset **ret_data)
{
    json_int_t start = 0;
    json_int_t stop = 0;
    json_int_t step = 1;
    if (!json_is_integer(json_object_get(source, "stop"))) {
        return case_skip(self, "a range without a stop");
    }
    if (!case_number(self, source, "start", -NUMBER_MAX, NUMBER_MAX, 0, &start) ||
        !case_number(self, source, "stop", -NUMBER_MAX, NUMBER_MAX, 0, &stop) ||
        !case_number(self, source, "step", -NUMBER_MAX, NUMBER_MAX, 1, &step)) {
        return false;
    }
    *ret_data = cadre_dataset_range(start, stop, step);
    return true;
}

static bool constant(struct conformance_case *self, const json_t *source, cadre_dtype reals,
    cadre_dataset **ret_data)
{
    cadre_tensor *tensor = NULL;
    if (!value_to_tensor(json_object_get(source, "value"), reals, &tensor)) {
        return case_skip(self, "the constant is no tensor");
    }
    *ret_data = cadre_dataset_tensors(&tensor, 1);
    cadre_tensor_release(tensor);
    return true;
}

static bool zip(struct conformance_case *self, const json_t *source, cadre_dtype reals,
    struct case_dataset *ret_dataset)
{
    const json_t *inputs = json_object_get(source, "inputs");
    cadre_dataset *parts[CADRE_ELEMENT_TENSORS_MAX];
    size_t count = json_array_size(inputs);
    size_t used = 1;
    if (count == 0 || count > CADRE_ELEMENT_TENSORS_MAX) {
        return case_skip(self, "a zip of %zu datasets", count);
    }
    ret_dataset->structure[0] = '(';
    for (size_t i = 0; i < count; i++) {
        struct case_dataset part;
        if (!dataset_build(self, json_array_get(inputs, i), reals, &part)) {
            return false;
        }
        size_t length = strlen(part.structure);
        if (used + length + 2 > STRUCTURE_BYTES) {
            return case_skip(self, "a structure of too many parts");
        }
        memcpy(ret_dataset->structure + used, part.structure, length);
        used += length;
        parts[i] = part.data;
    }
    memcpy(ret_dataset->structure + used, ")", 2);
    for (size_t i = 0; i < count; i++) {
        cadre_dataset_retain(parts[i]);
    }
    ret_dataset->data = cadre_dataset_zip(parts, count);
    return true;
}

static bool build_source(struct conformance_case *self, const json_t *source, cadre_dtype reals,
    struct case_dataset *ret_dataset)
{
    const char *kind = json_string_value(json_object_get(source, "kind"));
    static const char *const known[] = {"kind", "start", "stop", "step", "values", "value",
        "inputs", "num_files", "records_per_file", "files", "reader", "batches", "rows",
        "row_shape", "dtype", NULL};
    memcpy(ret_dataset->structure, "x", 2);
    if (kind == NULL) {
        return case_skip(self, "a dataset without a kind of source");
    }
    if (!case_knows(self, source, known)) {
        return false;
    }
    cadre_dataset **data = &ret_dataset->data;
    if (strcmp(kind, "range") == 0) {
        return range(self, source, data);
    }
    if (strcmp(kind, "slices") == 0) {
        return dataset_of_slices(self, json_object_get(source, "values"), reals, data);
    }
    if (strcmp(kind, "constant") == 0) {
        return constant(self, source, reals, data);
    }
    if (strcmp(kind, "zip") == 0) {
        return zip(self, source, reals, ret_dataset);
    }
    if (strcmp(kind, "record_files") == 0) {
        return dataset_of_record_files(self, source, data);
    }
    if (strcmp(kind, "batches") == 0) {
        return dataset_of_elements(self, json_object_get(source, "batches"), reals, data);
    }
    if (strcmp(kind, "zeros") == 0) {
        return zeros(self, source, reals, data);
    }
    if (strcmp(kind, "generator") == 0) {
        return endless_rows(self, source, reals, data);
    }
    return case_skip(self, "a source of the kind \"%s\" is not known", kind);
}

/* --- transformations --- */

static bool shard(struct conformance_case *self, const json_t *op, cadre_dataset **data)
{
    const json_t *num = json_object_get(op, "num");
    json_int_t shards = CADRE_SHARD_BY_HINT;
    json_int_t index = 0;
    bool hint = json_is_string(num) && strcmp(json_string_value(num), "SHARD_HINT") == 0;
    if (!hint && !json_is_integer(num)) {
        return case_skip(self, "a shard without a number");
    }
    if ((!hint && !case_number(self, op, "num", -NUMBER_MAX, NUMBER_MAX, 0, &shards)) ||
        !case_number(self, op, "index", -NUMBER_MAX, NUMBER_MAX, 0, &index)) {
        return false;
    }
    if (!hint && shards == CADRE_SHARD_BY_HINT) {
        return case_skip(self, "a shard of -1, which is the mark of HINT");
    }
    *data = cadre_dataset_shard(*data, shards, index);
    return true;
}

static bool shuffle(struct conformance_case *self, const json_t *op, cadre_dataset **data)
{
    json_int_t buffer = 0;
    json_int_t seed = 0;
    if (!case_number(self, op, "buffer", 1, NUMBER_MAX, 1, &buffer) ||
        !case_number(self, op, "seed", 0, NUMBER_MAX, 0, &seed)) {
        return false;
    }
    *data = cadre_dataset_shuffle(*data, buffer, (uint64_t)seed, NULL);
    return true;
}

static bool concatenate(
    struct conformance_case *self, const json_t *op, cadre_dtype reals, cadre_dataset **data)
{
    struct case_dataset more;
    if (!dataset_build(self, json_object_get(op, "dataset"), reals, &more)) {
        return false;
    }
    *data = cadre_dataset_concatenate(*data, cadre_dataset_retain(more.data));
    return true;
}

static bool enumerate(struct conformance_case *self, const json_t *op, struct case_dataset *dataset)
{
    json_int_t start = 0;
    char inner[STRUCTURE_BYTES];
    memcpy(inner, dataset->structure, sizeof inner);
    if (!case_number(self, op, "start", -NUMBER_MAX, NUMBER_MAX, 0, &start)) {
        return false;
    }
    if (strlen(inner) + 4 > STRUCTURE_BYTES) {
        return case_skip(self, "a structure of too many parts");
    }
    snprintf(dataset->structure, STRUCTURE_BYTES, "(x%.*s)", STRUCTURE_BYTES - 4, inner);
    dataset->data = cadre_dataset_enumerate(dataset->data, start);
    return true;
}

/* Those with one number. False: none of them, or not known (then the case has an end). */
static bool apply_counted(struct conformance_case *self, const char *name, const json_t *op,
    cadre_dataset **data, bool *ret_known)
{
    static const struct {
        const char *name;
        const char *key;
        cadre_dataset *(*apply)(cadre_dataset *, int64_t);
        json_int_t otherwise; /* -2: it must be there */
    } counted[] = {
        {"repeat", "count", cadre_dataset_repeat, CADRE_REPEAT_FOREVER},
        {"take", "count", cadre_dataset_take, -2},
        {"skip", "count", cadre_dataset_skip, -2},
        {"prefetch", "buffer", cadre_dataset_prefetch, 1},
        {"assert_cardinality", "count", cadre_dataset_assert_cardinality, -2},
    };
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        if (strcmp(counted[i].name, name) != 0) {
            continue;
        }
        json_int_t count = 0;
        *ret_known = true;
        if (!case_number(self, op, counted[i].key, -1, NUMBER_MAX, counted[i].otherwise, &count)) {
            return false;
        }
        if (count == -2) {
            return case_skip(self, "\"%s\" without \"%s\"", name, counted[i].key);
        }
        *data = counted[i].apply(*data, count);
        return true;
    }
    return true;
}

static bool batch(
    struct conformance_case *self, const char *name, const json_t *op, cadre_dataset **data)
{
    json_int_t size = 0;
    const json_t *drops = json_object_get(op, "drop_remainder");
    if (!case_number(self, op, "size", -NUMBER_MAX, NUMBER_MAX, 0, &size)) {
        return false;
    }
    if (drops != NULL && !json_is_boolean(drops)) {
        return case_skip(self, "\"drop_remainder\" is no truth value");
    }
    bool drop = json_is_true(drops);
    *data = name[0] == 'b' ? cadre_dataset_batch(*data, size, drop)
                           : cadre_dataset_padded_batch(*data, size, NULL, drop);
    return true;
}

static bool apply(struct conformance_case *self, const json_t *op, cadre_dtype reals,
    struct case_dataset *dataset)
{
    static const char *const known[] = {"op", "size", "drop_remainder", "count", "num", "index",
        "fn", "buffer", "start", "dataset", "seed", "row_shape", NULL};
    const char *name = json_string_value(json_object_get(op, "op"));
    const char *function = json_string_value(json_object_get(op, "fn"));
    bool counted = false;
    if (name == NULL) {
        return case_skip(self, "an operation without a name");
    }
    if (!case_knows(self, op, known) || !apply_counted(self, name, op, &dataset->data, &counted) ||
        counted) {
        return counted && self->verdict == VERDICT_PASSED;
    }
    bool known_here = false;
    if (!composites_apply(self, name, op, dataset, &known_here) || known_here) {
        return self->verdict == VERDICT_PASSED;
    }
    if (strcmp(name, "batch") == 0 || strcmp(name, "padded_batch") == 0) {
        return batch(self, name, op, &dataset->data);
    }
    if (strcmp(name, "shard") == 0) {
        return shard(self, op, &dataset->data);
    }
    if (strcmp(name, "map") == 0 && function != NULL) {
        return dataset_map_expression(self, function, reals, dataset);
    }
    if (strcmp(name, "unique") == 0) {
        dataset->data = cadre_dataset_unique(dataset->data);
        return true;
    }
    if (strcmp(name, "enumerate") == 0) {
        return enumerate(self, op, dataset);
    }
    if (strcmp(name, "concatenate") == 0) {
        return concatenate(self, op, reals, &dataset->data);
    }
    if (strcmp(name, "unbatch") == 0) {
        composites_unbatch(dataset->structure);
        dataset->data = cadre_dataset_unbatch(dataset->data);
        return true;
    }
    if (strcmp(name, "cache") == 0) {
        dataset->data = cadre_dataset_cache(dataset->data, NULL);
        return true;
    }
    if (strcmp(name, "shuffle") == 0) {
        return shuffle(self, op, &dataset->data);
    }
    return case_skip(self, "the operation \"%s\" is not known", name);
}

bool dataset_build(struct conformance_case *self, const json_t *description, cadre_dtype reals,
    struct case_dataset *ret_dataset)
{
    static const char *const known[] = {"source", "ops", NULL};
    *ret_dataset = (struct case_dataset){0};
    if (!case_knows(self, description, known)) {
        return false;
    }
    const json_t *ops = json_object_get(description, "ops");
    if (ops != NULL && !json_is_array(ops)) {
        return case_skip(self, "\"ops\" is no list");
    }
    bool good = build_source(self, json_object_get(description, "source"), reals, ret_dataset);
    for (size_t i = 0; good && i < json_array_size(ops); i++) {
        good = apply(self, json_array_get(ops, i), reals, ret_dataset);
    }
    case_keep(self, ret_dataset->data, release_dataset);
    return good;
}
