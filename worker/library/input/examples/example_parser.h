/* SPDX-License-Identifier: Apache-2.0
 * What is wanted of an example, prepared for finding it fast. */
#ifndef CADRE_WORKER_INPUT_EXAMPLES_EXAMPLE_PARSER_H
#define CADRE_WORKER_INPUT_EXAMPLES_EXAMPLE_PARSER_H

#include <stdbool.h>

#include "cadre/example.h"
#include "common/base/error.h"
#include "worker/library/input/examples/example_wire.h"

#define EXAMPLE_TABLE_SLOTS 128

struct wanted_feature {
    char *name;
    size_t name_bytes;
    cadre_feature_kind kind;
    enum example_kind holds; /* what a feature of `dtype` holds in an example */
    cadre_dtype dtype;
    uint32_t rank;
    int64_t dims[CADRE_RANK_MAX];
    int64_t count;               /* elements of one value: the product of dims */
    size_t value_bytes;          /* of these */
    cadre_tensor *default_value; /* of the shape `dims`, of SEQUENCE a scalar; or NULL */
};

struct cadre_example_parser {
    uint32_t count;
    struct wanted_feature wanted[CADRE_ELEMENT_TENSORS_MAX];
    uint8_t
        slots[EXAMPLE_TABLE_SLOTS]; /* by hash of the name: 1 + number of the feature; 0: none */
};

/* Finds all wanted features in one example, the last of each; those that are missing are zeroed.
 * DATA_LOSS. */
cadre_status example_find(const cadre_example_parser *parser, const void *bytes, size_t size,
    struct example_feature found[CADRE_ELEMENT_TENSORS_MAX], struct cadre_error *error);

/* A damaged example, at a place inside it. */
cadre_status example_damaged(
    const struct example_fault *fault, const void *bytes, size_t size, struct cadre_error *error);

/* INVALID_ARGUMENT: one example, or a batch, has more components than an element. */
cadre_status example_check_components(
    const cadre_example_parser *parser, bool batch, struct cadre_error *error);

#endif
