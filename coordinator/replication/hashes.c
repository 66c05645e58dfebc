/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 over the cluster's id and over entries. */
#include "coordinator/replication/hashes.h"

#include <string.h>

#include "common/base/fault.h"
#include "common/base/sha256.h"

_Static_assert(SHA256_BYTES == LIMIT_SHA256_BYTES, "a hash of the log is a SHA-256");

static uint8_t *put_u64(uint8_t *at, uint64_t value)
{
    for (int shift = 56; shift >= 0; shift -= 8) {
        *at++ = (uint8_t)(value >> shift);
    }
    return at;
}

static void take_hash(const struct sha256 *from, struct log_hash *ret_hash)
{
    memcpy(ret_hash->bytes, from->bytes, sizeof ret_hash->bytes);
}

static cadre_status check_fault(struct cadre_error *error)
{
    return fault_point("replication.memory")
               ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a hash")
               : CADRE_OK;
}

cadre_status hash_cluster(struct log_nonce id, struct log_hash *ret_hash, struct cadre_error *error)
{
    uint8_t bytes[16];
    struct sha256 hash;
    put_u64(put_u64(bytes, id.high), id.low);
    CADRE_TRY(check_fault(error));
    CADRE_TRY(sha256_of(bytes, sizeof bytes, &hash, error));
    take_hash(&hash, ret_hash);
    return CADRE_OK;
}

static cadre_status hash_with(struct sha256_stream *stream, const struct log_hash *before,
    const struct entry_value *entry, struct etcd_bytes bytes, struct sha256 *ret_hash,
    struct cadre_error *error)
{
    uint8_t numbers[5 * 8];
    uint64_t content = entry->content == ENTRY_LEADER ? ENTRY_LEADER : ENTRY_RECORDS;
    uint8_t *at = put_u64(put_u64(numbers, entry->term), entry->index);
    put_u64(put_u64(put_u64(at, entry->format), entry->appended_us), content);
    CADRE_TRY(sha256_add(stream, before->bytes, sizeof before->bytes, error));
    CADRE_TRY(sha256_add(stream, numbers, sizeof numbers, error));
    CADRE_TRY(sha256_add(stream, bytes.data, bytes.size, error));
    return sha256_finish(stream, ret_hash, error);
}

cadre_status hash_entry(const struct log_hash *before, const struct entry_value *entry,
    struct etcd_bytes bytes, struct log_hash *ret_hash, struct cadre_error *error)
{
    struct sha256_stream *stream = NULL;
    struct sha256 hash;
    CADRE_TRY(check_fault(error));
    CADRE_TRY(sha256_open(&stream, error));
    cadre_status status = hash_with(stream, before, entry, bytes, &hash, error);
    sha256_close(stream);
    if (status == CADRE_OK) {
        take_hash(&hash, ret_hash);
    }
    return status;
}
