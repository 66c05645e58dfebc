/* SPDX-License-Identifier: Apache-2.0
 * The loop of crc32c(), for who computes very many of short pieces: compiled into a function that
 * has CRC32C_WITH_INSTRUCTION, and called where CRC32C_HAS_INSTRUCTION is true.
 *
 * The sums here are the inverted ones, as the processor has them: ~0 at the start. */
#ifndef CADRE_WORKER_CHECKSUM_CRC32C_INLINE_H
#define CADRE_WORKER_CHECKSUM_CRC32C_INLINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are taken as they lie");

/* By ISA-L, on any processor. */
uint32_t crc32c_library(uint32_t crc, const uint8_t *bytes, size_t size);

#if defined(__x86_64__)
#define CRC32C_WITH_INSTRUCTION __attribute__((target("sse4.2")))
#define CRC32C_HAS_INSTRUCTION  (__builtin_cpu_supports("sse4.2") != 0)

/* Up to here the instruction wins. Measured on a Xeon with AVX-512 (model 167, ISA-L 2.30; ns a
 * call, one call behind the other):
 *
 *     bytes           8    64   200   256   1024   102400
 *     instruction   1.1   2.3   9.0  13.1   69.7    10991
 *     ISA-L        13.9   6.2  11.5   6.0   16.5     1617 */
#define CRC32C_SHORT_BYTES_MAX 240

/* By ISA-L, but for short pieces, where a call and its set-up cost more than the work: there by the
 * processor's own instruction. */
CRC32C_WITH_INSTRUCTION static inline uint32_t crc32c_instruction(
    uint32_t crc, const uint8_t *bytes, size_t size)
{
    if (size > CRC32C_SHORT_BYTES_MAX) {
        return crc32c_library(crc, bytes, size);
    }
    uint64_t wide = crc;
    for (; size >= 8; bytes += 8, size -= 8) {
        uint64_t word = 0;
        memcpy(&word, bytes, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; size > 0; bytes++, size--) {
        crc = __builtin_ia32_crc32qi(crc, *bytes);
    }
    return crc;
}
#endif

#endif
