/* SPDX-License-Identifier: Apache-2.0
 * The hashes of the log: each over all that is before it, so that a log that was replaced, restored
 * or cut is recognized. Numbers are hashed big-endian:
 *
 *   hash(0) = H(id.high, id.low) of the cluster
 *   hash(i) = H(hash(i-1), term, index, format, appended_us, content, bytes)
 *
 * with 8 bytes for each number. `content` is ENTRY_LEADER or ENTRY_RECORDS; the bytes of an entry
 * in pieces are those of its pieces, joined. */
#ifndef CADRE_COORDINATOR_REPLICATION_HASHES_H
#define CADRE_COORDINATOR_REPLICATION_HASHES_H

#include "coordinator/replication/values.h"

/* Errors: RESOURCE_EXHAUSTED, when libcrypto has no memory. */
cadre_status hash_cluster(
    struct log_nonce id, struct log_hash *ret_hash, struct cadre_error *error);
/* `before` is the hash of the entry before it; `bytes` are those of its content, or of its pieces.
 */
cadre_status hash_entry(const struct log_hash *before, const struct entry_value *entry,
    struct etcd_bytes bytes, struct log_hash *ret_hash, struct cadre_error *error);

#endif
