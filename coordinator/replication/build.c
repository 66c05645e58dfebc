/* SPDX-License-Identifier: Apache-2.0
 * One function for each kind of transaction; all end in puts and deletions with values that lie in
 * the arena or in the tickets. */
#include "coordinator/replication/build.h"

#include <string.h>

#include "common/pure/assert.h"
#include "common/wire/arena.h"
#include "coordinator/replication/hashes.h"

struct building {
    const struct log_transaction *transaction;
    const struct build_inputs *inputs;
    struct built *built;
    struct cadre_error *error;
};

static cadre_status no_memory(const struct building *building)
{
    return cadre_error_set(building->error, CADRE_RESOURCE_EXHAUSTED,
        "no memory for a transaction of the ledger's log");
}

static const char *keep_key(struct built *built, struct log_key key)
{
    CADRE_ASSERT(built->key_count < CADRE_COUNT_OF(built->keys));
    built->keys[built->key_count] = key;
    return built->keys[built->key_count++].text;
}

/* ---- operations ---- */

static struct etcd_operation *add_operation(struct built *built, enum etcd_operation_kind kind)
{
    size_t at = built->etcd.then_count++;
    CADRE_ASSERT(at < ETCD_OPERATIONS_MAX);
    built->then[at] = (struct etcd_operation){.kind = kind};
    return &built->then[at];
}

static cadre_status put(const struct building *building, const char *key, struct etcd_bytes value)
{
    if (value.data == NULL) {
        return no_memory(building);
    }
    struct etcd_operation *operation = add_operation(building->built, ETCD_PUT);
    operation->key = key;
    operation->value = value;
    return CADRE_OK;
}

/* Deletes [from, end). */
static void delete_keys(const struct building *building, struct log_key from, struct log_key end)
{
    struct etcd_operation *operation = add_operation(building->built, ETCD_DELETE);
    operation->key = keep_key(building->built, from);
    operation->end = keep_key(building->built, end);
}

static cadre_status put_head(const struct building *building)
{
    struct log_head head = building->transaction->head;
    head.hash = building->built->hash;
    return put(building, KEY_HEAD, value_pack_head(&head, building->built->arena));
}

static cadre_status put_leader(const struct building *building, const struct leader_value *value)
{
    struct known_leader *leader = &building->built->leader;
    struct etcd_bytes bytes = value_pack_leader(value, building->built->arena);
    CADRE_TRY(put(building, KEY_LEADER, bytes));
    CADRE_ASSERT(bytes.size <= sizeof leader->bytes);
    leader->value = *value;
    leader->size = bytes.size;
    memcpy(leader->bytes, bytes.data, bytes.size);
    return CADRE_OK;
}

/* ---- comparisons ---- */

static struct etcd_comparison *compare(
    struct built *built, const char *key, enum etcd_compared what)
{
    size_t at = built->etcd.comparison_count++;
    CADRE_ASSERT(at < BUILD_COMPARISONS_MAX);
    built->comparisons[at] = (struct etcd_comparison){.key = key, .what = what};
    return &built->comparisons[at];
}

static cadre_status compare_guard(const struct building *building)
{
    const struct log_transaction *transaction = building->transaction;
    const struct known_leader *known = building->inputs->guard;
    struct built *built = building->built;
    struct etcd_bytes value = {0};
    if (known != NULL) {
        void *copy = wire_arena_alloc(built->arena, known->size); /* `known` may change */
        if (copy != NULL) {
            memcpy(copy, known->bytes, known->size);
        }
        value = (struct etcd_bytes){.data = copy, .size = known->size};
    } else {
        const struct leader_value bare = {.leader = transaction->guard_leader};
        value = value_pack_leader(&bare, built->arena);
    }
    if (value.data == NULL) {
        return no_memory(building);
    }
    compare(built, KEY_LEADER, ETCD_VALUE)->value = value;
    compare(built, KEY_HEAD, ETCD_MOD_REVISION)->number = (int64_t)transaction->guard_head_revision;
    if (transaction->kind == LOG_TAKE_OVER) {
        compare(built, KEY_LEADER, ETCD_MOD_REVISION)->number =
            (int64_t)transaction->guard_leader.mod_revision;
    }
    return CADRE_OK;
}

