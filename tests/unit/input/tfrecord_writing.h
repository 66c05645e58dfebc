/* SPDX-License-Identifier: Apache-2.0
 * TFRecord files for tests, made without the code under test, also wrong ones. */
#ifndef CADRE_TESTS_INPUT_TFRECORD_WRITING_H
#define CADRE_TESTS_INPUT_TFRECORD_WRITING_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"

/* "foo" and "bar" as TensorFlow's own writer made them, quoted in the tests of Apache Beam
 * (sdks/python/apache_beam/io/tfrecordio_test.py). */
#define FOO_BAR_BYTES 38
extern const uint8_t foo_bar[FOO_BAR_BYTES];

/* Frames in memory; zeroed: none. */
struct frames {
    uint8_t *bytes;
    size_t size;
    size_t room;
    size_t starts[4096]; /* where each begins; starts[count]: the end */
    size_t count;
};

void frames_clear(struct frames *frames);

/* A CRC-32C by its definition, bit after bit, and masked. */
uint32_t plain_crc32c(const void *bytes, size_t size);
uint32_t plain_mask(uint32_t crc);

void frames_add(struct frames *frames, const void *data, size_t size);

/* The same with another number as its length, whose checksum is right. */
void frames_add_wrong_length(struct frames *frames, uint64_t length, const void *data, size_t size);

/* Record `number` of `size` bytes, which no other record has. */
void frames_add_pattern(struct frames *frames, uint64_t number, size_t size);

/* `count` of them, sizes from 0 to `size_max` in a fixed pattern. */
void frames_add_patterns(struct frames *frames, size_t count, size_t size_max);

/* The data of record `number`. */
cadre_string frames_record(const struct frames *frames, size_t number);

/* Writes them to a scratch file; returns its path. */
const char *frames_write(const struct frames *frames, const char *name);

/* Fails the test unless `records` are those from `first` on. */
void frames_expect(
    const struct frames *frames, size_t first, const cadre_string *records, size_t count);

#endif
