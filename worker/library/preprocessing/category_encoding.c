/* SPDX-License-Identifier: Apache-2.0
 * Numbers of categories as vectors that say which of them are there. */
#include "cadre/preprocessing.h"

#include <inttypes.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/map_component.h"
#include "worker/library/preprocessing/token_table.h"

/* What is encoded into one vector: so many numbers in a row. */
struct encoding {
    uint32_t rank; /* of the result */
    int64_t dims[CADRE_RANK_MAX];
    int64_t sample;
};

/* ONE_HOT: a vector for each number; a last dimension of 1 behind others holds one number. Else
 * the last dimension is one sample. */
static bool shape_of(
    const cadre_category_encoding_options *options, const cadre_tensor *in, struct encoding *ret)
{
    uint32_t rank = cadre_tensor_rank(in);
    int64_t last = rank > 0 ? cadre_tensor_dim(in, rank - 1) : 1;
    bool one_hot = options->mode == CADRE_ENCODE_ONE_HOT;
    bool appended = rank == 0 || (one_hot && (rank == 1 || last != 1));
    *ret = (struct encoding){.rank = appended ? rank + 1 : rank, .sample = one_hot ? 1 : last};
    if (ret->rank > CADRE_RANK_MAX) {
        return false;
    }
    if (rank > 0) {
        memcpy(ret->dims, cadre_tensor_dims(in), rank * sizeof ret->dims[0]);
    }
    ret->dims[ret->rank - 1] = options->num_tokens;
    return true;
}

static cadre_status category_encoding_check(const cadre_category_encoding_options *options,
    const cadre_tensor *in, struct encoding *ret_encoding, struct cadre_error *error)
{
    if (options->num_tokens < 1) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "num_tokens is %" PRId64 "; give the number of categories", options->num_tokens);
    }
    if (options->mode < CADRE_ENCODE_MULTI_HOT || options->mode > CADRE_ENCODE_COUNT) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "mode %d is none of CADRE_ENCODE_MULTI_HOT, CADRE_ENCODE_ONE_HOT, CADRE_ENCODE_COUNT",
            (int)options->mode);
    }
    if (tokens_are_integers(cadre_tensor_dtype(in)) == 0 || !shape_of(options, in, ret_encoding)) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %" PRIu32 " is %s; categories are integers, of at most %d dimensions with "
            "that of the vectors",
            options->component,
            tensor_shape_text(
                cadre_tensor_dtype(in), cadre_tensor_rank(in), cadre_tensor_dims(in), shape),
            CADRE_RANK_MAX);
    }
    return CADRE_OK;
}

static cadre_status category_encoding_fill(const cadre_category_encoding_options *options,
    const cadre_tensor *in, int64_t sample, float *to, struct cadre_error *error)
{
    int64_t numbers[TOKEN_BLOCK];
    int64_t total = cadre_tensor_count(in);
    CADRE_ASSERT(total == 0 || sample > 0);
    for (int64_t first = 0; first < total; first += TOKEN_BLOCK) {
        size_t count = total - first < TOKEN_BLOCK ? (size_t)(total - first) : TOKEN_BLOCK;
        tokens_widen(in, first, count, numbers);
        for (size_t i = 0; i < count; i++) {
            if (numbers[i] < 0 || numbers[i] >= options->num_tokens) {
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "%" PRId64 " is no category: they are 0 to %" PRId64 " (num_tokens - 1)",
                    numbers[i], options->num_tokens - 1);
            }
            float *at = to + (first + (int64_t)i) / sample * options->num_tokens + numbers[i];
            *at = options->mode == CADRE_ENCODE_COUNT ? *at + 1 : 1;
        }
    }
    return CADRE_OK;
}

static cadre_status category_encoding_encode(
    const void *user, const cadre_tensor *in, cadre_tensor **ret_out, struct cadre_error *error)
{
    const cadre_category_encoding_options *options = user;
    struct encoding encoding;
    CADRE_TRY(category_encoding_check(options, in, &encoding, error));
    CADRE_TRY(tensor_create(CADRE_F32, encoding.rank, encoding.dims, ret_out, error));
    cadre_status status =
        category_encoding_fill(options, in, encoding.sample, cadre_tensor_data(*ret_out), error);
    if (status != CADRE_OK) {
        cadre_tensor_release(*ret_out);
        *ret_out = NULL;
    }
    return status;
}

cadre_status cadre_category_encoding_map(
    const cadre_element *in, cadre_element *ret_out, void *options)
{
    const cadre_category_encoding_options *given = options;
    return map_component(__func__, in, ret_out, given != NULL ? given->component : 0,
        category_encoding_encode, given);
}
