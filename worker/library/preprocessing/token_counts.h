/* SPDX-License-Identifier: Apache-2.0
 * How often each token comes: counting, adding up what others have counted, and the vocabulary that
 * follows from it. One thread at a time. */
#ifndef CADRE_WORKER_PREPROCESSING_TOKEN_COUNTS_H
#define CADRE_WORKER_PREPROCESSING_TOKEN_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"

struct counted_token {
    uint64_t hash;
    int64_t count;
    int64_t integer; /* the token, or the number of its bytes */
    size_t at;       /* where they begin */
};

/* Zeroed, but for the type: none. All functions but the readers may fail with RESOURCE_EXHAUSTED,
 * and then have counted a part. */
struct token_counts {
    cadre_dtype dtype; /* CADRE_STRING or CADRE_I64 */
    struct counted_token *tokens;
    size_t count;
    size_t room;
    uint32_t *slots; /* numbers from 1; 0: empty */
    size_t slot_count;
    char *bytes;
    size_t used;
    size_t size;
};

/* Forgets all tokens and keeps the memory. */
void token_counts_empty(struct token_counts *counts);

/* Frees the memory. */
void token_counts_free(struct token_counts *counts);

/* Counts each token of a tensor: CADRE_STRING, or any integer type for CADRE_I64. */
cadre_status token_counts_add(
    struct token_counts *counts, const cadre_tensor *tokens, struct cadre_error *error);

/* Adds all that `other`, of the same type, has counted. */
cadre_status token_counts_merge(
    struct token_counts *counts, const struct token_counts *other, struct cadre_error *error);

/* The counts as bytes, several of which may stand one behind the other; and adding the counts of
 * such bytes. INVALID_ARGUMENT: they are damaged. */
size_t token_counts_bytes(const struct token_counts *counts);
void token_counts_write(const struct token_counts *counts, char *to);
cadre_status token_counts_read(
    struct token_counts *counts, const char *from, size_t bytes, struct cadre_error *error);

/* The tokens but those of `without` (of the same type, rank 1), the more frequent first, of equally
 * frequent ones the greater first (strings byte by byte), at most `most` of them; rank 1. That is
 * what tf.keras' IndexLookup.finalize_state does: np.lexsort((tokens, counts))[::-1], cut. */
cadre_status token_counts_vocabulary(const struct token_counts *counts, const cadre_tensor *without,
    int64_t most, cadre_tensor **ret_tokens, struct cadre_error *error);

#endif
