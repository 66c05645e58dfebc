/* SPDX-License-Identifier: Apache-2.0
 * Frames of TFRecord files; see record_frame.h. */
#include "worker/library/input/files/record_frame.h"

#include <string.h>

#include "worker/library/checksum/crc32c.h"
#include "worker/library/checksum/crc32c_inline.h"

#define MASK_DELTA 0xa282ead8u

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");
_Static_assert(sizeof(size_t) == sizeof(uint64_t), "lengths that were checked fit");

static inline uint32_t record_frame_mask(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + MASK_DELTA;
}

static inline uint32_t load_u32(const uint8_t *bytes)
{
    uint32_t value = 0;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint64_t load_u64(const uint8_t *bytes)
{
    uint64_t value = 0;
    memcpy(&value, bytes, sizeof value);
    return value;
}

typedef uint32_t crc_function(uint32_t crc, const uint8_t *bytes, size_t count);

/* The walks, once for each kind of processor: `crc` is known where they are compiled in. */
#define INLINED static inline __attribute__((always_inline))

INLINED enum record_fault check_header(
    const uint8_t *bytes, const struct record_rules *rules, crc_function *crc, uint64_t *ret_length)
{
    *ret_length = load_u64(bytes);
    if (!rules->skip_checksums && load_u32(bytes + RECORD_LENGTH_BYTES) !=
                                      record_frame_mask(~crc(~0u, bytes, RECORD_LENGTH_BYTES))) {
        return RECORD_LENGTH_DAMAGED;
    }
    return *ret_length > rules->record_bytes ? RECORD_TOO_LONG : RECORD_SOUND;
}

INLINED struct record_walk walk_frames(const uint8_t *bytes, size_t size, size_t limit,
    const struct record_rules *rules, cadre_string records[], crc_function *crc)
{
    size_t used = 0;
    size_t count = 0;
    struct record_walk walk = {0};
    while (count < limit) {
        const uint8_t *frame = bytes + used;
        uint64_t length = 0;
        if (size - used < RECORD_HEADER_BYTES) {
            walk.wanted = RECORD_HEADER_BYTES;
            break;
        }
        walk.fault = check_header(frame, rules, crc, &length);
        if (walk.fault != RECORD_SOUND) {
            walk.length = length;
            break;
        }
        if (size - used < length + RECORD_FRAME_BYTES) {
            walk.length = length;
            walk.wanted = length + RECORD_FRAME_BYTES;
            break;
        }
        const uint8_t *data = frame + RECORD_HEADER_BYTES;
        if (!rules->skip_checksums &&
            load_u32(data + length) != record_frame_mask(~crc(~0u, data, length))) {
            walk.fault = RECORD_DATA_DAMAGED;
            walk.length = length;
            break;
        }
        records[count++] = (cadre_string){.bytes = (const char *)data, .size = length};
        walk.last = used;
        used += length + RECORD_FRAME_BYTES;
    }
    walk.count = count;
    walk.used = used;
    return walk;
}

INLINED struct record_walk walk_headers(const uint8_t *bytes, size_t size, size_t limit,
    const struct record_rules *rules, uint64_t base, uint64_t starts[], crc_function *crc)
{
    uint64_t used = 0;
    size_t count = 0;
    struct record_walk walk = {0};
    while (count < limit) {
        if (used >= size || size - used < RECORD_HEADER_BYTES) {
            walk.wanted = RECORD_HEADER_BYTES;
            break;
        }
        uint64_t length = 0;
        walk.fault = check_header(bytes + used, rules, crc, &length);
        if (walk.fault != RECORD_SOUND) {
            walk.length = length;
            break;
        }
        if (starts != NULL) {
            starts[count] = base + used;
        }
        walk.last = used;
        count++;
        used += length + RECORD_FRAME_BYTES;
    }
    walk.count = count;
    walk.used = used;
    return walk;
}

#ifdef CRC32C_HAS_INSTRUCTION
CRC32C_WITH_INSTRUCTION static struct record_walk walk_frames_instruction(const uint8_t *bytes,
    size_t size, size_t limit, const struct record_rules *rules, cadre_string records[])
{
    return walk_frames(bytes, size, limit, rules, records, crc32c_instruction);
}

CRC32C_WITH_INSTRUCTION static struct record_walk walk_headers_instruction(const uint8_t *bytes,
    size_t size, size_t limit, const struct record_rules *rules, uint64_t base, uint64_t starts[])
{
    return walk_headers(bytes, size, limit, rules, base, starts, crc32c_instruction);
}
#endif

struct record_walk record_walk_frames(const uint8_t *bytes, size_t size, size_t limit,
    const struct record_rules *rules, cadre_string records[])
{
#ifdef CRC32C_HAS_INSTRUCTION
    if (CRC32C_HAS_INSTRUCTION) {
        return walk_frames_instruction(bytes, size, limit, rules, records);
    }
#endif
    return walk_frames(bytes, size, limit, rules, records, crc32c_library);
}

struct record_walk record_walk_headers(const uint8_t *bytes, size_t size, size_t limit,
    const struct record_rules *rules, uint64_t base, uint64_t starts[])
{
#ifdef CRC32C_HAS_INSTRUCTION
    if (CRC32C_HAS_INSTRUCTION) {
        return walk_headers_instruction(bytes, size, limit, rules, base, starts);
    }
#endif
    return walk_headers(bytes, size, limit, rules, base, starts, crc32c_library);
}

uint32_t record_checksum(const void *bytes, size_t count)
{
    return record_frame_mask(crc32c(0, bytes, count));
}

void record_frame_make(const void *data, size_t count, uint8_t ret_header[RECORD_HEADER_BYTES],
    uint8_t ret_footer[RECORD_FOOTER_BYTES])
{
    uint64_t length = count;
    memcpy(ret_header, &length, RECORD_LENGTH_BYTES);
    uint32_t checksum = record_checksum(ret_header, RECORD_LENGTH_BYTES);
    memcpy(ret_header + RECORD_LENGTH_BYTES, &checksum, sizeof checksum);
    checksum = record_checksum(data, count);
    memcpy(ret_footer, &checksum, sizeof checksum);
}
