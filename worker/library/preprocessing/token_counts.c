/* SPDX-License-Identifier: Apache-2.0
 * Owns a table of tokens and how often each came. Called while a vocabulary is adapted
 * (runtime/adapt/vocabulary.c), also to merge the tables of all workers. */
#include "worker/library/preprocessing/token_counts.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/fingerprint.h"
#include "worker/library/preprocessing/token_table.h"

#define ROOM_LEAST 16

/* A token by itself: its bytes, or NULL and the integer. */
struct token {
    const char *bytes;
    int64_t integer; /* or the number of bytes */
};

void token_counts_empty(struct token_counts *counts)
{
    counts->count = 0;
    counts->used = 0;
    if (counts->slots != NULL) {
        memset(counts->slots, 0, counts->slot_count * sizeof counts->slots[0]);
    }
}

void token_counts_free(struct token_counts *counts)
{
    free(counts->tokens);
    free(counts->slots);
    free(counts->bytes);
    *counts = (struct token_counts){.dtype = counts->dtype};
}

static cadre_status no_memory(const struct token_counts *counts, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "no memory to count more than %zu different tokens", counts->count);
}

static uint64_t hash_of(const struct token_counts *counts, const struct token *token)
{
    return counts->dtype == CADRE_STRING ? fingerprint64(token->bytes, (size_t)token->integer)
                                         : prng_mix((uint64_t)token->integer);
}

static bool token_counts_same(const struct token_counts *counts, const struct counted_token *own,
    const struct token *token, uint64_t hash)
{
    if (own->hash != hash || own->integer != token->integer) {
        return false;
    }
    return counts->dtype != CADRE_STRING || token->integer == 0 ||
           memcmp(counts->bytes + own->at, token->bytes, (size_t)token->integer) == 0;
}

/* The slot where the token stands, or the empty one where it would; slots are a power of two. */
static uint32_t *slot_of(
    const struct token_counts *counts, const struct token *token, uint64_t hash)
{
    for (size_t at = hash & (counts->slot_count - 1);; at = (at + 1) & (counts->slot_count - 1)) {
        uint32_t number = counts->slots[at];
        if (number == 0 || token_counts_same(counts, &counts->tokens[number - 1], token, hash)) {
            return &counts->slots[at];
        }
    }
}

/* --- room --- */

/* Twice as many tokens, in slots of which at most half are taken. */
static cadre_status token_counts_grow(struct token_counts *counts, struct cadre_error *error)
{
    size_t room = counts->room == 0 ? ROOM_LEAST : 2 * counts->room;
    if (room > TOKENS_MAX || fault_point("preprocessing.malloc")) {
        return no_memory(counts, error);
    }
    struct counted_token *tokens = realloc(counts->tokens, room * sizeof *tokens);
    if (tokens == NULL) {
        return no_memory(counts, error);
    }
    counts->tokens = tokens;
    uint32_t *slots = calloc(2 * room, sizeof *slots);
    if (slots == NULL) {
        return no_memory(counts, error);
    }
    free(counts->slots);
    counts->room = room;
    counts->slots = slots;
    counts->slot_count = 2 * room;
    for (size_t i = 0; i < counts->count; i++) {
        size_t at = tokens[i].hash & (counts->slot_count - 1);
        while (slots[at] != 0) {
            at = (at + 1) & (counts->slot_count - 1);
        }
        slots[at] = (uint32_t)(i + 1);
    }
    return CADRE_OK;
}

static cadre_status keep_bytes(struct token_counts *counts, const struct token *token,
    size_t *ret_at, struct cadre_error *error)
{
    size_t more = (size_t)token->integer;
    if (counts->size - counts->used < more) {
        size_t size = 2 * counts->size + more;
        char *bytes = fault_point("preprocessing.malloc") ? NULL : realloc(counts->bytes, size);
        if (bytes == NULL) {
            return no_memory(counts, error);
        }
        counts->bytes = bytes;
        counts->size = size;
    }
    if (more > 0) {
        memcpy(counts->bytes + counts->used, token->bytes, more);
    }
    *ret_at = counts->used;
    counts->used += more;
    return CADRE_OK;
}

