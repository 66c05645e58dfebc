/* SPDX-License-Identifier: Apache-2.0
 * AWS Signature Version 4 in headers, as "Signature Calculations for the Authorization Header" of
 * the S3 API reference has it: paths are encoded once and not normalised, which only S3 does. */
#include "common/storage/s3/sign.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/sha256.h"
#include "common/pure/assert.h"
#include "common/storage/s3/credentials.h"
#include "common/storage/s3/secret.h"

#define ALGORITHM   "AWS4-HMAC-SHA256"
#define SENT_MAX    (S3_HEADERS_MAX + 4) /* and Host, the date, the payload's hash, the token */
#define TIME_BYTES  17                   /* "20130524T000000Z" */
#define DAY_BYTES   9
#define SCOPE_BYTES (DAY_BYTES + 80)
#define FIXED_BYTES 1024 /* of all that has a fixed length */

/* Where text is appended; it has room, as room_of() counted. */
struct writer {
    char *at;
    const char *end;
};

struct signing {
    const struct s3_request *request;
    const struct s3_credentials *credentials;
    struct writer writer;
    struct s3_pair query[S3_QUERY_MAX]; /* encoded, sorted */
    struct s3_pair headers[SENT_MAX];   /* names in lower case, sorted */
    size_t header_count;
    const char *path; /* encoded */
    char time[TIME_BYTES];
    char day[DAY_BYTES];
    char scope[SCOPE_BYTES]; /* "20130524/us-east-1/s3/aws4_request" */
};

static void put_bytes(struct writer *writer, const char *bytes, size_t count)
{
    CADRE_ASSERT(count < (size_t)(writer->end - writer->at));
    memcpy(writer->at, bytes, count);
    writer->at += count;
}

static void put(struct writer *writer, const char *text)
{
    put_bytes(writer, text, strlen(text));
}

/* Ends a text that began at `begin`. */
static char *put_end(struct writer *writer, char *begin)
{
    put_bytes(writer, "", 1);
    return begin;
}

static bool is_unreserved(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static const char *encode(struct writer *writer, const char *text, bool is_path)
{
    static const char digits[] = "0123456789ABCDEF";
    char *begin = writer->at;
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (is_unreserved(*text) || (is_path && *text == '/')) {
            put_bytes(writer, text, 1);
        } else {
            put_bytes(writer, (char[]){'%', digits[c >> 4], digits[c & 15]}, 3);
        }
    }
    return put_end(writer, begin);
}

/* A name of a header in lower case. */
static const char *lowered(struct writer *writer, const char *name)
{
    char *begin = writer->at;
    put(writer, name);
    for (char *at = begin; at < writer->at; at++) {
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    }
    return put_end(writer, begin);
}

static int compare_pairs(const struct s3_pair *a, const struct s3_pair *b)
{
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : strcmp(a->value, b->value);
}

/* They are few, and mostly in order. */
static void sort_pairs(struct s3_pair *pairs, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct s3_pair moved = pairs[i];
        size_t at = i;
        for (; at > 0 && compare_pairs(&pairs[at - 1], &moved) > 0; at--) {
            pairs[at] = pairs[at - 1];
        }
        pairs[at] = moved;
    }
}

/* A value that begins another header, or that servers read differently. */
static bool is_clean(const char *value)
{
    for (; *value != '\0'; value++) {
        if ((unsigned char)*value < ' ' || *value == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool is_token(const char *name)
{
    bool is_empty = *name == '\0';
    for (; *name != '\0'; name++) {
        if (!is_unreserved(*name)) {
            return false;
        }
    }
    return !is_empty;
}

/* Values are not in messages: they may be secrets. */
static cadre_status check(const struct s3_request *request,
    const struct s3_credentials *credentials, struct cadre_error *error)
{
    if (request->query_count > S3_QUERY_MAX || request->header_count > S3_HEADERS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a request with %zu headers and %zu pairs in its query is not signed: at most %d and "
            "%d",
            request->header_count, request->query_count, S3_HEADERS_MAX, S3_QUERY_MAX);
    }
    for (size_t i = 0; i < request->header_count; i++) {
        if (!is_token(request->headers[i].name) || !is_clean(request->headers[i].value)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "header %zu of the request has a control character in its value, or a name that "
                "is none",
                i + 1);
        }
    }
    if (credentials != NULL &&
        (!is_clean(credentials->access_key) ||
            (credentials->session_token != NULL && !is_clean(credentials->session_token)))) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the credentials of %s have a control character in them: are they cut wrongly?",
            credentials->source != NULL ? credentials->source : "this process");
    }
    return CADRE_OK;
}

static const char *token_of(const struct s3_credentials *credentials)
{
    bool has = credentials != NULL && credentials->session_token != NULL;
    return has ? credentials->session_token : "";
}

