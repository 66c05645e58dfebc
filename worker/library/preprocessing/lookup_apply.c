/* SPDX-License-Identifier: Apache-2.0
 * Using lookups: tokens to ids, ids to tokens, in blocks. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/map_component.h"
#include "worker/library/preprocessing/lookup_internal.h"
#include "worker/library/preprocessing/publish_error.h"

/* --- tokens to ids --- */

/* One block of tokens, as they stand in the index and found there. */
struct block {
    const void *tokens; /* cadre_string or int64_t */
    size_t count;
    uint32_t numbers[TOKEN_BLOCK];
    uint64_t hashes[TOKEN_BLOCK];
    int64_t integers[TOKEN_BLOCK]; /* `tokens`, where they are of a narrower type */
};

static void find_block(
    const cadre_lookup *lookup, const cadre_tensor *tokens, int64_t first, struct block *block)
{
    int64_t left = cadre_tensor_count(tokens) - first;
    block->count = left < TOKEN_BLOCK ? (size_t)left : TOKEN_BLOCK;
    if (cadre_tensor_dtype(tokens) == CADRE_STRING) {
        block->tokens = (const cadre_string *)cadre_tensor_const_data(tokens) + first;
    } else {
        tokens_widen(tokens, first, block->count, block->integers);
        block->tokens = block->integers;
    }
    token_table_find(&lookup->table, block->tokens, block->count, block->numbers, block->hashes);
}

static bool is_mask(const cadre_lookup *lookup, const struct block *block, size_t i)
{
    const void *mask = cadre_tensor_const_data(lookup->special);
    if (token_table_dtype(&lookup->table) != CADRE_STRING) {
        return ((const int64_t *)mask)[LOOKUP_MASK] == ((const int64_t *)block->tokens)[i];
    }
    const cadre_string *a = (const cadre_string *)mask + LOOKUP_MASK;
    const cadre_string *b = (const cadre_string *)block->tokens + i;
    return a->size == b->size && (a->size == 0 || memcmp(a->bytes, b->bytes, a->size) == 0);
}

/* Which of several OOV ids. */
static int64_t bucket_of(const cadre_lookup *lookup, const struct block *block, size_t i)
{
    if (token_table_dtype(&lookup->table) == CADRE_STRING) {
        return (int64_t)(block->hashes[i] % (uint64_t)lookup->oov_ids);
    }
    int64_t rest = ((const int64_t *)block->tokens)[i] % lookup->oov_ids;
    return rest < 0 ? rest + lookup->oov_ids : rest; /* as Python's and TensorFlow's floormod */
}

static cadre_status id_of_unknown(const cadre_lookup *lookup, const struct block *block, size_t i,
    int64_t *ret_id, struct cadre_error *error)
{
    if (lookup->masked && is_mask(lookup, block, i)) {
        *ret_id = 0;
        return CADRE_OK;
    }
    if (lookup->oov_ids == 0) {
        char text[TOKEN_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s is not one of the %" PRId64
            " tokens of the vocabulary, which has no id for others; "
            "leave out CADRE_LOOKUP_NO_OOV to have one",
            token_text(token_table_dtype(&lookup->table), block->tokens, (int64_t)i, text),
            token_table_count(&lookup->table));
    }
    *ret_id = lookup->masked + (lookup->oov_ids == 1 ? 0 : bucket_of(lookup, block, i));
    return CADRE_OK;
}

static cadre_status look_up_ids(const cadre_lookup *lookup, const cadre_tensor *tokens,
    cadre_tensor **ret_ids, struct cadre_error *error)
{
    CADRE_TRY(tensor_create(
        CADRE_I64, cadre_tensor_rank(tokens), cadre_tensor_dims(tokens), ret_ids, error));
    int64_t *ids = cadre_tensor_data(*ret_ids);
    int64_t first_id = lookup->masked + lookup->oov_ids;
    struct block block;
    for (int64_t first = 0; first < cadre_tensor_count(tokens); first += TOKEN_BLOCK) {
        find_block(lookup, tokens, first, &block);
        for (size_t i = 0; i < block.count; i++) {
            int64_t *id = &ids[first + (int64_t)i];
            *id = first_id + block.numbers[i];
            if (block.numbers[i] == TOKEN_UNKNOWN &&
                id_of_unknown(lookup, &block, i, id, error) != CADRE_OK) {
                cadre_tensor_release(*ret_ids);
                *ret_ids = NULL;
                return CADRE_INVALID_ARGUMENT;
            }
        }
    }
    return CADRE_OK;
}

