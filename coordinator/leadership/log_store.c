/* SPDX-License-Identifier: Apache-2.0
 * Comparisons of what the keys hold. */
#include "coordinator/leadership/log_store.h"

#include <string.h>

bool log_hash_equal(const struct log_hash *a, const struct log_hash *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool log_leader_equal(const struct log_leader *a, const struct log_leader *b)
{
    return a->term == b->term && log_nonce_equal(a->nonce, b->nonce) && a->left == b->left;
}

bool log_head_equal(const struct log_head *a, const struct log_head *b)
{
    return a->term == b->term && log_nonce_equal(a->nonce, b->nonce) && a->index == b->index &&
           log_hash_equal(&a->hash, &b->hash) && a->first == b->first && a->beat == b->beat;
}
