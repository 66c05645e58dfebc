/* SPDX-License-Identifier: Apache-2.0
 * How rows and tables are written: ROWS(Cursor) = {POSITION(Cursor, begin), ...}; TABLE(Cursor,
 * cursor). `m` is the name of the message in the .proto file, and model_##m a typedef of its model
 * struct; `f` is the name of the field there, and of the member in the model unless the macro takes
 * one. A row does not compile when one of its two members has another type than the row. Private to
 * the tables of common/wire. */
#ifndef CADRE_WIRE_ROWS_H
#define CADRE_WIRE_ROWS_H

#include "common/pure/assert.h"
#include "common/wire/codec.h"
#include "common/wire/tables.h"

/* ---- checks that reject a wrong row at compile time ---- */

#define AT_WIRE(m, f)                offsetof(Cadre__V1__##m, f)
#define AT_MODEL(m, member)          offsetof(model_##m, member)
#define OF_WIRE(m, f)                (((Cadre__V1__##m *)0)->f)
#define OF_MODEL(m, member)          (((model_##m *)0)->member)
#define CHECKED(good)                (sizeof(char[(good) ? 1 : -1]) - 1)
#define CHECKED_IS(lvalue, type)     _Generic(&(lvalue), type * : 0)
#define AT_WIRE_IS(m, f, type)       (AT_WIRE(m, f) + CHECKED_IS(OF_WIRE(m, f), type))
#define AT_MODEL_IS(m, member, type) (AT_MODEL(m, member) + CHECKED_IS(OF_MODEL(m, member), type))
#define TYPE_OF_NUMBER(lvalue)                                                                     \
    _Generic(&(lvalue), uint32_t * : 1, uint64_t * : 2, int32_t * : 3, double * : 4)
#define IS_UNSIGNED(lvalue) _Generic(&(lvalue), uint32_t * : 1, uint64_t * : 1)
#define IS_SIGNED(lvalue)   _Generic(&(lvalue), uint32_t * : 1, int32_t * : 1) /* or an enum */

#define ROW(...)                                                                                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* ---- numbers ---- */

#define NUMBER_ROW(kind_, m, f, member)                                                            \
    .name = #f, .kind = (kind_), .size = sizeof OF_WIRE(m, f), .wire = AT_WIRE(m, f),              \
    .model = AT_MODEL(m, member) +                                                                 \
             CHECKED(TYPE_OF_NUMBER(OF_WIRE(m, f)) == TYPE_OF_NUMBER(OF_MODEL(m, member)))
#define RANGE_ROW(m, f, member, least_, most_)                                                     \
    NUMBER_ROW(ROW_NUMBER, m, f, member), .least = (least_) + CHECKED(IS_UNSIGNED(OF_WIRE(m, f))), \
                                          .most = (most_)

/* Any number; or one that after_take checks. */
#define COPY(m, f)            ROW(NUMBER_ROW(ROW_COPY, m, f, f))
#define COPY_AS(m, f, member) ROW(NUMBER_ROW(ROW_COPY, m, f, member))

#define NUMBER(m, f, least, most)            ROW(RANGE_ROW(m, f, f, least, most))
#define NUMBER_AS(m, f, member, least, most) ROW(RANGE_ROW(m, f, member, least, most))
#define POSITION(m, f)                       NUMBER(m, f, 0, LIMIT_POSITION)
#define SLOT(m, f)                           NUMBER(m, f, 0, LIMIT_TASKS_PER_JOB - 1)
/* Of microseconds, or of bytes. */
#define SPAN(m, f) NUMBER(m, f, 0, INT64_MAX)
/* Of a dataset. STREAM_ANY is absence on the wire, and refused as a number. */
#define STREAM(m, f) NUMBER(m, f, 0, STREAM_ANY - 1)
/* 0 is no limit; a limit under which nothing could run is refused. */
#define NUMBER_OR_ZERO(m, f, least, most) ROW(RANGE_ROW(m, f, f, least, most), .or_zero = true)
/* From 0 to the value of the field `other` of the same message. */
#define NUMBER_UP_TO(m, f, other)                                                                  \
    ROW(RANGE_ROW(m, f, f, 0, 0), .is_bound = true,                                                \
        .bound = AT_WIRE(m, other) + CHECKED(sizeof OF_WIRE(m, f) == sizeof OF_WIRE(m, other)))

/* An optional field: absence is `none_` in the model, or false of the bool `flag_`. `case_` is
 * protobuf-c's constant without CADRE__V1__. */
#define CASE_ROW(m, f, case_) .number = CADRE__V1__##case_, .wire_case = AT_WIRE(m, _##f##_case)
#define NUMBER_OR_NONE(m, f, case_, none_, most)                                                   \
    ROW(RANGE_ROW(m, f, f, 0, most), .when = WHEN_NOT_NONE, .none = (none_), CASE_ROW(m, f, case_))
