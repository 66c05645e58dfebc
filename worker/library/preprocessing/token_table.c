/* SPDX-License-Identifier: Apache-2.0
 * Owns an index of tokens that does not change any more. Called by lookup.c for each batch, in any
 * number of threads. */
#include "worker/library/preprocessing/token_table.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/base/utf8.h"
#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/fingerprint.h"

#define TOKEN_SHOWN_BYTES 64

cadre_dtype token_table_dtype(const struct token_table *table)
{
    return cadre_tensor_dtype(table->tokens);
}

int64_t token_table_count(const struct token_table *table)
{
    return cadre_tensor_count(table->tokens);
}

int tokens_are_integers(cadre_dtype dtype)
{
    return dtype >= CADRE_I64 && dtype <= CADRE_U8;
}

void tokens_widen(const cadre_tensor *tensor, int64_t first, size_t count, int64_t to[])
{
    cadre_dtype dtype = cadre_tensor_dtype(tensor);
    const char *from =
        (const char *)cadre_tensor_const_data(tensor) + (size_t)first * cadre_dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        switch (dtype) {
        case CADRE_I64:
            to[i] = ((const int64_t *)(const void *)from)[i];
            break;
        case CADRE_I32:
            to[i] = ((const int32_t *)(const void *)from)[i];
            break;
        case CADRE_I16:
            to[i] = ((const int16_t *)(const void *)from)[i];
            break;
        case CADRE_I8:
            to[i] = ((const int8_t *)(const void *)from)[i];
            break;
        case CADRE_U32:
            to[i] = ((const uint32_t *)(const void *)from)[i];
            break;
        case CADRE_U16:
            to[i] = ((const uint16_t *)(const void *)from)[i];
            break;
        default:
            CADRE_ASSERT(dtype == CADRE_U8);
            to[i] = ((const uint8_t *)(const void *)from)[i];
            break;
        }
    }
}

const char *token_text(
    cadre_dtype dtype, const void *tokens, int64_t i, char text[TOKEN_TEXT_BYTES])
{
    if (dtype != CADRE_STRING) {
        snprintf(text, TOKEN_TEXT_BYTES, "%" PRId64, ((const int64_t *)tokens)[i]);
        return text;
    }
    const cadre_string token = ((const cadre_string *)tokens)[i];
    size_t used = 0;
    size_t at = 0;
    text[used++] = '"';
    while (at < token.size && used < TOKEN_SHOWN_BYTES) {
        size_t whole = utf8_printable(token.bytes + at, token.size - at);
        if (whole > 0) {
            memcpy(text + used, token.bytes + at, whole);
            used += whole;
            at += whole;
        } else {
            used += (size_t)snprintf(text + used, TOKEN_TEXT_BYTES - used, "\\x%02x",
                (unsigned)(unsigned char)token.bytes[at]);
            at++;
        }
    }
    snprintf(text + used, TOKEN_TEXT_BYTES - used, at < token.size ? "...\"" : "\"");
    return text;
}

static uint64_t hash_of(cadre_dtype dtype, const void *tokens, size_t i)
{
    if (dtype == CADRE_STRING) {
        const cadre_string *token = (const cadre_string *)tokens + i;
        return fingerprint64(token->bytes, token->size);
    }
    return prng_mix((uint64_t)((const int64_t *)tokens)[i]);
}

static uint64_t home_of(const struct token_table *table, uint64_t hash)
{
    return ((hash >> 32) * table->capacity) >> 32;
}

static bool token_table_same(const struct token_table *table, uint32_t number, cadre_dtype dtype,
    const void *tokens, size_t i)
{
    const void *own = cadre_tensor_const_data(table->tokens);
    if (dtype != CADRE_STRING) {
        return ((const int64_t *)own)[number] == ((const int64_t *)tokens)[i];
    }
    const cadre_string *a = (const cadre_string *)own + number;
    const cadre_string *b = (const cadre_string *)tokens + i;
    return a->size == b->size && (a->size == 0 || memcmp(a->bytes, b->bytes, a->size) == 0);
}

/* The slot where the token stands, or the empty one where it would. */
static uint64_t find_slot(
    const struct token_table *table, cadre_dtype dtype, const void *tokens, size_t i, uint64_t hash)
{
    uint64_t at = home_of(table, hash);
    for (;;) {
        const struct token_slot *slot = &table->slots[at];
        if (slot->number == 0 || (slot->tag == (uint32_t)hash &&
                                     token_table_same(table, slot->number - 1, dtype, tokens, i))) {
            return at;
        }
        at = at + 1 == table->capacity ? 0 : at + 1;
    }
}