/* Enough for all that is written: the request as it is sent, once more to be signed, and names. */
static size_t room_of(
    const struct s3_request *request, const struct s3_credentials *credentials, const char *region)
{
    size_t path = 3 * strlen(request->path) + 2;
    size_t query = 0;
    size_t headers = strlen(request->host) + strlen(token_of(credentials));
    for (size_t i = 0; i < request->query_count; i++) {
        const struct s3_pair *pair = &request->query[i];
        query += 3 * (strlen(pair->name) + (pair->value != NULL ? strlen(pair->value) : 0)) + 4;
    }
    for (size_t i = 0; i < request->header_count; i++) {
        headers += 2 * strlen(request->headers[i].name) + strlen(request->headers[i].value) + 8;
    }
    size_t keys = 0;
    if (credentials != NULL) {
        keys = strlen(credentials->access_key) + strlen(credentials->secret_key);
    }
    return sizeof(char *) * (SENT_MAX + 2) + 3 * (path + query) + 4 * headers + keys +
           4 * strlen(region) + strlen(request->method) + strlen(request->payload_sha256) +
           2 * FIXED_BYTES;
}

static bool set_time(struct signing *signing, const char *region, uint64_t now_s)
{
    time_t seconds = (time_t)now_s;
    struct tm tm;
    if (now_s > UINT64_C(253402300799) || gmtime_r(&seconds, &tm) == NULL) { /* the year 9999 */
        return false;
    }
    (void)strftime(signing->time, sizeof signing->time, "%Y%m%dT%H%M%SZ", &tm);
    (void)strftime(signing->day, sizeof signing->day, "%Y%m%d", &tm);
    int length = snprintf(
        signing->scope, sizeof signing->scope, "%s/%s/s3/aws4_request", signing->day, region);
    return length > 0 && (size_t)length < sizeof signing->scope;
}

/* Encodes path and query, and writes them as they are sent. */
static char *write_target(struct signing *signing)
{
    const struct s3_request *request = signing->request;
    struct writer *writer = &signing->writer;
    struct s3_pair sent[S3_QUERY_MAX];
    signing->path = encode(writer, request->path, true);
    for (size_t i = 0; i < request->query_count; i++) {
        const char *value = request->query[i].value;
        sent[i].name = encode(writer, request->query[i].name, false);
        sent[i].value = value != NULL ? encode(writer, value, false) : NULL;
        signing->query[i] = sent[i];
        signing->query[i].value = value != NULL ? sent[i].value : "";
    }
    sort_pairs(signing->query, request->query_count);
    char *begin = writer->at;
    put(writer, signing->path);
    for (size_t i = 0; i < request->query_count; i++) {
        put(writer, i == 0 ? "?" : "&");
        put(writer, sent[i].name);
        if (sent[i].value != NULL) {
            put(writer, "=");
            put(writer, sent[i].value);
        }
    }
    return put_end(writer, begin);
}

static void add_header(struct signing *signing, const char *name, const char *value)
{
    CADRE_ASSERT(signing->header_count < SENT_MAX);
    signing->headers[signing->header_count++] = (struct s3_pair){.name = name, .value = value};
}

/* All that are sent but Authorization. False: one is there twice. */
static bool collect_headers(struct signing *signing)
{
    const struct s3_request *request = signing->request;
    add_header(signing, "host", request->host);
    for (size_t i = 0; i < request->header_count; i++) {
        add_header(signing, lowered(&signing->writer, request->headers[i].name),
            request->headers[i].value);
    }
    if (signing->credentials != NULL) {
        add_header(signing, "x-amz-content-sha256", request->payload_sha256);
        add_header(signing, "x-amz-date", signing->time);
    }
    if (token_of(signing->credentials)[0] != '\0') {
        add_header(signing, "x-amz-security-token", signing->credentials->session_token);
    }
    sort_pairs(signing->headers, signing->header_count);
    for (size_t i = 1; i < signing->header_count; i++) {
        if (strcmp(signing->headers[i - 1].name, signing->headers[i].name) == 0) {
            return false;
        }
    }
    return true;
}

/* Without spaces at its ends, and with one where it has several. */
static void put_trimmed(struct writer *writer, const char *value)
{
    const char *last = value + strlen(value);
    while (*value == ' ') {
        value++;
    }
    while (last > value && last[-1] == ' ') {
        last--;
    }
    for (; value < last; value++) {
        if (*value != ' ' || value[1] != ' ') {
            put_bytes(writer, value, 1);
        }
    }
}

static void put_header_names(struct signing *signing)
{
    for (size_t i = 0; i < signing->header_count; i++) {
        put(&signing->writer, i == 0 ? "" : ";");
        put(&signing->writer, signing->headers[i].name);
    }
}

static const char *write_canonical_request(struct signing *signing)
{
    struct writer *writer = &signing->writer;
    char *begin = writer->at;
    put(writer, signing->request->method);
    put(writer, "\n");
    put(writer, signing->path);
    put(writer, "\n");
    for (size_t i = 0; i < signing->request->query_count; i++) {
        put(writer, i == 0 ? "" : "&");
        put(writer, signing->query[i].name);
        put(writer, "=");
        put(writer, signing->query[i].value);
    }
    put(writer, "\n");
    for (size_t i = 0; i < signing->header_count; i++) {
        put(writer, signing->headers[i].name);
        put(writer, ":");
        put_trimmed(writer, signing->headers[i].value);
        put(writer, "\n");
    }
    put(writer, "\n");
    put_header_names(signing);
    put(writer, "\n");
    put(writer, signing->request->payload_sha256);
    return put_end(writer, begin);
}