/* --- a value for each token --- */

/* Element numbers[i] of `values`, or `missing`, to element i behind `to`. */
static void take_values(const cadre_lookup *lookup, const struct block *block, char *to)
{
    size_t width = cadre_dtype_bytes(cadre_tensor_dtype(lookup->values));
    const char *values = cadre_tensor_const_data(lookup->values);
    const char *missing = cadre_tensor_const_data(lookup->missing);
    for (size_t i = 0; i < block->count; i++) {
        uint32_t number = block->numbers[i];
        memcpy(to + i * width, number == TOKEN_UNKNOWN ? missing : values + number * width, width);
    }
}

static cadre_status look_up_values(const cadre_lookup *lookup, const cadre_tensor *tokens,
    cadre_tensor **ret_values, struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(lookup->values);
    size_t width = cadre_dtype_bytes(dtype);
    CADRE_FREE_AT_EXIT char *gathered = NULL; /* strings: the bytes are copied at the end */
    char *to = NULL;
    if (dtype == CADRE_STRING) {
        gathered = fault_point("preprocessing.malloc")
                       ? NULL
                       : calloc((size_t)cadre_tensor_count(tokens) + 1, width);
        if (gathered == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for %" PRId64 " strings of a table", cadre_tensor_count(tokens));
        }
        to = gathered;
    } else {
        CADRE_TRY(tensor_create(
            dtype, cadre_tensor_rank(tokens), cadre_tensor_dims(tokens), ret_values, error));
        to = cadre_tensor_data(*ret_values);
    }
    struct block block;
    for (int64_t first = 0; first < cadre_tensor_count(tokens); first += TOKEN_BLOCK) {
        find_block(lookup, tokens, first, &block);
        take_values(lookup, &block, to + (size_t)first * width);
    }
    return gathered == NULL ? CADRE_OK
                            : tensor_from_data(dtype, cadre_tensor_rank(tokens),
                                  cadre_tensor_dims(tokens), gathered, ret_values, error);
}

static cadre_status look_up(const cadre_lookup *lookup, const cadre_tensor *tokens,
    cadre_tensor **ret_ids, struct cadre_error *error)
{
    cadre_dtype dtype = cadre_tensor_dtype(tokens);
    bool strings = token_table_dtype(&lookup->table) == CADRE_STRING;
    if (strings ? dtype != CADRE_STRING : !tokens_are_integers(dtype)) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a lookup of %s was given %s; it takes a tensor of %s",
            strings ? "strings" : "integers",
            tensor_shape_text(dtype, cadre_tensor_rank(tokens), cadre_tensor_dims(tokens), shape),
            strings ? "CADRE_STRING" : "CADRE_I64 or another integer type");
    }
    return lookup->values != NULL ? look_up_values(lookup, tokens, ret_ids, error)
                                  : look_up_ids(lookup, tokens, ret_ids, error);
}

cadre_status cadre_lookup_apply(
    const cadre_lookup *lookup, const cadre_tensor *tokens, cadre_tensor **ret_ids)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_ids, __func__, "ret_ids", &error);
    if (status == CADRE_OK) {
        *ret_ids = NULL;
        status = argument_require(lookup, __func__, "lookup", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_require(tokens, __func__, "tokens", &error);
    }
    if (status == CADRE_OK) {
        status = look_up(lookup, tokens, ret_ids, &error);
    }
    return publish_error(status, &error);
}

/* --- ids to tokens --- */

/* Where the token of an id stands: in the list, or (*ret_special) among the special ones. */
static cadre_status token_of(const cadre_lookup *lookup, int64_t id, bool *ret_special,
    int64_t *ret_index, struct cadre_error *error)
{
    int64_t first_id = lookup->masked + lookup->oov_ids;
    *ret_special = true;
    if (id >= first_id && id - first_id < token_table_count(&lookup->table)) {
        *ret_special = false;
        *ret_index = id - first_id;
    } else if (id == 0 && lookup->masked) {
        *ret_index = LOOKUP_MASK;
    } else if (lookup->oov_ids > 0) {
        *ret_index = LOOKUP_OOV;
    } else {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%" PRId64 " is the id of no token: they are 0 to %" PRId64, id,
            cadre_lookup_size(lookup) - 1);
    }
    return CADRE_OK;
}

