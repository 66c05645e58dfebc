/* SPDX-License-Identifier: Apache-2.0
 * A message as a table, a field of it as a row: its offset in protobuf-c's struct and in the
 * model's, its kind, its presence and its limits. encoder.c and decoder.c walk the rows and contain
 * no message of their own; rows.h has the macros that make rows. Private to common/wire. */
#ifndef CADRE_WIRE_TABLE_H
#define CADRE_WIRE_TABLE_H

#include <protobuf-c/protobuf-c.h>
#include <string.h>

#include "common/wire/wire.h"

struct decoder;
struct wire_table;

enum row_kind {
    ROW_COPY = 1, /* a number as it is */
    ROW_BOOL,
    ROW_NUMBER,  /* without a sign, from least to most */
    ROW_SIGNED,  /* of 32 bits, from least to most: an enum, a status, an exit code */
    ROW_JOB,     /* the number of a job: not 0 */
    ROW_TEXT,    /* a pointer; with a size it is an array of so many bytes in the model */
    ROW_BYTES,   /* as many as `size` says */
    ROW_DATA,    /* bytes and their number, of which there are at most `limit` */
    ROW_MESSAGE, /* one with a table of its own */
    ROW_LIST     /* at most `limit` entries, each of the kind `entry` */
};

enum row_when {
    WHEN_ALWAYS = 0, /* the error of an absent message is "is missing" */
    WHEN_GIVEN,      /* a message that may be absent; sent if is_given of its table returns true */
    WHEN_FLAG,       /* sent if a bool of the model, at `flag`, is true */
    WHEN_NOT_NONE    /* a number other than `none`, which is absence in the model */
};

struct wire_row {
    const char *name; /* in the .proto file, for errors */
    uint64_t least;
    uint64_t most;
    union {
        uint64_t none;
        uint64_t limit;
    };
    union {
        const char *(*text)(
            struct decoder *decoder, const char *field, char *value); /* take_name.. */
        const struct wire_table *of;                                  /* of a MESSAGE */
    };
    uint16_t wire; /* offsets in protobuf-c's struct: of the field, */
    uint16_t wire_count;
    uint16_t wire_case; /* of the presence: the field is there when that is equal to `number` */
    uint16_t bound;     /* NUMBER that is_bound: the field at this offset, not `most`, is the
                         * maximum */
    uint16_t model;     /* offsets in the model's struct: of the member, */
    uint16_t model_count;
    uint16_t flag;
    uint16_t size; /* of a number, of bytes */
    uint8_t kind;
    uint8_t when;
    uint8_t entry;
    uint8_t number;
    bool is_bound;
    bool is_array;   /* LIST: in an array of the model, whose count has 32 bits */
    bool or_zero;    /* NUMBER: 0 is good, also under `least` */
    bool for_people; /* TEXT: bad bytes are replaced when it is packed */
};

_Static_assert(sizeof(struct wire_row) <= 64, "a row fits a cache line");

struct wire_table {
    const ProtobufCMessageDescriptor *descriptor;
    const struct wire_row *rows;
    size_t row_count;
    size_t model_bytes;
    size_t limit_bytes; /* of a message of its own; 0: it is always part of another */
    /* Of the oneof that it may have: each member by its number, which is also the model's type. */
    const struct wire_row *members;
    size_t member_count;
    uint16_t member_case; /* offset in protobuf-c's struct */
    uint16_t member_type; /* offset in the model's */
    /* Checks beyond the rows, after them; only when all is good so far. after_fill only removes: it
     * adds no bytes to those of the rows. */
    void (*after_fill)(void *wire, const void *model);
    void (*after_take)(struct decoder *decoder, const void *wire, void *model);
    bool (*is_given)(const void *model); /* NULL: always */
};

/* Bytes of one entry of a list, in protobuf-c's array. */
static inline size_t wire_row_entry_bytes(const struct wire_row *row)
{
    return row->entry == ROW_BYTES                               ? sizeof(ProtobufCBinaryData)
           : row->entry == ROW_TEXT || row->entry == ROW_MESSAGE ? sizeof(void *)
                                                                 : row->size;
}

/* The same in the model's array. */
static inline size_t wire_row_member_bytes(const struct wire_row *row)
{
    return row->entry == ROW_MESSAGE ? row->of->model_bytes
           : row->entry == ROW_TEXT  ? sizeof(char *)
                                     : row->size;
}

/* A number without a sign, of 4 or 8 bytes. */
static inline uint64_t wire_row_number(const struct wire_row *row, const char *at)
{
    uint64_t wide;
    uint32_t narrow;
    if (row->size == sizeof wide) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    memcpy(&narrow, at, sizeof narrow);
    return narrow;
}

static inline void wire_row_copy(const struct wire_row *row, char *to, const char *from)
{
    if (row->size == sizeof(uint64_t)) {
        memcpy(to, from, sizeof(uint64_t));
    } else {
        memcpy(to, from, sizeof(uint32_t));
    }
}

#endif
