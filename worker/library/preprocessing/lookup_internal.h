/* SPDX-License-Identifier: Apache-2.0
 * What a lookup is inside: an index of tokens, and what it says of each. Never changed once made.
 *
 *     ids of a vocabulary:   | mask (0 or 1) | OOV (oov_ids) | tokens in their order |
 */
#ifndef CADRE_WORKER_PREPROCESSING_LOOKUP_INTERNAL_H
#define CADRE_WORKER_PREPROCESSING_LOOKUP_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/preprocessing.h"
#include "common/base/error.h"
#include "worker/library/preprocessing/token_table.h"

struct cadre_lookup {
    struct token_table table;

    /* Of a vocabulary. */
    bool masked;
    int64_t oov_ids;       /* 0: unknown tokens are refused */
    cadre_tensor *special; /* [2] of the tokens' type: the mask, what OOV ids become */

    /* Of a plain table: a value for each token, and for all others; else NULL. */
    cadre_tensor *values;
    cadre_tensor *missing;
};

/* --- making vocabularies; `options` of the face --- */

/* INVALID_ARGUMENT: what does not go together, or not with tokens of this type. */
cadre_status lookup_check_options(
    const cadre_lookup_options *options, bool strings, struct cadre_error *error);

/* How many tokens the vocabulary may have; below 1: max_tokens is too small. */
int64_t lookup_capacity(const cadre_lookup_options *options);

/* [LOOKUP_MASK] and [LOOKUP_OOV], also where there is no such id. */
cadre_status lookup_special_tokens(cadre_dtype dtype, const cadre_lookup_options *options,
    cadre_tensor **ret_special, struct cadre_error *error);

/* As cadre_lookup_create. */
cadre_status lookup_make(const cadre_tensor *tokens, const cadre_lookup_options *options,
    cadre_lookup **ret_lookup, struct cadre_error *error);

#define LOOKUP_MASK 0 /* in `special` */
#define LOOKUP_OOV  1

#endif
