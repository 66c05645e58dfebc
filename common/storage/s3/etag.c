/* SPDX-License-Identifier: Apache-2.0
 * MD5 of the MD5s, and their number. Called by common/storage/upload.c. */
#include "common/storage/s3/etag.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "common/pure/text.h"

#define MD5_BYTES 16

static bool parse_md5(const char *etag, unsigned char ret_bytes[MD5_BYTES])
{
    size_t length = strlen(etag);
    if (length == 2 * MD5_BYTES + 2 && etag[0] == '"' && etag[length - 1] == '"') {
        etag++;
        length -= 2;
    }
    for (size_t i = 0; i < MD5_BYTES && length == 2 * MD5_BYTES; i++) {
        int high = text_hex_digit(etag[2 * i]);
        int low = text_hex_digit(etag[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        ret_bytes[i] = (unsigned char)(high * 16 + low);
    }
    return length == 2 * MD5_BYTES;
}

static bool sum_etags(EVP_MD_CTX *context, const char *const *etags, uint32_t count,
    unsigned char ret_sum[EVP_MAX_MD_SIZE])
{
    unsigned char bytes[MD5_BYTES];
    if (context == NULL || EVP_DigestInit_ex(context, EVP_md5(), NULL) != 1) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!parse_md5(etags[i], bytes) || EVP_DigestUpdate(context, bytes, MD5_BYTES) != 1) {
            return false;
        }
    }
    return EVP_DigestFinal_ex(context, ret_sum, NULL) == 1;
}

bool s3_upload_etag(const char *const *etags, uint32_t count, char ret_etag[S3_UPLOAD_ETAG_BYTES])
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = sum_etags(context, etags, count, sum);
    EVP_MD_CTX_free(context);
    if (!good) {
        return false;
    }
    size_t used = 0;
    ret_etag[used++] = '"';
    for (size_t i = 0; i < MD5_BYTES; i++) {
        used += (size_t)snprintf(ret_etag + used, S3_UPLOAD_ETAG_BYTES - used, "%02x", sum[i]);
    }
    (void)snprintf(ret_etag + used, S3_UPLOAD_ETAG_BYTES - used, "-%" PRIu32 "\"", count);
    return true;
}
