/* SPDX-License-Identifier: Apache-2.0
 * An index from tokens (strings or int64) to their number in a list: open addressing, built once,
 * read by any number of threads.
 *
 * A slot holds 32 bits of the hash beside the number, so a token that is not there is mostly found
 * out without looking at any other; and tokens are looked up in blocks, whose memory is asked for
 * before it is needed, as a large index fits in no cache. */
#ifndef CADRE_WORKER_PREPROCESSING_TOKEN_TABLE_H
#define CADRE_WORKER_PREPROCESSING_TOKEN_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

#define TOKEN_BLOCK        64 /* tokens looked up at once */
#define TOKEN_UNKNOWN      UINT32_MAX
#define TOKENS_MAX         (INT64_C(1) << 31)
#define TOKEN_TEXT_BYTES   96
#define TOKEN_SLOTS(count) ((count) + (count) / 2 + 1)

struct token_slot {
    uint32_t tag;    /* of the hash */
    uint32_t number; /* from 1; 0: an empty slot */
};

/* Zeroed: none. */
struct token_table {
    cadre_tensor *tokens; /* CADRE_STRING or CADRE_I64, rank 1 */
    struct token_slot *slots;
    uint64_t capacity; /* slots */
};

/* Copies `tokens`, CADRE_STRING or any integer type, of rank 1 and at least one. INVALID_ARGUMENT
 * says which stands there twice and where: "TOKEN stands ... as `what` 3 and 17" (from 1). */
cadre_status token_table_make(const cadre_tensor *tokens, const char *what,
    struct token_table *ret_table, struct cadre_error *error);

/* A zeroed one is allowed. */
void token_table_free(struct token_table *table);

cadre_dtype token_table_dtype(const struct token_table *table);
int64_t token_table_count(const struct token_table *table);

/* `count` <= TOKEN_BLOCK tokens, cadre_string or int64_t as the table's: numbers from 0, or
 * TOKEN_UNKNOWN; and their hashes. */
void token_table_find(const struct token_table *table, const void *tokens, size_t count,
    uint32_t numbers[], uint64_t hashes[]);

/* Any integer type but CADRE_BOOL. */
int tokens_are_integers(cadre_dtype dtype);

/* Elements [first, first + count) of a tensor of any integer type. */
void tokens_widen(const cadre_tensor *tensor, int64_t first, size_t count, int64_t to[]);

/* One token for a message: a string in quotation marks with what cannot be printed as \xNN, cut
 * when it is long. */
const char *token_text(
    cadre_dtype dtype, const void *tokens, int64_t i, char text[TOKEN_TEXT_BYTES]);

#endif
