/* SPDX-License-Identifier: Apache-2.0
 * The transformation that puts elements of different lengths one behind the other, with row splits.
 * Which components that are the elements' spec says, as in TensorFlow: those of an unknown size. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/composite/composite.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/input/batching/uneven_batch.h"

struct ragged_dataset {
    struct uneven_batch batch;
    pthread_mutex_t lock; /* guards the one below while it is found */
    atomic_bool found;
    uint32_t count; /* of the components of elements */
    bool is_ragged[CADRE_ELEMENT_TENSORS_MAX];
};

static void ragged_destroy(cadre_dataset *self)
{
    pthread_mutex_destroy(&((struct ragged_dataset *)self)->lock);
}

/* Whether a component of this spec becomes ragged. */
static cadre_status look_at(
    const cadre_tensor_spec *spec, uint32_t i, bool *ret_ragged, struct cadre_error *error)
{
    *ret_ragged = spec->rank > 0 && spec->dims[0] == CADRE_DIMENSION_ANY;
    for (uint32_t axis = 1; axis < spec->rank; axis++) {
        if (spec->dims[axis] == CADRE_DIMENSION_ANY) {
            char shape[TENSOR_SHAPE_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "ragged_batch: component %" PRIu32
                " is %s; only its first dimension may be one of any size, so pad the others "
                "(cadre_dataset_padded_batch)",
                i, tensor_shape_text(spec->dtype, spec->rank, spec->dims, shape));
        }
    }
    if (!*ret_ragged && spec->rank == CADRE_RANK_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "ragged_batch: component %" PRIu32 " has %d dimensions already, which is the limit", i,
            CADRE_RANK_MAX);
    }
    return CADRE_OK;
}

static cadre_status ragged_batch_look(
    struct ragged_dataset *ragged, const cadre_element_spec *spec, struct cadre_error *error)
{
    CADRE_TRY(element_spec_check_plain(spec, "ragged_batch", error));
    uint32_t components = spec->count;
    for (uint32_t i = 0; i < spec->count; i++) {
        CADRE_TRY(look_at(&spec->tensors[i], i, &ragged->is_ragged[i], error));
        components += ragged->is_ragged[i] ? 1 : 0;
    }
    if (components > CADRE_ELEMENT_TENSORS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "ragged_batch: batches of %" PRIu32
            " components, two for each ragged one; an element has at most %d",
            components, CADRE_ELEMENT_TENSORS_MAX);
    }
    ragged->count = spec->count;
    atomic_store_explicit(&ragged->found, true, memory_order_release);
    return CADRE_OK;
}

static cadre_status need_kinds(struct ragged_dataset *ragged, struct cadre_error *error)
{
    cadre_element_spec spec = {0};
    if (atomic_load_explicit(&ragged->found, memory_order_acquire)) {
        return CADRE_OK;
    }
    CADRE_TRY(dataset_spec(ragged->batch.base.input, &spec, error));
    pthread_mutex_lock(&ragged->lock);
    cadre_status status =
        atomic_load(&ragged->found) ? CADRE_OK : ragged_batch_look(ragged, &spec, error);
    pthread_mutex_unlock(&ragged->lock);
    return status;
}

/* --- a batch --- */

static cadre_status splits_of(cadre_tensor *const tensors[], size_t count,
    cadre_tensor **ret_row_splits, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT int64_t *lengths = calloc(count, sizeof lengths[0]);
    if (lengths == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu lengths", count);
    }
    for (size_t i = 0; i < count; i++) {
        lengths[i] = cadre_tensor_rows(tensors[i]);
    }
    return ragged_splits_of(lengths, (int64_t)count, ret_row_splits, error);
}

/* What they become is put behind what the batch has. */
static cadre_status add_component(const struct ragged_dataset *ragged, uint32_t i,
    cadre_tensor *const tensors[], size_t count, cadre_element *batch, struct cadre_error *error)
{
    if (!ragged->is_ragged[i]) {
        CADRE_TRY(tensor_stack(tensors, count, &batch->tensors[batch->count], error));
        batch->count++;
        return CADRE_OK;
    }
    CADRE_TRY(tensor_concat_rows(tensors, count, &batch->tensors[batch->count], error));
    batch->count++;
    CADRE_TRY(splits_of(tensors, count, &batch->tensors[batch->count], error));
    batch->count++;
    return CADRE_OK;
}