static bool hmac(const struct sha256 *key, const char *text, struct sha256 *ret_sum)
{
    return HMAC(EVP_sha256(), key->bytes, SHA256_BYTES, (const unsigned char *)text, strlen(text),
               ret_sum->bytes, NULL) != NULL;
}

/* The signature of a text; false: OpenSSL refuses. */
static bool sign_text(
    struct signing *signing, const char *region, const char *text, struct sha256 *ret_signature)
{
    struct writer *writer = &signing->writer;
    struct sha256 a, b;
    char *key = writer->at;
    put(writer, "AWS4");
    put(writer, signing->credentials->secret_key);
    size_t length = (size_t)(writer->at - key);
    (void)put_end(writer, key);
    bool good = HMAC(EVP_sha256(), key, (int)length, (const unsigned char *)signing->day,
                    strlen(signing->day), a.bytes, NULL) != NULL &&
                hmac(&a, region, &b) && hmac(&b, "s3", &a) && hmac(&a, "aws4_request", &b) &&
                hmac(&b, text, ret_signature);
    s3_secret_wipe(&a, sizeof a);
    s3_secret_wipe(&b, sizeof b);
    return good;
}

/* "authorization: AWS4-HMAC-SHA256 Credential=..., SignedHeaders=..., Signature=..." */
static cadre_status write_authorization(
    struct signing *signing, const char *region, char **ret_header, struct cadre_error *error)
{
    struct writer *writer = &signing->writer;
    struct sha256 hash;
    char hex[SHA256_HEX_BYTES];
    const char *canonical = write_canonical_request(signing);
    CADRE_TRY(sha256_of(canonical, strlen(canonical), &hash, error));
    sha256_hex(&hash, hex);
    char *text = writer->at;
    put(writer, ALGORITHM "\n");
    put(writer, signing->time);
    put(writer, "\n");
    put(writer, signing->scope);
    put(writer, "\n");
    put(writer, hex);
    (void)put_end(writer, text);
    if (!sign_text(signing, region, text, &hash)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "libcrypto could not sign a request; memory is short or it is set up without SHA-256");
    }
    sha256_hex(&hash, hex);
    *ret_header = writer->at;
    put(writer, "authorization: " ALGORITHM " Credential=");
    put(writer, signing->credentials->access_key);
    put(writer, "/");
    put(writer, signing->scope);
    put(writer, ", SignedHeaders=");
    put_header_names(signing);
    put(writer, ", Signature=");
    put(writer, hex);
    (void)put_end(writer, *ret_header);
    return CADRE_OK;
}

static cadre_status write_all(struct signing *signing, const char *region,
    struct s3_signed *ret_signed, struct cadre_error *error)
{
    struct writer *writer = &signing->writer;
    ret_signed->target = write_target(signing);
    if (!collect_headers(signing)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a request has a header twice, or one that signing adds: give it once");
    }
    for (size_t i = 0; i < signing->header_count; i++) {
        ret_signed->headers[i] = writer->at;
        put(writer, signing->headers[i].name);
        put(writer, ": ");
        put(writer, signing->headers[i].value);
        (void)put_end(writer, writer->at);
    }
    ret_signed->header_count = signing->header_count;
    if (signing->credentials == NULL) {
        return CADRE_OK;
    }
    return write_authorization(
        signing, region, &ret_signed->headers[ret_signed->header_count++], error);
}

cadre_status s3_sign(const struct s3_request *request, const struct s3_credentials *credentials,
    const char *region, uint64_t now_s, struct s3_signed *ret_signed, struct cadre_error *error)
{
    CADRE_ASSERT(request->path[0] == '/');
    struct signing signing = {.request = request, .credentials = credentials};
    *ret_signed = (struct s3_signed){.target = NULL};
    CADRE_TRY(check(request, credentials, error));
    if (!set_time(&signing, region, now_s)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a request of the time %llu for the region \"%.40s\" cannot be signed: is the clock "
            "right?",
            (unsigned long long)now_s, region);
    }
    size_t room = room_of(request, credentials, region);
    char *memory = s3_secret_new(room);
    if (memory == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a request of %zu bytes", room);
    }
    *ret_signed = (struct s3_signed){
        .headers = (char **)(void *)memory, .memory = memory, .memory_bytes = room};
    signing.writer =
        (struct writer){.at = memory + sizeof(char *) * (SENT_MAX + 1), .end = memory + room};
    cadre_status status = write_all(&signing, region, ret_signed, error);
    if (status != CADRE_OK) {
        s3_signed_wipe(ret_signed);
    }
    return status;
}

void s3_signed_wipe(struct s3_signed *signed_request)
{
    s3_secret_free(signed_request->memory, signed_request->memory_bytes);
    *signed_request = (struct s3_signed){.target = NULL};
}
