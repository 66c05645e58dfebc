/* SPDX-License-Identifier: Apache-2.0
 * TFRecord framing for the floor and the generator, apart from the library's own code: a comparison
 * must not use the code that it measures. */
#ifndef BENCH_INPUT_FRAME_H
#define BENCH_INPUT_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEAD_BYTES 12
#define FRAME_BYTES      16 /* around a record */

/* The CRC-32C of TFRecord, masked; the fastest that this machine has for the length. */
uint32_t frame_crc(const void *bytes, size_t count);

#endif
