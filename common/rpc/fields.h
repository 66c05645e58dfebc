/* SPDX-License-Identifier: Apache-2.0
 * The encoding of protobuf, as far as the two standard services of this folder need it: fields of
 * small messages, one after the other. Cadre's own messages are common/wire's. */
#ifndef CADRE_RPC_FIELDS_H
#define CADRE_RPC_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_kind { FIELD_NUMBER = 0, FIELD_FIXED64 = 1, FIELD_BYTES = 2, FIELD_FIXED32 = 5 };

struct field {
    uint32_t id;
    enum field_kind kind;
    uint64_t number;      /* of FIELD_NUMBER */
    const uint8_t *bytes; /* of the others, inside the message */
    size_t size;
};

struct field_reader {
    const uint8_t *at, *end;
    bool broken; /* what was read is no message */
};

/* The next field; false at the end, and where the bytes are no message. */
bool field_next(struct field_reader *reader, struct field *ret_field);

static inline struct field_reader field_reader(const void *data, size_t size)
{
    return (struct field_reader){
        .at = data, .end = data != NULL ? (const uint8_t *)data + size : NULL};
}

/* Writes fields at `at`, or, with `at` NULL, only counts the bytes that they take. */
struct field_writer {
    uint8_t *at;
    size_t size;
};

/* Writes a field with a number. */
void field_put_number(struct field_writer *writer, uint32_t id, uint64_t number);
/* Writes a field with bytes: a string or a message. */
void field_put_bytes(struct field_writer *writer, uint32_t id, const void *bytes, size_t size);

/* Writes the head of a message of `size` bytes, whose content the caller puts next. */
void field_put_head(struct field_writer *writer, uint32_t id, size_t size);

#endif
