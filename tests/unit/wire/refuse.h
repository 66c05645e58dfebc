/* SPDX-License-Identifier: Apache-2.0
 * What the tests of the decoder's rules share: a careless peer that packs and sends anything.
 * Included once by each test program. */
#ifndef CADRE_TESTS_UNIT_WIRE_REFUSE_H
#define CADRE_TESTS_UNIT_WIRE_REFUSE_H

#include <stdlib.h>
#include <string.h>

#include "tests/unit/wire/round_trip.h"
#include "tests/unit/wire/samples.h"

#define INVALID   CADRE_INVALID_ARGUMENT
#define TOO_LARGE CADRE_RESOURCE_EXHAUSTED

/* Packs what a careless peer would send, then unpacks it. */
#define SEND(type)                                                                                 \
    static cadre_status send_##type(const struct type *message)                                    \
    {                                                                                              \
        struct type received;                                                                      \
        wire_buffer_clear(&packed);                                                                \
        wire_arena_reset(arena);                                                                   \
        assert_ok(wire_pack_##type(message, &packed, &error), &error);                             \
        return wire_unpack_##type(packed.bytes, packed.size, arena, &received, &error);            \
    }

static char *long_text(size_t size)
{
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, 'x', size);
    text[size] = '\0';
    return text;
}

#endif
