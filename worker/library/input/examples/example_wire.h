/* SPDX-License-Identifier: Apache-2.0
 * The bytes of a tf.train.Example, read where they lie: nothing is allocated or copied, and bytes
 * of any origin are safe.
 *
 *     Example  { Features features = 1; }
 *     Features { map<string, Feature> feature = 1; }   entries {key = 1, value = 2}
 *     Feature  { oneof: BytesList = 1, FloatList = 2, Int64List = 3; }   lists {value = 1 ...}
 *
 * As protocol buffers have it, unknown fields are passed over, numbers may be packed or not, a
 * message that comes in parts is their sum, and of several kinds in one Feature the last holds.
 * Stricter: groups, and two values in one entry of the map, are faults. */
#ifndef CADRE_WORKER_INPUT_EXAMPLES_EXAMPLE_WIRE_H
#define CADRE_WORKER_INPUT_EXAMPLES_EXAMPLE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"

/* As the fields of Feature are numbered. */
enum example_kind {
    EXAMPLE_NOTHING = 0,
    EXAMPLE_STRINGS = 1,
    EXAMPLE_FLOATS = 2,
    EXAMPLE_INTS = 3
};

/* What is wrong with the bytes, and where; `what` NULL: nothing. */
struct example_fault {
    const char *what;
    const uint8_t *at;
};

/* One entry of the map, pointing into the bytes. Zeroed: a feature that is missing. */
struct example_feature {
    const uint8_t *name;
    size_t name_bytes;
    enum example_kind kind;
    const uint8_t *lists; /* the Feature from the first list that counts on */
    const uint8_t *end;
};

struct example_reader {
    const uint8_t *at; /* inside a Features message */
    const uint8_t *features_end;
    const uint8_t *end;
    struct example_fault fault;
};

/* The bytes outlive the reader and the features it gives. */
void example_reader_init(struct example_reader *reader, const void *bytes, size_t size);

/* The next feature; false at the end, and at a fault, which is then set. */
bool example_reader_next(struct example_reader *reader, struct example_feature *ret_feature);

/* Counts the values of a feature and writes the first `room` of them to `to`: float, int64_t or
 * cadre_string, by its kind. false: a fault, which is then set. */
bool example_values(const struct example_feature *feature, void *to, uint64_t room,
    uint64_t *ret_count, struct example_fault *ret_fault);

#endif