static cadre_status count_token(struct token_counts *counts, const struct token *token,
    uint64_t hash, int64_t times, struct cadre_error *error)
{
    if (counts->count == counts->room) {
        CADRE_TRY(token_counts_grow(counts, error));
    }
    uint32_t *slot = slot_of(counts, token, hash);
    if (*slot != 0) {
        counts->tokens[*slot - 1].count += times;
        return CADRE_OK;
    }
    struct counted_token *own = &counts->tokens[counts->count];
    *own = (struct counted_token){.hash = hash, .count = times, .integer = token->integer};
    if (counts->dtype == CADRE_STRING) {
        CADRE_TRY(keep_bytes(counts, token, &own->at, error));
    }
    counts->count++;
    *slot = (uint32_t)counts->count;
    return CADRE_OK;
}

/* --- counting --- */

cadre_status token_counts_add(
    struct token_counts *counts, const cadre_tensor *tokens, struct cadre_error *error)
{
    int64_t total = cadre_tensor_count(tokens);
    bool strings = counts->dtype == CADRE_STRING;
    CADRE_ASSERT(strings ? cadre_tensor_dtype(tokens) == CADRE_STRING
                         : tokens_are_integers(cadre_tensor_dtype(tokens)) != 0);
    const cadre_string *texts = strings ? cadre_tensor_const_data(tokens) : NULL;
    int64_t block[TOKEN_BLOCK];
    for (int64_t first = 0; first < total; first += TOKEN_BLOCK) {
        size_t count = total - first < TOKEN_BLOCK ? (size_t)(total - first) : TOKEN_BLOCK;
        if (!strings) {
            tokens_widen(tokens, first, count, block);
        }
        for (size_t i = 0; i < count; i++) {
            const struct token token = {.bytes = strings ? texts[(size_t)first + i].bytes : NULL,
                .integer = strings ? (int64_t)texts[(size_t)first + i].size : block[i]};
            CADRE_TRY(count_token(counts, &token, hash_of(counts, &token), 1, error));
        }
    }
    return CADRE_OK;
}

static struct token token_at(const struct token_counts *counts, size_t i)
{
    const struct counted_token *own = &counts->tokens[i];
    bool strings = counts->dtype == CADRE_STRING;
    return (struct token){.bytes = strings && own->integer > 0 ? counts->bytes + own->at : NULL,
        .integer = own->integer};
}

cadre_status token_counts_merge(
    struct token_counts *counts, const struct token_counts *other, struct cadre_error *error)
{
    CADRE_ASSERT(counts->dtype == other->dtype);
    for (size_t i = 0; i < other->count; i++) {
        const struct token token = token_at(other, i);
        CADRE_TRY(
            count_token(counts, &token, other->tokens[i].hash, other->tokens[i].count, error));
    }
    return CADRE_OK;
}

/* --- as bytes: of each token how often it comes, the integer or size, the bytes --- */

#define HEAD_BYTES (2 * sizeof(int64_t))

size_t token_counts_bytes(const struct token_counts *counts)
{
    return counts->count * HEAD_BYTES + counts->used;
}

void token_counts_write(const struct token_counts *counts, char *to)
{
    for (size_t i = 0; i < counts->count; i++) {
        const struct token token = token_at(counts, i);
        const int64_t head[2] = {counts->tokens[i].count, token.integer};
        memcpy(to, head, sizeof head);
        to += sizeof head;
        if (token.bytes != NULL) {
            memcpy(to, token.bytes, (size_t)token.integer);
            to += token.integer;
        }
    }
}

