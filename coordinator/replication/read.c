/* SPDX-License-Identifier: Apache-2.0
 * Entries in pieces are read one at a time, by a transaction that reads the three keys again, so
 * that all of an answer is of one revision. */
#include "coordinator/replication/read.h"

#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/wire/arena.h"
#include "coordinator/replication/hashes.h"

/* ---- requests ---- */

static void build_keys(struct read_request *request)
{
    static const char *const keys[BUILD_GETS] = {KEY_CLUSTER, KEY_LEADER, KEY_HEAD};
    request->etcd =
        (struct etcd_transaction){.then = request->gets, .then_count = CADRE_COUNT_OF(keys)};
    for (size_t i = 0; i < CADRE_COUNT_OF(keys); i++) {
        request->gets[i] = (struct etcd_operation){.kind = ETCD_GET, .key = keys[i]};
    }
}

static uint64_t sum_or_most(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void add_get(
    struct read_request *request, struct log_key key, const struct log_key *end, uint32_t limit)
{
    size_t at = request->etcd.then_count++;
    CADRE_ASSERT(at < READ_GETS_MAX);
    request->keys[at] = key;
    request->gets[at] = (struct etcd_operation){.kind = ETCD_GET,
        .key = request->keys[at].text,
        .end = end != NULL ? end->text : NULL,
        .limit = limit};
}

void read_build(struct read_request *request, uint64_t after, uint32_t entries_max)
{
    build_keys(request);
    if (entries_max > 0) {
        CADRE_ASSERT(entries_max <= LOG_READ_ENTRIES_MAX);
        request->keys[0] = key_entry(sum_or_most(after, (uint64_t)entries_max + 1));
        add_get(request, key_entry(sum_or_most(after, 1)), &request->keys[0], entries_max);
    }
}

void read_build_pieces(struct read_request *request, uint64_t after, uint32_t piece_count)
{
    uint64_t index = sum_or_most(after, 1);
    build_keys(request);
    add_get(request, key_entry(index), NULL, 0);
    request->keys[0] = key_piece(index, piece_count);
    add_get(request, key_piece(index, 0), &request->keys[0], piece_count);
}

/* ---- the three keys ---- */

/* The value of a key, if it is there and no longer than one may be. */
static const struct etcd_pair *one_pair(const struct etcd_result *result)
{
    bool fits = result->pair_count == 1 && result->pairs[0].value.size > 0 &&
                result->pairs[0].value.size <= SMALL_VALUE_BYTES_MAX;
    return fits ? result->pairs : NULL;
}

bool read_take_keys(
    const struct etcd_result *results, struct wire_arena *arena, struct read_keys *ret_keys)
{
    const struct etcd_pair *cluster = one_pair(&results[0]);
    const struct etcd_pair *leader = one_pair(&results[1]);
    const struct etcd_pair *head = one_pair(&results[2]);
    memset(ret_keys, 0, sizeof *ret_keys);
    ret_keys->has_cluster = results[0].pair_count > 0;
    if (cluster != NULL && value_unpack_cluster(cluster->value, arena, &ret_keys->cluster)) {
        ret_keys->cluster_bytes = cluster->value;
    } else {
        ret_keys->cluster = (struct cluster_value){0};
    }
    if (leader != NULL && value_unpack_leader(leader->value, arena, &ret_keys->leader.value)) {
        ret_keys->has_leader = true;
        ret_keys->leader.value.leader.mod_revision = (uint64_t)leader->mod_revision;
        ret_keys->leader.size = leader->value.size;
        memcpy(ret_keys->leader.bytes, leader->value.data, leader->value.size);
    }
    if (head != NULL && value_unpack_head(head->value, arena, &ret_keys->head)) {
        ret_keys->has_head = true;
        ret_keys->head.mod_revision = (uint64_t)head->mod_revision;
    }
    return !wire_arena_is_spent(arena);
}

/* ---- entries ---- */

/* The entry that is to follow `before`; damaged: its hashes stay 0. */
static void begin_entry(uint64_t index, const struct log_entry *before, struct log_entry *ret_entry)
{
    *ret_entry = (struct log_entry){.index = index, .term = before->term, .format = before->format};
}

/* Whether the key is that of entry `index`. */
static bool is_key_of(const struct etcd_pair *pair, struct log_key key)
{
    return strcmp(pair->key, key.text) == 0;
}

/* Reads the entry behind `before`. False: it is damaged. */
static bool take_value(const struct etcd_pair *pair, const struct log_entry *before,
    struct wire_arena *arena, struct log_entry *ret_entry, struct entry_value *ret_content)
{
    uint64_t index = before->index + 1;
    bool follows = is_key_of(pair, key_entry(index));
    begin_entry(follows ? index : 0, before, ret_entry);
    *ret_content = (struct entry_value){.index = ret_entry->index};
    if (!follows || !value_unpack_entry(pair->value, arena, ret_content) ||
        ret_content->index != index) {
        return false;
    }
    ret_entry->term = ret_content->term;
    ret_entry->format = ret_content->format;
    ret_entry->hash = ret_content->hash;
    return true;
}

static cadre_status check_memory(struct wire_arena *arena, struct cadre_error *error)
{
    if (wire_arena_is_spent(arena) || fault_point("replication.memory")) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for entries of the ledger's log");
    }
    return CADRE_OK;
}

