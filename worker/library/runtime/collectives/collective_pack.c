/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/collectives/collective.h"

#include "common/pure/assert.h"

#include <stdint.h>
#include <string.h>

size_t collective_pack(const size_t *bytes, size_t stride, size_t count, size_t bytes_per_pack)
{
    CADRE_ASSERT(stride >= sizeof *bytes);
    const uint8_t *at = (const uint8_t *)bytes;
    size_t length = 0;
    size_t pack_bytes = 0;
    if (bytes_per_pack == 0) {
        return count;
    }
    while (length < count && pack_bytes <= bytes_per_pack) {
        size_t own;
        memcpy(&own, at + length * stride, sizeof own);
        pack_bytes += own;
        length++;
    }
    return length;
}
