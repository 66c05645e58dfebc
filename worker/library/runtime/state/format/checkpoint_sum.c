/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/format/checkpoint_file.h"

#include <isa-l/crc.h>

#define AT_ONCE_BYTES ((size_t)1 << 30) /* the library counts with int */

uint32_t checkpoint_crc32c(const void *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t at = 0; at < size; at += AT_ONCE_BYTES) {
        size_t length = size - at < AT_ONCE_BYTES ? size - at : AT_ONCE_BYTES;
        /* By its manual it only reads. */
        crc = crc32_iscsi((unsigned char *)(uintptr_t)bytes + at, (int)length, crc);
    }
    return ~crc;
}
