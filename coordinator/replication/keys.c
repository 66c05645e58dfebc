/* SPDX-License-Identifier: Apache-2.0
 * The texts of keys. */
#include "coordinator/replication/keys.h"

#include <inttypes.h>
#include <stdio.h>

struct log_key key_entry(uint64_t index)
{
    struct log_key key;
    snprintf(key.text, sizeof key.text, "log/%016" PRIx64, index);
    return key;
}

struct log_key key_piece(uint64_t index, uint32_t piece)
{
    struct log_key key;
    snprintf(key.text, sizeof key.text, "part/%016" PRIx64 "/%016" PRIx32, index, piece);
    return key;
}

struct log_key key_pieces(uint64_t index)
{
    struct log_key key;
    snprintf(key.text, sizeof key.text, "part/%016" PRIx64, index);
    return key;
}

struct log_key key_snapshot(uint64_t index)
{
    struct log_key key;
    snprintf(key.text, sizeof key.text, "snap/%016" PRIx64, index);
    return key;
}
