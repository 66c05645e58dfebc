/* SPDX-License-Identifier: Apache-2.0
 * Little-endian integers at any address, as they are sent between tasks. */
#ifndef CADRE_WORKER_MESH_BYTES_H
#define CADRE_WORKER_MESH_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
    "tensors travel as they lie in memory: all tasks must be little-endian");

static inline void bytes_put_u32(uint8_t *at, uint32_t value)
{
    uint32_t wire = htole32(value);
    memcpy(at, &wire, sizeof wire);
}

static inline void bytes_put_u64(uint8_t *at, uint64_t value)
{
    uint64_t wire = htole64(value);
    memcpy(at, &wire, sizeof wire);
}

static inline uint32_t bytes_get_u32(const uint8_t *at)
{
    uint32_t wire;
    memcpy(&wire, at, sizeof wire);
    return le32toh(wire);
}

static inline uint64_t bytes_get_u64(const uint8_t *at)
{
    uint64_t wire;
    memcpy(&wire, at, sizeof wire);
    return le64toh(wire);
}

#endif
