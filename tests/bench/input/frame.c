/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

#include <isa-l/crc.h>
#include <string.h>

#define SHORT_BYTES                                                                                \
    512 /* under it, the bare instruction is faster than a call that prepares lanes */

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_short(const uint8_t *bytes, size_t count)
{
    uint64_t crc = UINT32_MAX;
    for (; count >= 8; count -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        crc = __builtin_ia32_crc32di(crc, word);
    }
    uint32_t rest = (uint32_t)crc;
    while (count-- > 0) {
        rest = __builtin_ia32_crc32qi(rest, *bytes++);
    }
    return ~rest;
}
#else
static uint32_t crc_short(const uint8_t *bytes, size_t count)
{
    return ~crc32_iscsi((unsigned char *)(uintptr_t)bytes, (int)count, UINT32_MAX);
}
#endif

uint32_t frame_crc(const void *bytes, size_t count)
{
    uint32_t crc = count < SHORT_BYTES
                       ? crc_short(bytes, count)
                       : ~crc32_iscsi((unsigned char *)(uintptr_t)bytes, (int)count, UINT32_MAX);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}
