/* SPDX-License-Identifier: Apache-2.0
 * Content hashes: the name under which an executable or a file travels. By libcrypto. */
#ifndef CADRE_BASE_SHA256_H
#define CADRE_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define SHA256_BYTES     32
#define SHA256_HEX_BYTES 65 /* 64 lower-case digits and the terminator */

struct sha256 {
    uint8_t bytes[SHA256_BYTES];
};

/* Hash of `size` bytes. Fails only when libcrypto does (RESOURCE_EXHAUSTED). Thread-safe. */
cadre_status sha256_of(
    const void *bytes, size_t size, struct sha256 *ret_hash, struct cadre_error *error);

/* Hash of what `fd` yields from its present offset to its end, and how many bytes that was (may be
 * NULL). The descriptor stays the caller's. */
cadre_status sha256_of_fd(
    int fd, struct sha256 *ret_hash, uint64_t *ret_bytes, struct cadre_error *error);

/* A hash of bytes that arrive in chunks, such as an upload. The object is the caller's, until
 * sha256_close(). */
struct sha256_stream;
/* *ret_stream is a stream without bytes. */
cadre_status sha256_open(struct sha256_stream **ret_stream, struct cadre_error *error);
/* Adds `size` bytes. */
cadre_status sha256_add(
    struct sha256_stream *stream, const void *bytes, size_t size, struct cadre_error *error);
/* The hash of all bytes added; to be called once. */
cadre_status sha256_finish(
    struct sha256_stream *stream, struct sha256 *ret_hash, struct cadre_error *error);
/* Frees the stream; NULL is fine. */
void sha256_close(struct sha256_stream *stream);

/* As 64 lower-case hexadecimal digits, terminated. */
void sha256_hex(const struct sha256 *hash, char ret_hex[SHA256_HEX_BYTES]);

/* "<folder>/<64 digits>": where a content of that hash is kept. malloc'ed; NULL when memory is out.
 */
char *sha256_path(const char *folder, const uint8_t bytes[SHA256_BYTES]);

/* False unless `text` is exactly 64 hexadecimal digits in lower case: one hash has one spelling. */
bool sha256_parse(const char *text, struct sha256 *ret_hash);

/* True when the two hashes are the same. */
bool sha256_equal(const struct sha256 *a, const struct sha256 *b);

#endif
