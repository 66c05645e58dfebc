/* SPDX-License-Identifier: Apache-2.0
 * Examples for tests: bytes that Google's protobuf wrote, and what most tests of them need. */
#ifndef CADRE_TESTS_INPUT_EXAMPLES_H
#define CADRE_TESTS_INPUT_EXAMPLES_H

#include "cadre/example.h"

#define TEXT(literal) ((cadre_string){.bytes = (literal), .size = sizeof(literal) - 1})

/* Example(features={label: int64_list [7]}), SerializeToString of protobuf 4.21.12. */
#define LABEL_BYTES "\x0a\x10\x0a\x0e\x0a\x05label\x12\x05\x1a\x03\x0a\x01\x07"

/* The same of {id: int64 [-1, 300, 2^63 - 1, -2^63], name: bytes [ab, "", "\0\xff"], none: an empty
 * float_list, unset: a Feature of no kind, x: float [1.5, -2.25, 0.1]}, deterministic. */
#define ALL_BYTES                                                                                  \
    "\x0a\x6f"                                                                                     \
    "\x0a\x29\x0a\x02id\x12\x23\x1a\x21\x0a\x1f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xac\x02"   \
    "\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"                 \
    "\x0a\x14\x0a\x04name\x12\x0c\x0a\x0a\x0a\x02"                                                 \
    "ab\x0a\x00\x0a\x02\x00\xff"                                                                   \
    "\x0a\x0a\x0a\x04none\x12\x02\x12\x00"                                                         \
    "\x0a\x09\x0a\x05unset\x12\x00"                                                                \
    "\x0a\x15\x0a\x01x\x12\x10\x12\x0e\x0a\x0c\x00\x00\xc0\x3f\x00\x00\x10\xc0\xcd\xcc\xcc\x3d"

/* These fail the test on an error. */
cadre_example_parser *make_parser(const cadre_feature features[], size_t count);
cadre_tensor *ints(int64_t count, const int64_t *values);
cadre_tensor *strings(int64_t count, const cadre_string *values);

/* Each example as an element. */
cadre_dataset *dataset_of(const cadre_string examples[], int64_t count);

/* The examples parsed one by one, as text; and in one batch. */
void expect_parsed(const cadre_feature features[], size_t feature_count,
    const cadre_string examples[], int64_t count, const char *singles, const char *batch);

#endif