/* Three rounds over the block: what the next one reads is on its way meanwhile. */
void token_table_find(const struct token_table *table, const void *tokens, size_t count,
    uint32_t numbers[], uint64_t hashes[])
{
    CADRE_ASSERT(count <= TOKEN_BLOCK);
    cadre_dtype dtype = token_table_dtype(table);
    const char *own = cadre_tensor_const_data(table->tokens);
    size_t width = cadre_dtype_bytes(dtype);
    for (size_t i = 0; i < count; i++) {
        hashes[i] = hash_of(dtype, tokens, i);
        __builtin_prefetch(&table->slots[home_of(table, hashes[i])]);
    }
    for (size_t i = 0; i < count; i++) {
        struct token_slot slot = table->slots[home_of(table, hashes[i])];
        if (slot.number != 0) {
            __builtin_prefetch(own + (slot.number - 1) * width);
        }
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t number = table->slots[find_slot(table, dtype, tokens, i, hashes[i])].number;
        numbers[i] = number == 0 ? TOKEN_UNKNOWN : number - 1;
    }
}

static cadre_status copy_tokens(
    const cadre_tensor *tokens, cadre_tensor **ret_copy, struct cadre_error *error)
{
    if (cadre_tensor_dtype(tokens) == CADRE_STRING) {
        return tensor_copy(tokens, ret_copy, error);
    }
    CADRE_TRY(tensor_create(CADRE_I64, 1, cadre_tensor_dims(tokens), ret_copy, error));
    tokens_widen(tokens, 0, (size_t)cadre_tensor_count(tokens), cadre_tensor_data(*ret_copy));
    return CADRE_OK;
}

static cadre_status token_table_fill(
    struct token_table *table, const char *what, struct cadre_error *error)
{
    cadre_dtype dtype = token_table_dtype(table);
    const void *tokens = cadre_tensor_const_data(table->tokens);
    int64_t count = token_table_count(table);
    for (int64_t i = 0; i < count; i++) {
        uint64_t hash = hash_of(dtype, tokens, (size_t)i);
        struct token_slot *slot = &table->slots[find_slot(table, dtype, tokens, (size_t)i, hash)];
        if (slot->number != 0) {
            char text[TOKEN_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s stands there twice, as %s %" PRIu32 " and %" PRId64 "; leave one of them out",
                token_text(dtype, tokens, i, text), what, slot->number, i + 1);
        }
        *slot = (struct token_slot){.tag = (uint32_t)hash, .number = (uint32_t)(i + 1)};
    }
    return CADRE_OK;
}

cadre_status token_table_make(const cadre_tensor *tokens, const char *what,
    struct token_table *ret_table, struct cadre_error *error)
{
    *ret_table = (struct token_table){0};
    cadre_dtype dtype = cadre_tensor_dtype(tokens);
    int64_t count = cadre_tensor_count(tokens);
    if (cadre_tensor_rank(tokens) != 1 || (dtype != CADRE_STRING && !tokens_are_integers(dtype))) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a list of %ss is a tensor of strings or integers with one dimension, and this one is "
            "%s",
            what,
            tensor_shape_text(dtype, cadre_tensor_rank(tokens), cadre_tensor_dims(tokens), shape));
    }
    if (count == 0 || count >= TOKENS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "there are %" PRId64 " %ss, and there must be 1 to %" PRId64, count, what,
            TOKENS_MAX - 1);
    }
    CADRE_TRY(copy_tokens(tokens, &ret_table->tokens, error));
    ret_table->capacity = TOKEN_SLOTS((uint64_t)count);
    ret_table->slots = fault_point("preprocessing.malloc")
                           ? NULL
                           : calloc(ret_table->capacity, sizeof *ret_table->slots);
    cadre_status status = ret_table->slots == NULL
                              ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                    "no memory to index %" PRId64 " %ss", count, what)
                              : token_table_fill(ret_table, what, error);
    if (status != CADRE_OK) {
        token_table_free(ret_table);
    }
    return status;
}

void token_table_free(struct token_table *table)
{
    cadre_tensor_release(table->tokens);
    free(table->slots);
    *table = (struct token_table){0};
}