cadre_status token_counts_read(
    struct token_counts *counts, const char *from, size_t bytes, struct cadre_error *error)
{
    while (bytes > 0) {
        int64_t head[2] = {0, 0};
        bool whole = bytes >= sizeof head;
        if (whole) {
            memcpy(head, from, sizeof head);
            from += sizeof head;
            bytes -= sizeof head;
        }
        size_t size = counts->dtype == CADRE_STRING ? (size_t)head[1] : 0;
        if (!whole || head[0] < 1 || size > bytes) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "what another task counted is cut off or damaged; all tasks must be of one "
                "version of Cadre");
        }
        const struct token token = {.bytes = from, .integer = head[1]};
        CADRE_TRY(count_token(counts, &token, hash_of(counts, &token), head[0], error));
        from += size;
        bytes -= size;
    }
    return CADRE_OK;
}

/* --- the vocabulary --- */

struct ranked {
    int64_t count;
    struct token token;
};

static int compare_integers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_integer(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    int order = compare_integers(b->count, a->count);
    return order != 0 ? order : compare_integers(b->token.integer, a->token.integer);
}

static int by_bytes(const void *left, const void *right)
{
    const struct ranked *a = left;
    const struct ranked *b = right;
    int order = compare_integers(b->count, a->count);
    int64_t least = a->token.integer < b->token.integer ? a->token.integer : b->token.integer;
    if (order == 0 && least > 0) {
        order = memcmp(b->token.bytes, a->token.bytes, (size_t)least);
    }
    return order != 0 ? order : compare_integers(b->token.integer, a->token.integer);
}

static bool is_one_of(
    const struct token_counts *counts, const cadre_tensor *list, const struct token *token)
{
    for (int64_t i = 0; i < cadre_tensor_count(list); i++) {
        if (counts->dtype != CADRE_STRING) {
            if (((const int64_t *)cadre_tensor_const_data(list))[i] == token->integer) {
                return true;
            }
            continue;
        }
        const cadre_string text = ((const cadre_string *)cadre_tensor_const_data(list))[i];
        if ((int64_t)text.size == token->integer &&
            (text.size == 0 || memcmp(text.bytes, token->bytes, text.size) == 0)) {
            return true;
        }
    }
    return false;
}

static cadre_status list_of(const struct token_counts *counts, const struct ranked *ranked,
    size_t count, cadre_tensor **ret_tokens, struct cadre_error *error)
{
    const int64_t dims[1] = {(int64_t)count};
    if (counts->dtype == CADRE_I64) {
        CADRE_TRY(tensor_create(CADRE_I64, 1, dims, ret_tokens, error));
        int64_t *integers = cadre_tensor_data(*ret_tokens);
        for (size_t i = 0; i < count; i++) {
            integers[i] = ranked[i].token.integer;
        }
        return CADRE_OK;
    }
    CADRE_FREE_AT_EXIT cadre_string *texts = calloc(count + 1, sizeof *texts);
    if (texts == NULL) {
        return no_memory(counts, error);
    }
    for (size_t i = 0; i < count; i++) {
        texts[i] =
            (cadre_string){.bytes = ranked[i].token.bytes, .size = (size_t)ranked[i].token.integer};
    }
    return tensor_from_data(CADRE_STRING, 1, dims, texts, ret_tokens, error);
}

cadre_status token_counts_vocabulary(const struct token_counts *counts, const cadre_tensor *without,
    int64_t most, cadre_tensor **ret_tokens, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT struct ranked *ranked =
        fault_point("preprocessing.malloc") ? NULL : calloc(counts->count + 1, sizeof *ranked);
    if (ranked == NULL) {
        return no_memory(counts, error);
    }
    size_t count = 0;
    for (size_t i = 0; i < counts->count; i++) {
        const struct token token = token_at(counts, i);
        if (!is_one_of(counts, without, &token)) {
            ranked[count++] = (struct ranked){.count = counts->tokens[i].count, .token = token};
        }
    }
    qsort(ranked, count, sizeof *ranked, counts->dtype == CADRE_STRING ? by_bytes : by_integer);
    count = count > (uint64_t)most ? (size_t)most : count;
    return list_of(counts, ranked, count, ret_tokens, error);
}
