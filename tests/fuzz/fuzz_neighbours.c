/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as a frame and what follows it, which is read as a question, and as
 * an answer to one. An accepted question is of a part of one segment of an object, and written
 * again it is read as the same. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/neighbours/neighbour_wire.h"
#include "worker/library/ps/link/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_again(const struct neighbour_ask *ask, uint64_t id)
{
    struct neighbour_ask again;
    struct frame frame;
    uint8_t name[NEIGHBOUR_NAME_BYTES];
    neighbour_ask_write(ask, id, &frame, name);
    CADRE_ASSERT(neighbour_ask_expects(&frame));
    CADRE_ASSERT(neighbour_ask_read(&frame, name, &again));
    CADRE_ASSERT(memcmp(ask, &again, sizeof again) == 0);
}

static void read_ask(const struct frame *frame, const uint8_t *data, size_t size)
{
    struct neighbour_ask ask;
    if (!neighbour_ask_expects(frame) || frame->bytes > size) {
        return;
    }
    uint8_t *name = malloc((size_t)frame->bytes); /* so that a byte too many is found */
    CADRE_ASSERT(name != NULL);
    memcpy(name, data, (size_t)frame->bytes);
    if (neighbour_ask_read(frame, name, &ask)) {
        CADRE_ASSERT(ask.count > 0 && ask.offset + ask.count <= ask.size);
        CADRE_ASSERT(ask.offset / NEIGHBOUR_SEGMENT_BYTES ==
                     (ask.offset + ask.count - 1) / NEIGHBOUR_SEGMENT_BYTES);
        CADRE_ASSERT(storage_is_object(ask.path) && ask.version[0] != '\0');
        ask_again(&ask, frame->id);
    }
    free(name);
}

static void read_answer(const struct frame *frame)
{
    const struct neighbour_ask ask = {.path = "s3://b/k",
        .version = "1",
        .size = 10 * NEIGHBOUR_SEGMENT_BYTES,
        .offset = NEIGHBOUR_SEGMENT_BYTES,
        .count = NEIGHBOUR_SEGMENT_BYTES - 1};
    enum neighbour_answer answer =
        neighbour_answer_read(frame, &ask, 1, NEIGHBOUR_SEGMENT_BYTES + NEIGHBOUR_PIECE_BYTES);
    CADRE_ASSERT(answer != ANSWER_PIECE || frame->bytes == NEIGHBOUR_PIECE_BYTES);
    CADRE_ASSERT(answer == ANSWER_PIECE || answer == ANSWER_WRONG || frame->bytes == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame frame;
    if (size >= FRAME_BYTES) {
        frame_read(data, &frame);
        read_ask(&frame, data + FRAME_BYTES, size - FRAME_BYTES);
        read_answer(&frame);
        frame.kind = NEIGHBOUR_ASK;
        read_ask(&frame, data + FRAME_BYTES, size - FRAME_BYTES);
    }
    return 0;
}