/* ---- the kinds ---- */

static cadre_status build_create(const struct building *building)
{
    const struct log_transaction *transaction = building->transaction;
    struct cluster_value cluster = {.cluster = transaction->cluster};
    struct leader_value leader = {.leader = transaction->leader};
    memcpy(cluster.secret, building->inputs->secret, sizeof cluster.secret);
    compare(building->built, KEY_CLUSTER, ETCD_VERSION)->number = 0;
    CADRE_TRY(put(building, KEY_CLUSTER, value_pack_cluster(&cluster, building->built->arena)));
    CADRE_TRY(put_leader(building, &leader));
    return put_head(building);
}

static cadre_status build_take_over(const struct building *building)
{
    const struct build_inputs *inputs = building->inputs;
    struct leader_value leader = {
        .leader = building->transaction->leader, .since_us = inputs->wall_us};
    CADRE_ASSERT(strlen(inputs->name) < sizeof leader.name);
    CADRE_ASSERT(strlen(inputs->addresses) < sizeof leader.addresses);
    memcpy(leader.name, inputs->name, strlen(inputs->name));
    memcpy(leader.addresses, inputs->addresses, strlen(inputs->addresses));
    CADRE_TRY(compare_guard(building));
    CADRE_TRY(put_leader(building, &leader));
    return put_head(building);
}

static cadre_status build_leave(const struct building *building)
{
    const struct known_leader *known = building->inputs->guard;
    struct leader_value leader = {0};
    if (known != NULL) {
        leader = known->value;
    }
    leader.leader = building->transaction->leader;
    CADRE_TRY(compare_guard(building));
    return put_leader(building, &leader);
}

static cadre_status put_entry(const struct building *building, struct entry_value *entry)
{
    struct built *built = building->built;
    CADRE_TRY(hash_entry(&built->hash, entry, entry->bytes, &entry->hash, building->error));
    struct entry_value stored = *entry;
    if (entry->bytes.size > LOG_PIECE_BYTES) {
        stored.content = ENTRY_PIECES;
        stored.piece_bytes = entry->bytes.size;
        stored.piece_count =
            (uint32_t)((entry->bytes.size + LOG_PIECE_BYTES - 1) / LOG_PIECE_BYTES);
    }
    built->hash = entry->hash;
    built->entry_count++;
    return put(building, keep_key(built, key_entry(entry->index)),
        value_pack_entry(&stored, built->arena));
}

/* The next entry of an append, without its content. */
static struct entry_value *next_entry(const struct building *building)
{
    const struct log_transaction *transaction = building->transaction;
    struct built *built = building->built;
    uint32_t format = building->inputs->format;
    CADRE_ASSERT(built->entry_count < LOG_APPEND_ENTRIES_MAX);
    struct entry_value *entry = &built->entries[built->entry_count];
    *entry = (struct entry_value){.term = transaction->head.term,
        .index = transaction->first_index + built->entry_count,
        .format = transaction->cluster.format > format ? transaction->cluster.format : format,
        .appended_us = building->inputs->wall_us};
    return entry;
}

static cadre_status put_term_entry(const struct building *building)
{
    const struct term_value term = {.name = building->inputs->name,
        .version = building->inputs->version,
        .nonce = building->transaction->head.nonce};
    struct entry_value *entry = next_entry(building);
    entry->content = ENTRY_LEADER;
    entry->bytes = value_pack_term(&term, building->built->arena);
    return entry->bytes.data == NULL ? no_memory(building) : put_entry(building, entry);
}

static cadre_status put_tickets(const struct building *building)
{
    const struct log_transaction *transaction = building->transaction;
    for (uint64_t n = transaction->first_ticket; n <= transaction->last_ticket; n++) {
        const struct kept_ticket *ticket = tickets_at(building->inputs->tickets, n);
        if (ticket->kind != LEADERSHIP_CONFIRM) {
            struct entry_value *entry = next_entry(building);
            entry->content = ENTRY_RECORDS;
            entry->bytes = (struct etcd_bytes){.data = ticket->bytes, .size = ticket->size};
            CADRE_TRY(put_entry(building, entry));
        }
    }
    return CADRE_OK;
}