static cadre_status ragged_stack(struct uneven_batch *batch, const struct element_stack *rows,
    cadre_element *ret_element, struct cadre_error *error)
{
    struct ragged_dataset *ragged = (struct ragged_dataset *)batch;
    CADRE_FREE_AT_EXIT cadre_tensor **tensors = calloc(rows->count, sizeof tensors[0]);
    CADRE_TRY(need_kinds(ragged, error));
    if (tensors == NULL || rows->elements[0].count != ragged->count) {
        return cadre_error_set(error,
            tensors == NULL ? CADRE_RESOURCE_EXHAUSTED : CADRE_INVALID_ARGUMENT,
            "ragged_batch: %zu elements of %" PRIu32 " components, %s", rows->count,
            rows->elements[0].count, tensors == NULL ? "no memory" : "which were said to differ");
    }
    for (uint32_t i = 0; i < ragged->count; i++) {
        for (size_t k = 0; k < rows->count; k++) {
            tensors[k] = rows->elements[k].tensors[i];
        }
        cadre_status status = add_component(ragged, i, tensors, rows->count, ret_element, error);
        if (status != CADRE_OK) {
            cadre_element_release(ret_element);
            return cadre_error_wrap(error, status,
                "ragged_batch: component %" PRIu32
                " (sizes that differ are declared in cadre_map_options.output)",
                i);
        }
    }
    return CADRE_OK;
}

/* --- what it is --- */

/* Of a spec that is emptied for it. */
static cadre_status make_names(const struct ragged_dataset *ragged, const char *const names[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    struct names_builder made = {0};
    *ret_spec = (cadre_element_spec){.count = 0};
    if (names == NULL) {
        return CADRE_OK;
    }
    for (uint32_t i = 0; i < ragged->count; i++) {
        if (ragged->is_ragged[i]) {
            names_builder_add_ragged(&made, names[i]);
        } else {
            names_builder_add(&made, names[i], NULL);
        }
    }
    return names_builder_intern(&made, "ragged_batch", &ret_spec->names, error);
}

static cadre_status ragged_spec(cadre_dataset *self, const cadre_element_spec inputs[],
    cadre_element_spec *ret_spec, struct cadre_error *error)
{
    struct ragged_dataset *ragged = (struct ragged_dataset *)self;
    const int64_t rows = uneven_rows(self);
    CADRE_TRY(need_kinds(ragged, error));
    CADRE_TRY(make_names(ragged, inputs[0].names, ret_spec, error));
    for (uint32_t i = 0; i < ragged->count; i++) {
        const cadre_tensor_spec *from = &inputs[0].tensors[i];
        cadre_tensor_spec *to = &ret_spec->tensors[ret_spec->count++];
        *to = *from;
        if (!ragged->is_ragged[i]) {
            to->rank = from->rank + 1;
            to->dims[0] = rows;
            memcpy(to->dims + 1, from->dims, from->rank * sizeof to->dims[0]);
            continue;
        }
        ret_spec->tensors[ret_spec->count++] = (cadre_tensor_spec){
            .dtype = CADRE_I64,
            .rank = 1,
            .dims = {rows == CADRE_DIMENSION_ANY ? CADRE_DIMENSION_ANY : rows + 1},
            .composite = CADRE_COMPOSITE_RAGGED,
        };
    }
    return CADRE_OK;
}

static cadre_dataset *ragged_rebuild(const cadre_dataset *self, cadre_dataset *const inputs[])
{
    const struct uneven_batch *batch = (const struct uneven_batch *)self;
    return cadre_dataset_ragged_batch(inputs[0], batch->size, batch->drop_remainder);
}

static void ragged_describe(const cadre_dataset *self, struct description *text)
{
    const struct uneven_batch *batch = (const struct uneven_batch *)self;
    description_add(text, "%" PRId64 "%s", batch->size,
        batch->drop_remainder ? ", no shorter one at the end" : "");
}

static const struct dataset_ops ragged_ops = {
    .name = "ragged_batch",
    .destroy = ragged_destroy,
    .rebuild = ragged_rebuild,
    .describe = ragged_describe,
    .spec = ragged_spec,
    .cardinality = uneven_cardinality,
    .at = uneven_at,
    .ids_at = uneven_ids_at,
    .rows = uneven_count_rows,
    .at_rows = uneven_at_rows,
    .batch_size = uneven_size,
    .iterate = uneven_iterate,
};

cadre_dataset *cadre_dataset_ragged_batch(cadre_dataset *data, int64_t size, bool drop_remainder)
{
    struct cadre_error error = {0};
    if (!dataset_usable(data)) {
        return data;
    }
    if (uneven_check_size("ragged_batch", size, &error) != CADRE_OK) {
        return dataset_failed(data, &error);
    }
    struct ragged_dataset *ragged = dataset_new(sizeof *ragged, &ragged_ops, data);
    if (ragged == NULL) {
        return NULL;
    }
    ragged->batch.stack = ragged_stack;
    ragged->batch.size = size;
    ragged->batch.drop_remainder = drop_remainder;
    ragged->batch.rows_alone = true;
    pthread_mutex_init(&ragged->lock, NULL);
    return &ragged->batch.base;
}
