/* SPDX-License-Identifier: Apache-2.0
 * The model of etcd. */
#include "store.h"

#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/prng.h"

static void break_store(struct etcd *store, const char *invariant, const char *why)
{
    if (store->broken == NULL) {
        store->broken = invariant;
        store->why = why;
    }
}

static struct log_hash hash_of(uint64_t number)
{
    struct log_hash hash = {{0}};
    memcpy(hash.bytes, &number, sizeof(number));
    hash.bytes[sizeof(number)] = 1;
    return hash;
}

static uint64_t number_of(const struct log_hash *hash)
{
    uint64_t number;
    memcpy(&number, hash->bytes, sizeof(number));
    return number;
}

struct log_hash store_hash(
    const struct log_hash *previous, uint64_t term, uint64_t index, const struct content *content)
{
    uint64_t number = prng_mix(number_of(previous) ^ term);
    number = prng_mix(number ^ index);
    number = prng_mix(number ^ (uint64_t)content->kind);
    number = prng_mix(number ^ content->request);
    return hash_of(prng_mix(number ^ content->format));
}

struct log_hash store_cluster_hash(struct log_nonce id)
{
    return hash_of(prng_mix(id.high ^ prng_mix(id.low)));
}

struct log_hash store_hash_at(const struct etcd *store, uint64_t index)
{
    return index == 0 ? store_cluster_hash(store->cluster.id) : store->entries[index - 1].hash;
}

struct log_hash store_hash_after(
    const struct log_transaction *transaction, const struct payload *payload)
{
    struct log_hash hash = transaction->head.hash;
    for (uint32_t i = 0; i < payload->count; i++) {
        hash = store_hash(
            &hash, transaction->head.term, transaction->first_index + i, &payload->contents[i]);
    }
    return hash;
}

bool store_guard_holds(
    const struct etcd *store, const struct log_transaction *transaction, uint32_t checks)
{
    if (transaction->kind == LOG_CREATE) {
        return !store->has_cluster;
    }
    if (!store->has_cluster) {
        return false;
    }
    bool leader = log_leader_equal(&store->leader, &transaction->guard_leader);
    if (transaction->kind == LOG_TAKE_OVER) {
        leader = leader && store->leader.mod_revision == transaction->guard_leader.mod_revision;
    }
    bool head = store->head.mod_revision == transaction->guard_head_revision;
    return ((checks & STORE_CHECKS_LEADER) == 0 || leader) &&
           ((checks & STORE_CHECKS_HEAD) == 0 || head);
}

static void write_entries(
    struct etcd *store, const struct log_transaction *transaction, const struct payload *payload)
{
    struct log_hash hash = transaction->head.hash;
    for (uint32_t i = 0; i < payload->count; i++) {
        uint64_t index = transaction->first_index + i;
        if (index > store->entries_max) {
            store->full = true;
            return;
        }
        struct stored_entry entry = {
            .index = index, .term = transaction->head.term, .content = payload->contents[i]};
        entry.hash = hash = store_hash(&hash, entry.term, index, &entry.content);
        entry.pieces = payload->contents[i].bytes > LOG_PIECE_BYTES
                           ? (payload->contents[i].bytes + LOG_PIECE_BYTES - 1) / LOG_PIECE_BYTES
                           : 0;
        struct stored_entry *old = &store->entries[index - 1];
        if (old->index != 0 && !log_hash_equal(&old->hash, &entry.hash)) {
            break_store(store, "ONE_LINE", "an entry was written again with another content");
        }
        if (index > 1 && store->entries[index - 2].index == 0) {
            break_store(store, "ONE_LINE", "an entry was written behind one that is not there");
        }
        if (index > 1 && store->entries[index - 2].term > entry.term) {
            break_store(store, "TERM_UP", "an entry has a lower term than the one before it");
        }
        bool has_pieces = store->piece_index == index && store->piece_term == entry.term &&
                          store->piece_count == entry.pieces;
        if (entry.pieces > 0 && !has_pieces) {
            break_store(store, "ONE_LINE", "an entry names pieces that are not there");
        }
        *old = entry;
    }
}

