/* SPDX-License-Identifier: Apache-2.0
 * Bytes as text, in manifests (RFC 4648, section 4). */
#ifndef CADRE_RUNTIME_FORMAT_BASE64_H
#define CADRE_RUNTIME_FORMAT_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text, malloc'ed and terminated; NULL without memory. */
char *base64_encode(const uint8_t *bytes, size_t count);

/* *ret_bytes is malloc'ed, never NULL on success. False: it is not such a text, or there is no
 * memory. */
bool base64_decode(const char *text, size_t length, uint8_t **ret_bytes, size_t *ret_count);

#endif
