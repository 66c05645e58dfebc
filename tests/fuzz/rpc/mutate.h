/* SPDX-License-Identifier: Apache-2.0
 * Messages with one thing wrong: mutations that know the encoding of protobuf, and no schema. */
#ifndef CADRE_TESTS_FUZZ_MUTATE_H
#define CADRE_TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#include "common/pure/prng.h"

/* The longest message that comes out. */
#define MUTATE_BYTES_MAX 32768

/* Writes a changed copy of a message; returns its size. A field of it, at any depth, is left out,
 * doubled, moved, or gets another value; or the encoding itself is broken. */
size_t mutate(
    struct prng *prng, const uint8_t *bytes, size_t size, uint8_t ret_bytes[MUTATE_BYTES_MAX]);

#endif