#define POSITION_OR_NONE(m, f, case_) NUMBER_OR_NONE(m, f, case_, POSITION_NONE, LIMIT_POSITION)
#define NUMBER_IF(m, f, case_, flag_, least, most)                                                 \
    ROW(RANGE_ROW(m, f, f, least, most), .when = WHEN_FLAG, .flag = AT_MODEL_IS(m, flag_, bool),   \
        CASE_ROW(m, f, case_))

#define SIGNED(m, f, least_, most_)                                                                \
    ROW(.name = #f, .kind = ROW_SIGNED, .size = sizeof(int32_t),                                   \
        .wire = AT_WIRE(m, f) + CHECKED(IS_SIGNED(OF_WIRE(m, f))),                                 \
        .model = AT_MODEL(m, f) + CHECKED(IS_SIGNED(OF_MODEL(m, f))),                              \
        .least = (uint64_t)(int64_t)(least_), .most = (uint64_t)(int64_t)(most_))
#define BOOL(m, f)                                                                                 \
    ROW(.name = #f, .kind = ROW_BOOL, .wire = AT_WIRE_IS(m, f, protobuf_c_boolean),                \
        .model = AT_MODEL_IS(m, f, bool))
#define JOB(m, f, member)                                                                          \
    ROW(.name = #f, .kind = ROW_JOB, .size = sizeof(uint64_t), .wire = AT_WIRE_IS(m, f, uint64_t), \
        .model = AT_MODEL_IS(m, member, uint64_t))

/* ---- texts and bytes; `rule` is one of the decode_ functions of codec.h ---- */

#define TEXT_ROW(m, f, rule)                                                                       \
    .name = #f, .kind = ROW_TEXT, .text = (rule), .wire = AT_WIRE_IS(m, f, char *)
#define TEXT(m, f, rule) ROW(TEXT_ROW(m, f, rule), .model = AT_MODEL_IS(m, f, const char *))
#define TEXT_FOR_PEOPLE(m, f, rule)                                                                \
    ROW(TEXT_ROW(m, f, rule), .model = AT_MODEL_IS(m, f, const char *), .for_people = true)
#define TEXT_ARRAY_FOR_PEOPLE(m, f)                                                                \
    ROW(TEXT_ROW(m, f, decode_text), .size = LIMIT_TEXT_BYTES, .for_people = true,                 \
        .model = AT_MODEL(m, f) + CHECKED(sizeof OF_MODEL(m, f) == LIMIT_TEXT_BYTES))
#define BYTES_ROW(m, f)                                                                            \
    .name = #f, .kind = ROW_BYTES, .size = sizeof OF_MODEL(m, f),                                  \
    .wire = AT_WIRE_IS(m, f, ProtobufCBinaryData),                                                 \
    .model = AT_MODEL(m, f) + CHECKED_IS(OF_MODEL(m, f)[0], uint8_t)
#define BYTES(m, f) ROW(BYTES_ROW(m, f))
#define BYTES_IF(m, f, flag_)                                                                      \
    ROW(BYTES_ROW(m, f), .when = WHEN_FLAG, .flag = AT_MODEL_IS(m, flag_, bool))
#define DATA(m, f, member, count, limit_)                                                          \
    ROW(.name = #f, .kind = ROW_DATA, .limit = (limit_),                                           \
        .wire = AT_WIRE_IS(m, f, ProtobufCBinaryData),                                             \
        .model = AT_MODEL_IS(m, member, const uint8_t *),                                          \
        .model_count = AT_MODEL_IS(m, count, size_t))

/* ---- messages ---- */

#define MESSAGE_ROW(m, f, M)                                                                       \
    .name = #f, .kind = ROW_MESSAGE, .wire = AT_WIRE_IS(m, f, Cadre__V1__##M *),                   \
    .of = &wire_table_##M
#define MEMBER_ROW(m, f, M, member) MESSAGE_ROW(m, f, M), .model = AT_MODEL_IS(m, member, model_##M)
/* Its members are in the model struct of the message itself. */
#define INLINE_ROW(m, f, M) MESSAGE_ROW(m, f, M), .model = CHECKED_IS(*(model_##m *)0, model_##M)
#define FLAG_ROW(m, flag_)    .when = WHEN_FLAG, .flag = AT_MODEL_IS(m, flag_, bool)

/* Always there; sent unless is_given of its table returns false, or if the bool `flag` is true. */
#define MESSAGE(m, f, M)           ROW(MEMBER_ROW(m, f, M, f))
#define MESSAGE_OR_NONE(m, f, M)   ROW(MEMBER_ROW(m, f, M, f), .when = WHEN_GIVEN)
#define MESSAGE_IF(m, f, M, flag)  ROW(MEMBER_ROW(m, f, M, f), FLAG_ROW(m, flag))
#define INLINE_IF(m, f, M, flag) ROW(INLINE_ROW(m, f, M), FLAG_ROW(m, flag))

