/* SPDX-License-Identifier: Apache-2.0
 * Packing and unpacking of each value. */
#include "coordinator/replication/values.h"

#include <string.h>

#include "cadre/v1/replication.pb-c.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/wire/arena.h"

static struct etcd_bytes pack(const ProtobufCMessage *message, struct wire_arena *arena)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *data = fault_point("replication.memory") ? NULL : wire_arena_alloc(arena, size + 1);
    if (data == NULL) {
        return (struct etcd_bytes){0};
    }
    size_t written = protobuf_c_message_pack(message, data);
    CADRE_ASSERT(written == size);
    return (struct etcd_bytes){.data = data, .size = size};
}

static void *unpack(
    struct etcd_bytes value, const ProtobufCMessageDescriptor *descriptor, struct wire_arena *arena)
{
    return protobuf_c_message_unpack(
        descriptor, wire_arena_allocator(arena), value.size, value.data);
}

static ProtobufCBinaryData binary(const void *data, size_t size)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)data, .len = size};
}

static ProtobufCBinaryData binary_of_hash(const struct log_hash *hash)
{
    return binary(hash->bytes, sizeof hash->bytes);
}

static bool take_hash(const ProtobufCBinaryData *from, struct log_hash *ret_hash)
{
    if (from->len != sizeof ret_hash->bytes) {
        return false;
    }
    memcpy(ret_hash->bytes, from->data, sizeof ret_hash->bytes);
    return true;
}

static Cadre__V1__LogNonce nonce_message(struct log_nonce nonce)
{
    Cadre__V1__LogNonce message = CADRE__V1__LOG_NONCE__INIT;
    message.high = nonce.high;
    message.low = nonce.low;
    return message;
}

/* Absence is the nonce of which both halves are 0. */
static struct log_nonce take_nonce(const Cadre__V1__LogNonce *from)
{
    return from == NULL ? (struct log_nonce){0}
                        : (struct log_nonce){.high = from->high, .low = from->low};
}

static Cadre__V1__LogNonce *nonce_or_none(
    const Cadre__V1__LogNonce *message, struct log_nonce nonce)
{
    bool none = log_nonce_equal(nonce, (struct log_nonce){0});
    return none ? NULL : (Cadre__V1__LogNonce *)(uintptr_t)message;
}

static bool take_text(const char *from, char *ret_text, size_t size)
{
    size_t length = strlen(from);
    if (length >= size) {
        return false;
    }
    memcpy(ret_text, from, length + 1);
    return true;
}

/* ---- cluster ---- */

struct etcd_bytes value_pack_cluster(const struct cluster_value *cluster, struct wire_arena *arena)
{
    Cadre__V1__LogNonce id = nonce_message(cluster->cluster.id);
    Cadre__V1__LogCluster message = CADRE__V1__LOG_CLUSTER__INIT;
    message.id = &id;
    message.etcd_id = cluster->cluster.etcd_id;
    message.format = cluster->cluster.format;
    message.reseeded_term = cluster->cluster.reseeded_term;
    message.secret = binary(cluster->secret, sizeof cluster->secret);
    return pack(&message.base, arena);
}

struct etcd_bytes value_raise_format(
    struct etcd_bytes cluster, uint32_t format, struct wire_arena *arena)
{
    Cadre__V1__LogCluster *message = unpack(cluster, &cadre__v1__log_cluster__descriptor, arena);
    if (message == NULL) {
        return (struct etcd_bytes){0};
    }
    message->format = format;
    return pack(&message->base, arena);
}

bool value_unpack_cluster(
    struct etcd_bytes value, struct wire_arena *arena, struct cluster_value *ret_cluster)
{
    const Cadre__V1__LogCluster *from = unpack(value, &cadre__v1__log_cluster__descriptor, arena);
    if (from == NULL) {
        return false;
    }
    *ret_cluster = (struct cluster_value){.cluster = {.id = take_nonce(from->id),
                                              .etcd_id = from->etcd_id,
                                              .format = from->format,
                                              .reseeded_term = from->reseeded_term}};
    if (from->secret.len != sizeof ret_cluster->secret) {
        return false;
    }
    memcpy(ret_cluster->secret, from->secret.data, sizeof ret_cluster->secret);
    return !log_nonce_equal(ret_cluster->cluster.id, (struct log_nonce){0}) && from->format > 0;
}