static cadre_status gather_tokens(
    const cadre_lookup *lookup, const cadre_tensor *ids, char *to, struct cadre_error *error)
{
    size_t width = cadre_dtype_bytes(token_table_dtype(&lookup->table));
    const char *tokens = cadre_tensor_const_data(lookup->table.tokens);
    const char *special = cadre_tensor_const_data(lookup->special);
    int64_t block[TOKEN_BLOCK];
    for (int64_t first = 0; first < cadre_tensor_count(ids); first += TOKEN_BLOCK) {
        int64_t left = cadre_tensor_count(ids) - first;
        size_t count = left < TOKEN_BLOCK ? (size_t)left : TOKEN_BLOCK;
        tokens_widen(ids, first, count, block);
        for (size_t i = 0; i < count; i++) {
            bool among_special = false;
            int64_t index = 0;
            CADRE_TRY(token_of(lookup, block[i], &among_special, &index, error));
            memcpy(to, (among_special ? special : tokens) + (size_t)index * width, width);
            to += width;
        }
    }
    return CADRE_OK;
}

static cadre_status lookup_apply_invert(const cadre_lookup *lookup, const cadre_tensor *ids,
    cadre_tensor **ret_tokens, struct cadre_error *error)
{
    uint32_t rank = cadre_tensor_rank(ids);
    const int64_t *dims = cadre_tensor_dims(ids);
    if (lookup->values != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a plain table has no ids to look up; make one with keys and values exchanged");
    }
    if (!tokens_are_integers(cadre_tensor_dtype(ids))) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "ids are of CADRE_I64 or another integer type, and these are %s",
            tensor_shape_text(cadre_tensor_dtype(ids), rank, dims, shape));
    }
    cadre_dtype dtype = token_table_dtype(&lookup->table);
    if (dtype == CADRE_STRING) {
        CADRE_FREE_AT_EXIT char *gathered =
            fault_point("preprocessing.malloc")
                ? NULL
                : calloc((size_t)cadre_tensor_count(ids) + 1, sizeof(cadre_string));
        if (gathered == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for %" PRId64 " tokens", cadre_tensor_count(ids));
        }
        CADRE_TRY(gather_tokens(lookup, ids, gathered, error));
        return tensor_from_data(dtype, rank, dims, gathered, ret_tokens, error);
    }
    CADRE_TRY(tensor_create(dtype, rank, dims, ret_tokens, error));
    cadre_status status = gather_tokens(lookup, ids, cadre_tensor_data(*ret_tokens), error);
    if (status != CADRE_OK) {
        cadre_tensor_release(*ret_tokens);
        *ret_tokens = NULL;
    }
    return status;
}

cadre_status cadre_lookup_invert(
    const cadre_lookup *lookup, const cadre_tensor *ids, cadre_tensor **ret_tokens)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_tokens, __func__, "ret_tokens", &error);
    if (status == CADRE_OK) {
        *ret_tokens = NULL;
        status = argument_require(lookup, __func__, "lookup", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_require(ids, __func__, "ids", &error);
    }
    if (status == CADRE_OK) {
        status = lookup_apply_invert(lookup, ids, ret_tokens, &error);
    }
    return publish_error(status, &error);
}

static cadre_status apply_map(const void *lookup, const cadre_tensor *tokens,
    cadre_tensor **ret_ids, struct cadre_error *error)
{
    return look_up(lookup, tokens, ret_ids, error);
}

static cadre_status invert_map(const void *lookup, const cadre_tensor *ids,
    cadre_tensor **ret_tokens, struct cadre_error *error)
{
    return lookup_apply_invert(lookup, ids, ret_tokens, error);
}

cadre_status cadre_lookup_map(const cadre_element *in, cadre_element *ret_out, void *lookup)
{
    return map_component(__func__, in, ret_out, 0, apply_map, lookup);
}

cadre_status cadre_lookup_invert_map(const cadre_element *in, cadre_element *ret_out, void *lookup)
{
    return map_component(__func__, in, ret_out, 0, invert_map, lookup);
}
