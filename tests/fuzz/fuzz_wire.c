/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as any message (the first byte chooses), and as a stream of frames.
 * What is accepted must be packable, must be accepted again, and must then come out the same. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/wire/frame.h"
#include "tests/unit/wire/samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_message(const struct kind *kind, const uint8_t *bytes, size_t size)
{
    static struct wire_arena *arena;
    static struct wire_buffer first;
    static struct wire_buffer second;
    struct cadre_error error;
    bool unpacked;
    if (arena == NULL) {
        arena = wire_arena_new(LIMIT_UNPACK_BYTES);
        CADRE_ASSERT(arena != NULL);
    }
    wire_arena_reset(arena);
    wire_buffer_clear(&first);
    cadre_status status = kind->repack(bytes, size, arena, &first, &unpacked, &error);
    if (!unpacked) {
        return;
    }
    CADRE_ASSERT(status == CADRE_OK);
    wire_arena_reset(arena);
    wire_buffer_clear(&second);
    status = kind->repack(first.bytes, first.size, arena, &second, &unpacked, &error);
    CADRE_ASSERT(status == CADRE_OK);
    CADRE_ASSERT(first.size == second.size);
    CADRE_ASSERT(first.size == 0 || memcmp(first.bytes, second.bytes, first.size) == 0);
}

/* In pieces of the size that the first byte names. */
static void fuzz_frames(const uint8_t *bytes, size_t size)
{
    struct frame_reader reader = {0};
    struct cadre_error error;
    size_t piece = size > 0 ? (size_t)bytes[0] + 1 : 1;
    for (size_t at = 0; at < size; at += piece) {
        size_t part = size - at < piece ? size - at : piece;
        uint8_t *room = frame_reader_room(&reader, part);
        CADRE_ASSERT(room != NULL);
        memcpy(room, bytes + at, part);
        frame_reader_commit(&reader, part);
        const uint8_t *payload;
        size_t payload_size;
        cadre_status status;
        while ((status = frame_reader_next(&reader, &payload, &payload_size, &error)) == CADRE_OK) {
            fuzz_message(&kinds[0], payload, payload_size);
        }
        if (status != CADRE_PENDING) {
            break;
        }
    }
    frame_reader_free(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    size_t choice = data[0] % (kind_count + 1);
    if (choice == kind_count) {
        fuzz_frames(data + 1, size - 1);
    } else {
        fuzz_message(&kinds[choice], data + 1, size - 1);
    }
    return 0;
}