static cadre_status build_append(const struct building *building)
{
    const struct log_transaction *transaction = building->transaction;
    CADRE_TRY(transaction->term_entry ? put_term_entry(building) : put_tickets(building));
    CADRE_ASSERT(
        transaction->first_index + building->built->entry_count == transaction->head.index + 1);
    if (transaction->cluster.format != 0) {
        CADRE_TRY(put(building, KEY_CLUSTER,
            value_raise_format(
                building->inputs->cluster, transaction->cluster.format, building->built->arena)));
    }
    return CADRE_OK;
}

static void build_trim(const struct building *building)
{
    const struct log_transaction *transaction = building->transaction;
    delete_keys(building, key_entry(transaction->trim_from), key_entry(transaction->trim_to + 1));
    delete_keys(building, key_pieces(transaction->trim_from), key_pieces(transaction->trim_to + 1));
}

static cadre_status build_snapshot(const struct building *building)
{
    const struct replica_snapshot *snapshot = building->inputs->snapshot;
    struct built *built = building->built;
    struct log_key key = key_snapshot(building->transaction->snapshot_index);
    CADRE_ASSERT(snapshot->at.index == building->transaction->snapshot_index);
    delete_keys(building, key_snapshot(0), key);
    return put(building, keep_key(built, key), value_pack_snapshot(snapshot, built->arena));
}

static cadre_status build_pieces(const struct building *building)
{
    const struct log_transaction *transaction = building->transaction;
    const struct kept_ticket *ticket =
        tickets_at(building->inputs->tickets, transaction->first_ticket);
    CADRE_ASSERT(transaction->piece_end <= transaction->piece_count);
    for (uint32_t piece = transaction->piece; piece < transaction->piece_end; piece++) {
        size_t begin = (size_t)piece * LOG_PIECE_BYTES;
        CADRE_ASSERT(begin < ticket->size);
        size_t left = ticket->size - begin;
        const struct etcd_bytes value = {.data = (const uint8_t *)ticket->bytes + begin,
            .size = left < LOG_PIECE_BYTES ? left : LOG_PIECE_BYTES};
        const char *key = keep_key(building->built, key_piece(transaction->first_index, piece));
        CADRE_TRY(put(building, key, value));
    }
    return CADRE_OK;
}

/* What a leader writes beside the head. */
static cadre_status build_guarded(const struct building *building)
{
    const struct log_transaction *transaction = building->transaction;
    CADRE_TRY(compare_guard(building));
    if (transaction->kind == LOG_APPEND) {
        CADRE_TRY(build_append(building));
    } else if (transaction->kind == LOG_PIECES) {
        CADRE_TRY(build_pieces(building));
    } else if (transaction->kind == LOG_TRIM) {
        build_trim(building);
    } else if (transaction->kind == LOG_SNAPSHOT) {
        CADRE_TRY(build_snapshot(building));
    } else {
        CADRE_ASSERT(transaction->kind == LOG_BEAT);
    }
    return put_head(building);
}

cadre_status build_transaction(const struct log_transaction *transaction,
    const struct build_inputs *inputs, struct built *built, struct cadre_error *error)
{
    static const struct etcd_operation gets[BUILD_GETS] = {{.kind = ETCD_GET, .key = KEY_CLUSTER},
        {.kind = ETCD_GET, .key = KEY_LEADER}, {.kind = ETCD_GET, .key = KEY_HEAD}};
    const struct building building = {
        .transaction = transaction, .inputs = inputs, .built = built, .error = error};
    wire_arena_reset(built->arena);
    built->etcd = (struct etcd_transaction){.comparisons = built->comparisons,
        .then = built->then,
        .otherwise = gets,
        .otherwise_count = BUILD_GETS};
    built->key_count = 0;
    built->entry_count = 0;
    built->leader.size = 0;
    built->hash = transaction->head.hash;
    switch (transaction->kind) {
    case LOG_CREATE:
        return build_create(&building);
    case LOG_TAKE_OVER:
        return build_take_over(&building);
    case LOG_LEAVE:
        return build_leave(&building);
    default:
        return build_guarded(&building);
    }
}