static void write_head(
    struct etcd *store, const struct log_transaction *transaction, const struct payload *payload)
{
    struct log_head head = transaction->head;
    head.hash = store_hash_after(transaction, payload);
    head.mod_revision = store->revision;
    if (store->full) {
        return;
    }
    if (transaction->kind != LOG_CREATE) {
        struct log_hash at = store_hash_at(store, head.index);
        if (head.index < store->head.index || !log_hash_equal(&at, &head.hash)) {
            break_store(store, "ONE_LINE", "the head is not the newest entry");
        }
        if (head.term < store->head.term) {
            break_store(store, "TERM_UP", "the head has a lower term than before");
        }
    }
    store->head = head;
}

void store_write(
    struct etcd *store, const struct log_transaction *transaction, const struct payload *payload)
{
    store->revision++;
    if (transaction->kind == LOG_CREATE) {
        store->has_cluster = true;
        store->cluster = transaction->cluster;
    }
    if (transaction->kind == LOG_CREATE || transaction->kind == LOG_TAKE_OVER ||
        transaction->kind == LOG_LEAVE) {
        if (transaction->leader.term < store->leader.term) {
            break_store(store, "TERM_UP", "the leader has a lower term than before");
        }
        store->leader = transaction->leader;
        store->leader.mod_revision = store->revision;
    }
    if (transaction->kind == LOG_APPEND) {
        write_entries(store, transaction, payload);
        if (transaction->cluster.format > store->cluster.format) {
            store->cluster.format = transaction->cluster.format;
        }
    }
    if (transaction->kind == LOG_PIECES) {
        bool follows = store->piece_index == transaction->first_index &&
                       store->piece_term == transaction->head.term;
        if (transaction->piece != (follows ? store->piece_count : 0)) {
            break_store(store, "ONE_LINE", "pieces of an entry are out of order");
        }
        store->piece_index = transaction->first_index;
        store->piece_term = transaction->head.term;
        store->piece_count = transaction->piece_end;
    }
    if (transaction->kind == LOG_SNAPSHOT) {
        store->snapshot_index = transaction->snapshot_index;
    }
    if (transaction->kind != LOG_LEAVE) {
        write_head(store, transaction, payload);
    }
}

void store_transact(struct etcd *store, const struct log_transaction *transaction,
    const struct payload *payload, uint32_t checks, struct leadership_answer *ret_answer)
{
    *ret_answer = (struct leadership_answer){0};
    if (store_guard_holds(store, transaction, checks)) {
        store_write(store, transaction, payload);
        ret_answer->applied = true;
        ret_answer->revision = store->revision;
        return;
    }
    ret_answer->found = store->has_cluster;
    ret_answer->leader = store->leader;
    ret_answer->head = store->head;
}

void store_read(const struct etcd *store, const struct leadership_position *after,
    uint32_t entries_max, struct log_entry *entries, struct leadership_read *ret_read)
{
    *ret_read = (struct leadership_read){.etcd_id = store->etcd_id,
        .has_cluster = store->has_cluster,
        .cluster = store->cluster,
        .cluster_hash = store_cluster_hash(store->cluster.id),
        .has_leader = store->has_cluster,
        .has_head = store->has_cluster,
        .leader = store->leader,
        .head = store->head,
        .entries = entries};
    struct log_hash hash = after->hash;
    uint64_t first = store->head.first > after->index + 1 ? store->head.first : after->index + 1;
    for (uint64_t i = first; i <= store->head.index && i > 0; i++) {
        const struct stored_entry *stored = &store->entries[i - 1];
        if (!store->has_cluster || ret_read->entry_count >= entries_max) {
            break;
        }
        hash = store_hash(&hash, stored->term, i, &stored->content);
        entries[ret_read->entry_count++] = (struct log_entry){.index = stored->index,
            .term = stored->term,
            .format = stored->content.format,
            .hash = stored->hash,
            .computed = hash};
    }
}
