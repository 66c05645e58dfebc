/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 over libcrypto: of bytes, of a descriptor, of a stream; and a hash as hexadecimal
 * digits. */
#include "common/base/sha256.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

#define READ_BYTES (64 * 1024)

struct sha256_stream {
    EVP_MD_CTX *context;
};

static cadre_status sha256_refused(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "libcrypto could not compute a SHA-256 hash; memory is short or it is set up without it");
}

cadre_status sha256_of(
    const void *bytes, size_t size, struct sha256 *ret_hash, struct cadre_error *error)
{
    if (EVP_Digest(bytes, size, ret_hash->bytes, NULL, EVP_sha256(), NULL) != 1) {
        return sha256_refused(error);
    }
    return CADRE_OK;
}

cadre_status sha256_open(struct sha256_stream **ret_stream, struct cadre_error *error)
{
    struct sha256_stream *stream = calloc(1, sizeof *stream);
    if (stream != NULL) {
        stream->context = EVP_MD_CTX_new();
    }
    if (stream == NULL || stream->context == NULL ||
        EVP_DigestInit_ex(stream->context, EVP_sha256(), NULL) != 1) {
        sha256_close(stream);
        return sha256_refused(error);
    }
    *ret_stream = stream;
    return CADRE_OK;
}

cadre_status sha256_add(
    struct sha256_stream *stream, const void *bytes, size_t size, struct cadre_error *error)
{
    return EVP_DigestUpdate(stream->context, bytes, size) == 1 ? CADRE_OK : sha256_refused(error);
}

cadre_status sha256_finish(
    struct sha256_stream *stream, struct sha256 *ret_hash, struct cadre_error *error)
{
    return EVP_DigestFinal_ex(stream->context, ret_hash->bytes, NULL) == 1 ? CADRE_OK
                                                                           : sha256_refused(error);
}

void sha256_close(struct sha256_stream *stream)
{
    if (stream != NULL) {
        EVP_MD_CTX_free(stream->context);
        free(stream);
    }
}

static cadre_status add_all(struct sha256_stream *stream, int fd, void *buffer, uint64_t *ret_bytes,
    struct cadre_error *error)
{
    uint64_t total = 0;
    for (;;) {
        ssize_t count = read(fd, buffer, READ_BYTES);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return cadre_error_errno(error, errno, "read while hashing");
        }
        if (count == 0) {
            break;
        }
        CADRE_TRY(sha256_add(stream, buffer, (size_t)count, error));
        total += (uint64_t)count;
    }
    if (ret_bytes != NULL) {
        *ret_bytes = total;
    }
    return CADRE_OK;
}

cadre_status sha256_of_fd(
    int fd, struct sha256 *ret_hash, uint64_t *ret_bytes, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT void *buffer = malloc(READ_BYTES);
    if (buffer == NULL) {
        return sha256_refused(error);
    }
    struct sha256_stream *stream = NULL;
    CADRE_TRY(sha256_open(&stream, error));
    cadre_status status = add_all(stream, fd, buffer, ret_bytes, error);
    if (status == CADRE_OK) {
        status = sha256_finish(stream, ret_hash, error);
    }
    sha256_close(stream);
    return status;
}

void sha256_hex(const struct sha256 *hash, char ret_hex[SHA256_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        ret_hex[2 * i] = digits[hash->bytes[i] >> 4];
        ret_hex[2 * i + 1] = digits[hash->bytes[i] & 15];
    }
    ret_hex[2 * SHA256_BYTES] = '\0';
}

static int digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool sha256_parse(const char *text, struct sha256 *ret_hash)
{
    if (strnlen(text, SHA256_HEX_BYTES) != SHA256_HEX_BYTES - 1) {
        return false;
    }
    struct sha256 parsed;
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        int high = digit_value(text[2 * i]);
        int low = digit_value(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        parsed.bytes[i] = (uint8_t)(high << 4 | low);
    }
    *ret_hash = parsed;
    return true;
}

bool sha256_equal(const struct sha256 *a, const struct sha256 *b)
{
    return memcmp(a->bytes, b->bytes, SHA256_BYTES) == 0;
}

char *sha256_path(const char *folder, const uint8_t bytes[SHA256_BYTES])
{
    struct sha256 hash;
    char hex[SHA256_HEX_BYTES];
    char *path = NULL;
    memcpy(hash.bytes, bytes, sizeof hash.bytes);
    sha256_hex(&hash, hex);
    return asprintf(&path, "%s/%s", folder, hex) >= 0 ? path : NULL;
}
