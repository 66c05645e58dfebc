/* SPDX-License-Identifier: Apache-2.0
 * The values of a feature on their way from examples into a tensor. */
#ifndef CADRE_WORKER_INPUT_EXAMPLES_EXAMPLE_BUFFER_H
#define CADRE_WORKER_INPUT_EXAMPLES_EXAMPLE_BUFFER_H

#include <stdbool.h>

#include "worker/library/input/examples/example_parser.h"

/* The bytes that one example lies in. */
struct example_bytes {
    const void *bytes;
    size_t size;
};

/* A tensor to be: of numbers it is there already, of strings it is made at the end, when it is
 * known how long they are. Zeroed: none. */
struct example_buffer {
    cadre_tensor_spec spec;
    cadre_tensor *tensor;  /* of numbers */
    cadre_string *strings; /* of strings; malloc'ed */
    int64_t count;
    bool own_text; /* some strings do not lie in the examples */
};

/* Cells of `wanted`'s type, not set. On error nothing is kept. */
cadre_status example_buffer_create(struct example_buffer *cells,
    const struct wanted_feature *wanted, uint32_t rank, const int64_t dims[],
    struct cadre_error *error);

/* Makes the tensor of cells that are all set. Strings that make up much of the bytes of the
 * examples they come from stay there: `owner`, a tensor that holds these `owner_bytes` bytes, or
 * NULL. */
cadre_status example_buffer_finish(struct example_buffer *cells, cadre_tensor *owner,
    size_t owner_bytes, cadre_tensor **ret_tensor, struct cadre_error *error);

/* Frees what was not finished. */
void example_buffer_clear(struct example_buffer *cells);

/* Sets the cells of one FIXED value, wanted->count from number `first` on, with what was found in
 * an example or the default. */
cadre_status example_buffer_set_fixed(struct example_buffer *cells, int64_t first,
    const struct wanted_feature *wanted, const struct example_feature *found,
    struct example_bytes example, struct cadre_error *error);

/* How many values, each of wanted->count elements, a feature that is not FIXED has. */
cadre_status example_list_length(const struct wanted_feature *wanted,
    const struct example_feature *found, struct example_bytes example, int64_t *ret_length,
    struct cadre_error *error);

/* Sets `length` values of it, as many as example_list_length said, from cell `first` on, and pads
 * them to `padded` values. */
cadre_status example_buffer_set_list(struct example_buffer *cells, int64_t first,
    const struct wanted_feature *wanted, const struct example_feature *found,
    struct example_bytes example, int64_t length, int64_t padded, struct cadre_error *error);

#endif
