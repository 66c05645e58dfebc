/* SPDX-License-Identifier: Apache-2.0
 * A 64-bit hash of bytes that never changes: FarmHash's Fingerprint64, which TensorFlow uses to put
 * unknown strings into buckets (https://github.com/google/farmhash, farmhashna). */
#ifndef CADRE_WORKER_PREPROCESSING_FINGERPRINT_H
#define CADRE_WORKER_PREPROCESSING_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

/* `bytes` may be NULL when `size` is 0. The same on every machine. */
uint64_t fingerprint64(const void *bytes, size_t size);

#endif
