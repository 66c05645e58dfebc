/* SPDX-License-Identifier: Apache-2.0
 * Batches of elements that differ in shape: what padded, ragged and sparse ones have in common, all
 * but how the elements of one batch are put together. */
#ifndef CADRE_WORKER_INPUT_BATCHING_UNEVEN_BATCH_H
#define CADRE_WORKER_INPUT_BATCHING_UNEVEN_BATCH_H

#include "worker/library/input/node/element_stack.h"
#include "worker/library/input/node/node.h"

struct uneven_batch;

/* Puts at least one element together. On error *ret_element is empty. */
typedef cadre_status (*uneven_stack)(struct uneven_batch *batch, const struct element_stack *rows,
    cadre_element *ret_element, struct cadre_error *error);

/* What the dataset begins with. */
struct uneven_batch {
    cadre_dataset base;
    uneven_stack stack;
    int64_t size;
    bool drop_remainder;
    bool rows_alone; /* rows of a batch look the same without its other rows */
};

/* INVALID_ARGUMENT: the size is below 1. */
cadre_status uneven_check_size(const char *who, int64_t size, struct cadre_error *error);

/* The first dimension of batches: the size where all are full, else CADRE_DIMENSION_ANY. */
int64_t uneven_rows(const cadre_dataset *self);

/* Members of the dataset's table. */
cadre_status uneven_at(cadre_dataset *self, struct element_position position,
    cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);
cadre_status uneven_ids_at(cadre_dataset *self, const struct element_position positions[],
    size_t count, struct id_list *ids, struct cadre_error *error);
int64_t uneven_count_rows(const cadre_dataset *self, struct element_position position);
cadre_status uneven_at_rows(cadre_dataset *self, struct element_position position, int64_t first,
    int64_t count, cadre_element *ret_element, struct id_list *ids, struct cadre_error *error);
cadre_status uneven_iterate(cadre_dataset *self, const struct pass *pass,
    cadre_iterator **ret_iterator, struct cadre_error *error);
int64_t uneven_cardinality(const cadre_dataset *self);
int64_t uneven_size(const cadre_dataset *self);

#endif