/* A member of the oneof `message`; `type` is that of the model, with the same number as `case_`,
 * protobuf-c's constant without CADRE__V1__. */
#define MEMBER_AT(case_, type) [(type) + CHECKED((int)CADRE__V1__##case_ == (int)(type))]
#define MEMBER(m, f, M, member, case_, type)                                                       \
    MEMBER_AT(case_, type) = ROW(MEMBER_ROW(m, f, M, member))
#define MEMBER_INLINE(m, f, M, case_, type) MEMBER_AT(case_, type) = ROW(INLINE_ROW(m, f, M))

/* ---- lists ---- */

#define LIST_ROW(m, f, limit_)                                                                     \
    .name = #f, .kind = ROW_LIST, .limit = (limit_), .wire_count = AT_WIRE_IS(m, n_##f, size_t)
#define MESSAGES(m, f, M, member, count, limit)                                                    \
    ROW(LIST_ROW(m, f, limit), .model_count = AT_MODEL_IS(m, count, size_t), .entry = ROW_MESSAGE, \
        .of = &wire_table_##M, .wire = AT_WIRE_IS(m, f, Cadre__V1__##M **),                        \
        .model = AT_MODEL_IS(m, member, const model_##M *))
#define TEXTS(m, f, count, rule, limit)                                                            \
    ROW(LIST_ROW(m, f, limit), .model_count = AT_MODEL_IS(m, count, size_t), .entry = ROW_TEXT,    \
        .text = (rule), .wire = AT_WIRE_IS(m, f, char **),                                         \
        .model = AT_MODEL_IS(m, f, const char *const *))
#define JOBS(m, f, count, limit)                                                                   \
    ROW(LIST_ROW(m, f, limit), .model_count = AT_MODEL_IS(m, count, size_t), .entry = ROW_JOB,     \
        .size = sizeof(struct job_id), .wire = AT_WIRE_IS(m, f, uint64_t *),                       \
        .model = AT_MODEL_IS(m, f, const struct job_id *))
#define HASHES(m, f, count, limit)                                                                 \
    ROW(LIST_ROW(m, f, limit), .model_count = AT_MODEL_IS(m, count, size_t), .entry = ROW_BYTES,   \
        .size = sizeof *OF_MODEL(m, f), .wire = AT_WIRE_IS(m, f, ProtobufCBinaryData *),           \
        .model = AT_MODEL(m, f) + CHECKED_IS(OF_MODEL(m, f)[0][0], const uint8_t))

/* Numbers of 32 bits in an array of the model. */
#define NUMBERS(m, f, count, least_, most_)                                                        \
    ROW(LIST_ROW(m, f, CADRE_COUNT_OF(OF_MODEL(m, f))), .entry = ROW_NUMBER, .is_array = true,     \
        .size = sizeof(uint32_t), .least = (least_), .most = (most_),                              \
        .wire = AT_WIRE_IS(m, f, uint32_t *), .model_count = AT_MODEL_IS(m, count, uint32_t),      \
        .model = AT_MODEL(m, f) + CHECKED_IS(OF_MODEL(m, f)[0], uint32_t))

/* ---- tables; `lower` is the name of the message in protobuf-c's functions ---- */

#define ROWS(m) static const struct wire_row rows_##m[]
#define TABLE_START(m, lower)                                                                      \
    const struct wire_table wire_table_##m = {                                                     \
        .descriptor = _Generic(&cadre__v1__##lower##__init, void (*)(Cadre__V1__##m *)             \
                               : &cadre__v1__##lower##__descriptor),                               \
        .model_bytes = sizeof(model_##m)
#define TABLE(m, lower)                                                                            \
    TABLE_START(m, lower), .rows = rows_##m, .row_count = CADRE_COUNT_OF(rows_##m)                 \
    }
/* With further members of struct wire_table. */
#define TABLE_WITH(m, lower, ...)                                                                  \
    TABLE_START(m, lower), .rows = rows_##m, .row_count = CADRE_COUNT_OF(rows_##m), __VA_ARGS__    \
    }
/* Without rows. */
#define TABLE_OF(m, lower, ...)                                                                    \
    TABLE_START(m, lower), __VA_ARGS__                                                             \
    }
#define TABLE_WITHOUT_ROWS(m, lower)                                                               \
    TABLE_START(m, lower)                                                                          \
    }
/* A table with the oneof `message`, whose members are rows_##members; it is a message of its own.
 */
#define ONEOF(m, members_)                                                                         \
    .members = rows_##members_, .member_count = CADRE_COUNT_OF(rows_##members_),                   \
    .member_case = AT_WIRE(m, message_case), .member_type = AT_MODEL(m, type)

#endif
