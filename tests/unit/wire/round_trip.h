/* SPDX-License-Identifier: Apache-2.0
 * What the tests of messages share: what is packed, what comes out of it, and where that lies.
 * Included once by each test program. */
#ifndef CADRE_TESTS_UNIT_WIRE_ROUND_TRIP_H
#define CADRE_TESTS_UNIT_WIRE_ROUND_TRIP_H

#include "common/wire/wire.h"
#include "tests/lib/test.h"

static struct cadre_error error;
static struct wire_arena *arena;
static struct wire_buffer packed;
static struct wire_buffer again; /* what came out, packed once more */

static int setup(void **state)
{
    (void)state;
    arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    return arena == NULL;
}

static int teardown(void **state)
{
    (void)state;
    wire_arena_free(arena);
    wire_buffer_free(&packed);
    wire_buffer_free(&again);
    return 0;
}

#endif
