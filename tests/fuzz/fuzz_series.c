/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: the input is records (a byte of type, two of length, payload), which get their
 * right sums, so that what is behind the checksum is reached, behind a head of either version; and
 * the input itself, as a file. What is replayed is taken as a snapshot, which gives the same again.
 */
#include <stdlib.h>
#include <string.h>

#include <isa-l/crc64.h>

#include "common/pure/assert.h"
#include "coordinator/series/records/series_records.h"

#define HEAD_BYTES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct series_state state;
static struct series_state again;

static void replay(const uint8_t *bytes, size_t size)
{
    size_t whole = 0;
    enum series_end end = series_records_replay(bytes, size, &state, &whole);
    CADRE_ASSERT(whole <= size && (end == SERIES_END_WHOLE) == (whole == size));
    (void)series_records_replay(bytes, whole, &state, &whole); /* as a file without the damage */
    struct wire_buffer snapshot = {0};
    CADRE_ASSERT(series_records_snapshot(&state, &snapshot));
    end = series_records_replay(snapshot.bytes, snapshot.size, &again, &whole);
    CADRE_ASSERT(end == SERIES_END_WHOLE && again.set.count == state.set.count);
    wire_buffer_free(&snapshot);
}

/* With its right sum. */
static void put_record(
    struct wire_buffer *file, uint8_t type, const uint8_t *payload, size_t length)
{
    const uint8_t head[8] = {
        type, 0, 0, 0, (uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16), 0};
    uint64_t sum = crc64_ecma_refl(0, head, sizeof head);
    sum = length > 0 ? crc64_ecma_refl(sum, payload, length) : sum;
    CADRE_ASSERT(wire_buffer_reserve(file, HEAD_BYTES + length));
    uint8_t *to = file->bytes + file->size;
    memcpy(to, head + 4, 4);
    memcpy(to + 4, head, 4);
    for (unsigned i = 0; i < 8; i++) {
        to[8 + i] = (uint8_t)(sum >> (8 * i));
    }
    memcpy(to + HEAD_BYTES, payload, length);
    file->size += HEAD_BYTES + length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char version_1[] = "cadre series 1";
    struct wire_buffer file = {0};
    if (size > 0 && data[0] >= 128) {
        put_record(&file, 1, (const uint8_t *)version_1, sizeof version_1);
    } else {
        CADRE_ASSERT(series_records_head(&file));
    }
    for (size_t at = 0; size - at >= 3;) {
        size_t length = data[at + 1] + 256U * data[at + 2];
        length = length <= size - at - 3 ? length : size - at - 3;
        put_record(&file, (uint8_t)(data[at] % 8), data + at + 3, length);
        at += 3 + length;
    }
    replay(file.bytes, file.size);
    replay(data, size);
    wire_buffer_free(&file);
    return 0;
}