/* ---- leader ---- */

struct etcd_bytes value_pack_leader(const struct leader_value *leader, struct wire_arena *arena)
{
    Cadre__V1__LogNonce nonce = nonce_message(leader->leader.nonce);
    Cadre__V1__LogLeader message = CADRE__V1__LOG_LEADER__INIT;
    message.term = leader->leader.term;
    message.nonce = nonce_or_none(&nonce, leader->leader.nonce);
    message.left = leader->leader.left;
    message.name = (char *)(uintptr_t)leader->name;
    message.addresses = (char *)(uintptr_t)leader->addresses;
    message.since_us = leader->since_us;
    return pack(&message.base, arena);
}

bool value_unpack_leader(
    struct etcd_bytes value, struct wire_arena *arena, struct leader_value *ret_leader)
{
    const Cadre__V1__LogLeader *from = unpack(value, &cadre__v1__log_leader__descriptor, arena);
    if (from == NULL) {
        return false;
    }
    *ret_leader = (struct leader_value){
        .leader = {.term = from->term, .nonce = take_nonce(from->nonce), .left = from->left != 0},
        .since_us = from->since_us};
    return take_text(from->name, ret_leader->name, sizeof ret_leader->name) &&
           take_text(from->addresses, ret_leader->addresses, sizeof ret_leader->addresses);
}

/* ---- head ---- */

struct etcd_bytes value_pack_head(const struct log_head *head, struct wire_arena *arena)
{
    Cadre__V1__LogNonce nonce = nonce_message(head->nonce);
    Cadre__V1__LogHead message = CADRE__V1__LOG_HEAD__INIT;
    message.term = head->term;
    message.nonce = nonce_or_none(&nonce, head->nonce);
    message.index = head->index;
    message.hash = binary_of_hash(&head->hash);
    message.first = head->first;
    message.beat = head->beat;
    return pack(&message.base, arena);
}

bool value_unpack_head(struct etcd_bytes value, struct wire_arena *arena, struct log_head *ret_head)
{
    const Cadre__V1__LogHead *from = unpack(value, &cadre__v1__log_head__descriptor, arena);
    if (from == NULL) {
        return false;
    }
    *ret_head = (struct log_head){.term = from->term,
        .nonce = take_nonce(from->nonce),
        .index = from->index,
        .first = from->first,
        .beat = from->beat};
    return take_hash(&from->hash, &ret_head->hash) && from->first > 0 &&
           from->first - 1 <= from->index;
}

/* ---- entries ---- */

struct etcd_bytes value_pack_entry(const struct entry_value *entry, struct wire_arena *arena)
{
    Cadre__V1__LogPieces pieces = CADRE__V1__LOG_PIECES__INIT;
    Cadre__V1__LogEntry message = CADRE__V1__LOG_ENTRY__INIT;
    message.term = entry->term;
    message.index = entry->index;
    message.format = entry->format;
    message.appended_us = entry->appended_us;
    message.hash = binary_of_hash(&entry->hash);
    switch (entry->content) {
    case ENTRY_LEADER:
        message.content_case = CADRE__V1__LOG_ENTRY__CONTENT_LEADER;
        message.leader = binary(entry->bytes.data, entry->bytes.size);
        break;
    case ENTRY_RECORDS:
        message.content_case = CADRE__V1__LOG_ENTRY__CONTENT_RECORDS;
        message.records = binary(entry->bytes.data, entry->bytes.size);
        break;
    case ENTRY_PIECES:
        pieces.count = entry->piece_count;
        pieces.bytes = entry->piece_bytes;
        message.content_case = CADRE__V1__LOG_ENTRY__CONTENT_PIECES;
        message.pieces = &pieces;
        break;
    }
    return pack(&message.base, arena);
}

static struct etcd_bytes take_bytes(const ProtobufCBinaryData *from)
{
    return (struct etcd_bytes){.data = from->data, .size = from->len};
}