static struct log_entry entry_at(const struct leadership_position *after)
{
    return (struct log_entry){.index = after->index, .term = after->term, .computed = after->hash};
}

cadre_status read_take_entries(const struct etcd_result *entries,
    const struct leadership_position *after, struct wire_arena *arena,
    struct read_entries *ret_entries, struct cadre_error *error)
{
    struct log_entry before = entry_at(after);
    ret_entries->count = 0;
    ret_entries->piece_count = 0;
    for (size_t i = 0; i < entries->pair_count && i < LOG_READ_ENTRIES_MAX; i++) {
        struct log_entry *entry = &ret_entries->entries[i];
        struct entry_value *content = &ret_entries->contents[i];
        bool whole = take_value(&entries->pairs[i], &before, arena, entry, content);
        CADRE_TRY(check_memory(arena, error));
        if (whole && content->content == ENTRY_PIECES) {
            ret_entries->piece_count = content->piece_count;
            return CADRE_OK;
        }
        if (whole) {
            CADRE_TRY(
                hash_entry(&before.computed, content, content->bytes, &entry->computed, error));
        }
        ret_entries->count++;
        if (!whole) {
            return CADRE_OK;
        }
        before = *entry;
    }
    return CADRE_OK;
}

/* Whether these are the pieces that the entry names. */
static bool are_pieces_of(const struct etcd_result *pieces, const struct entry_value *entry)
{
    uint64_t bytes = 0;
    if (pieces->pair_count != entry->piece_count) {
        return false;
    }
    for (size_t i = 0; i < pieces->pair_count; i++) {
        const struct etcd_pair *pair = &pieces->pairs[i];
        bool last = i + 1 == pieces->pair_count;
        if (!is_key_of(pair, key_piece(entry->index, (uint32_t)i)) ||
            (!last && pair->value.size != LOG_PIECE_BYTES)) {
            return false;
        }
        bytes += pair->value.size;
    }
    return bytes == entry->piece_bytes;
}

static cadre_status join_pieces(const struct etcd_result *pieces, struct wire_arena *arena,
    struct entry_value *entry, struct cadre_error *error)
{
    uint8_t *joined = wire_arena_alloc(arena, (size_t)entry->piece_bytes);
    CADRE_TRY(check_memory(arena, error));
    entry->content = ENTRY_RECORDS;
    entry->bytes = (struct etcd_bytes){.data = joined, .size = (size_t)entry->piece_bytes};
    for (size_t i = 0; i < pieces->pair_count; i++) {
        memcpy(joined, pieces->pairs[i].value.data, pieces->pairs[i].value.size);
        joined += pieces->pairs[i].value.size;
    }
    return CADRE_OK;
}

cadre_status read_take_pieces(const struct etcd_result *entry, const struct etcd_result *pieces,
    const struct leadership_position *after, struct wire_arena *arena,
    struct read_entries *ret_entries, struct cadre_error *error)
{
    struct log_entry before = entry_at(after);
    struct log_entry *taken = &ret_entries->entries[0];
    struct entry_value *content = &ret_entries->contents[0];
    ret_entries->count = entry->pair_count > 0 ? 1 : 0;
    ret_entries->piece_count = 0;
    if (ret_entries->count == 0) {
        return CADRE_OK;
    }
    bool whole = take_value(entry->pairs, &before, arena, taken, content) &&
                 content->content == ENTRY_PIECES && are_pieces_of(pieces, content);
    CADRE_TRY(check_memory(arena, error));
    if (!whole) {
        return CADRE_OK;
    }
    CADRE_TRY(join_pieces(pieces, arena, content, error));
    return hash_entry(&before.computed, content, content->bytes, &taken->computed, error);
}
