/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/checksum/crc32c.h"

#include <isa-l/crc.h>

#include "worker/library/checksum/crc32c_inline.h"

#define PIECE_BYTES_MAX ((size_t)1 << 30) /* ISA-L counts with int */

uint32_t crc32c_library(uint32_t crc, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        size_t piece = size < PIECE_BYTES_MAX ? size : PIECE_BYTES_MAX;
        crc =
            crc32_iscsi((unsigned char *)bytes, (int)piece, crc); /* by its manual it only reads */
        bytes += piece;
        size -= piece;
    }
    return crc;
}

#ifdef CRC32C_HAS_INSTRUCTION
CRC32C_WITH_INSTRUCTION static uint32_t with_instruction(
    uint32_t crc, const uint8_t *bytes, size_t size)
{
    return crc32c_instruction(crc, bytes, size);
}
#endif

uint32_t crc32c(uint32_t before, const void *bytes, size_t size)
{
#ifdef CRC32C_HAS_INSTRUCTION
    if (CRC32C_HAS_INSTRUCTION) {
        return ~with_instruction(~before, bytes, size);
    }
#endif
    return ~crc32c_library(~before, bytes, size);
}