static bool take_pieces(const Cadre__V1__LogPieces *from, struct entry_value *ret_entry)
{
    uint64_t count = from->count;
    ret_entry->content = ENTRY_PIECES;
    ret_entry->piece_count = from->count;
    ret_entry->piece_bytes = from->bytes;
    return count >= 2 && count <= LOG_PIECES_MAX && from->bytes > (count - 1) * LOG_PIECE_BYTES &&
           from->bytes <= count * LOG_PIECE_BYTES;
}

static bool take_content(const Cadre__V1__LogEntry *from, struct entry_value *ret_entry)
{
    switch (from->content_case) {
    case CADRE__V1__LOG_ENTRY__CONTENT_LEADER:
        ret_entry->content = ENTRY_LEADER;
        ret_entry->bytes = take_bytes(&from->leader);
        return true;
    case CADRE__V1__LOG_ENTRY__CONTENT_RECORDS:
        ret_entry->content = ENTRY_RECORDS;
        ret_entry->bytes = take_bytes(&from->records);
        return from->records.len > 0 && from->records.len <= LOG_PIECE_BYTES;
    case CADRE__V1__LOG_ENTRY__CONTENT_PIECES:
        return take_pieces(from->pieces, ret_entry);
    default:
        return false;
    }
}

bool value_unpack_entry(
    struct etcd_bytes value, struct wire_arena *arena, struct entry_value *ret_entry)
{
    const Cadre__V1__LogEntry *from = unpack(value, &cadre__v1__log_entry__descriptor, arena);
    if (from == NULL) {
        return false;
    }
    *ret_entry = (struct entry_value){.term = from->term,
        .index = from->index,
        .format = from->format,
        .appended_us = from->appended_us};
    return take_hash(&from->hash, &ret_entry->hash) && from->format > 0 &&
           take_content(from, ret_entry);
}

struct etcd_bytes value_pack_term(const struct term_value *term, struct wire_arena *arena)
{
    Cadre__V1__LogNonce nonce = nonce_message(term->nonce);
    Cadre__V1__LogTerm message = CADRE__V1__LOG_TERM__INIT;
    message.name = (char *)(uintptr_t)term->name;
    message.version = (char *)(uintptr_t)term->version;
    message.nonce = nonce_or_none(&nonce, term->nonce);
    return pack(&message.base, arena);
}

bool value_unpack_term(
    struct etcd_bytes value, struct wire_arena *arena, struct term_value *ret_term)
{
    const Cadre__V1__LogTerm *from = unpack(value, &cadre__v1__log_term__descriptor, arena);
    if (from == NULL) {
        return false;
    }
    *ret_term = (struct term_value){
        .name = from->name, .version = from->version, .nonce = take_nonce(from->nonce)};
    return true;
}

/* ---- snapshots ---- */

struct etcd_bytes value_pack_snapshot(
    const struct replica_snapshot *snapshot, struct wire_arena *arena)
{
    Cadre__V1__LogSnapshot message = CADRE__V1__LOG_SNAPSHOT__INIT;
    message.index = snapshot->at.index;
    message.hash = binary_of_hash(&snapshot->at.hash);
    message.term = snapshot->at.term;
    message.sha256 = binary(snapshot->sha256, sizeof snapshot->sha256);
    message.size = snapshot->size;
    return pack(&message.base, arena);
}

bool value_unpack_snapshot(
    struct etcd_bytes value, struct wire_arena *arena, struct replica_snapshot *ret_snapshot)
{
    const Cadre__V1__LogSnapshot *from = unpack(value, &cadre__v1__log_snapshot__descriptor, arena);
    if (from == NULL || from->sha256.len != sizeof ret_snapshot->sha256) {
        return false;
    }
    *ret_snapshot = (struct replica_snapshot){
        .at = {.index = from->index, .term = from->term}, .size = from->size};
    memcpy(ret_snapshot->sha256, from->sha256.data, sizeof ret_snapshot->sha256);
    return from->index > 0 && take_hash(&from->hash, &ret_snapshot->at.hash);
}
