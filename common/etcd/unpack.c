/* SPDX-License-Identifier: Apache-2.0
 * Answers of etcd: from bytes of any origin to the structs of etcd.h. Called by call.c and
 * watch.c. */
#include <string.h>

#include "common/base/fault.h"
#include "common/etcd/errors.h"
#include "common/etcd/messages.h"
#include "common/pure/assert.h"
#include "common/wire/arena.h"
#include "etcd/rpc.pb-c.h"

static cadre_status not_etcds(struct cadre_error *error, const char *what)
{
    return cadre_error_set(error, CADRE_INTERNAL,
        "its answer %s: is it an etcd, and not another server at this port?", what);
}

static cadre_status answer_too_large(const struct wire_arena *arena, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "its answer takes more memory than the %zu bytes that one may take, or there is no memory: "
        "read fewer keys at once",
        wire_arena_budget(arena));
}

/* NULL: refused, and `error` is set. */
static void *unpack_message(const struct etcd_message *message,
    const ProtobufCMessageDescriptor *descriptor, struct cadre_error *error)
{
    wire_arena_reset(message->arena);
    if (fault_point("etcd.memory")) {
        answer_too_large(message->arena, error);
        return NULL;
    }
    void *unpacked = protobuf_c_message_unpack(
        descriptor, wire_arena_allocator(message->arena), message->size, message->data);
    if (unpacked == NULL && wire_arena_is_spent(message->arena)) {
        answer_too_large(message->arena, error);
    } else if (unpacked == NULL) {
        not_etcds(error, "cannot be read");
    }
    return unpacked;
}

static void *unpack_take(const struct etcd_message *message, size_t count, size_t size)
{
    void *taken =
        fault_point("etcd.memory") ? NULL : wire_arena_alloc(message->arena, count * size);
    if (taken != NULL) {
        memset(taken, 0, count * size);
    }
    return taken;
}

static cadre_status unpack_header(const Etcdserverpb__ResponseHeader *header,
    struct etcd_answer *answer, struct cadre_error *error)
{
    if (header == NULL || header->cluster_id == 0) {
        return not_etcds(error, "does not say of which cluster it is");
    }
    answer->cluster_id = header->cluster_id;
    answer->member_id = header->member_id;
    answer->raft_term = header->raft_term;
    answer->revision = header->revision;
    return CADRE_OK;
}

/* ---- pairs ---- */

/* Copies the part of the key beneath the prefix. */
static cadre_status unpack_key(const struct etcd_message *message, const Mvccpb__KeyValue *from,
    const char **ret_key, struct cadre_error *error)
{
    size_t prefix = strlen(message->prefix);
    const ProtobufCBinaryData *key = &from->key;
    if (key->len <= prefix + 1 || key->len - prefix - 1 >= ETCD_KEY_BYTES ||
        memcmp(key->data, message->prefix, prefix) != 0 || key->data[prefix] != '/' ||
        memchr(key->data, '\0', key->len) != NULL) {
        return not_etcds(error, "has a key that was not asked for");
    }
    size_t length = key->len - prefix - 1;
    char *text = unpack_take(message, length + 1, 1);
    if (text == NULL) {
        return answer_too_large(message->arena, error);
    }
    memcpy(text, key->data + prefix + 1, length);
    *ret_key = text;
    return CADRE_OK;
}

static cadre_status unpack_pairs(const struct etcd_message *message,
    const Etcdserverpb__RangeResponse *from, struct etcd_result *result, struct cadre_error *error)
{
    struct etcd_pair *pairs = unpack_take(message, from->n_kvs, sizeof *pairs);
    if (pairs == NULL) {
        return answer_too_large(message->arena, error);
    }
    for (size_t i = 0; i < from->n_kvs; i++) {
        const Mvccpb__KeyValue *pair = from->kvs[i];
        pairs[i] = (struct etcd_pair){
            .value = {.data = pair->value.data, .size = pair->value.len},
            .create_revision = pair->create_revision,
            .mod_revision = pair->mod_revision,
            .version = pair->version,
        };
        CADRE_TRY(unpack_key(message, pair, &pairs[i].key, error));
    }
    result->pairs = pairs;
    result->pair_count = from->n_kvs;
    result->more = from->more != 0;
    return CADRE_OK;
}

cadre_status etcd_unpack_range(
    const struct etcd_message *message, struct etcd_answer *answer, struct cadre_error *error)
{
    const Etcdserverpb__RangeResponse *from =
        unpack_message(message, &etcdserverpb__range_response__descriptor, error);
    if (from == NULL) {
        return error->code;
    }
    CADRE_TRY(unpack_header(from->header, answer, error));
    struct etcd_result *result = unpack_take(message, 1, sizeof *result);
    if (result == NULL) {
        return answer_too_large(message->arena, error);
    }
    CADRE_TRY(unpack_pairs(message, from, result, error));
    answer->results = result;
    answer->result_count = 1;
    return CADRE_OK;
}

/* ---- transactions ---- */

static cadre_status unpack_operation(const struct etcd_message *message,
    const Etcdserverpb__ResponseOp *from, uint8_t kind, struct etcd_result *result,
    struct cadre_error *error)
{
    switch (from->response_case) {
    case ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_RANGE:
        if (kind == ETCD_GET) {
            return unpack_pairs(message, from->response_range, result, error);
        }
        break;
    case ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_PUT:
        if (kind == ETCD_PUT) {
            return CADRE_OK;
        }
        break;
    case ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_DELETE_RANGE:
        if (kind == ETCD_DELETE) {
            result->deleted = from->response_delete_range->deleted;
            return CADRE_OK;
        }
        break;
    default:
        break;
    }
    return not_etcds(error, "is not that of the operations that were sent");
}

cadre_status etcd_unpack_transaction(const struct etcd_message *message,
    const struct etcd_shape *shape, struct etcd_answer *answer, struct cadre_error *error)
{
    const Etcdserverpb__TxnResponse *from =
        unpack_message(message, &etcdserverpb__txn_response__descriptor, error);
    if (from == NULL) {
        return error->code;
    }
    CADRE_TRY(unpack_header(from->header, answer, error));
    size_t side = from->succeeded ? 1 : 0;
    if (from->n_responses != shape->counts[side]) {
        return not_etcds(error, "has another number of operations than were sent");
    }
    struct etcd_result *results = unpack_take(message, from->n_responses, sizeof *results);
    if (results == NULL) {
        return answer_too_large(message->arena, error);
    }
    for (size_t i = 0; i < from->n_responses; i++) {
        CADRE_TRY(unpack_operation(
            message, from->responses[i], shape->kinds[side][i], &results[i], error));
    }
    answer->succeeded = side == 1;
    answer->results = results;
    answer->result_count = from->n_responses;
    return CADRE_OK;
}

/* ---- the rest ---- */

static uint64_t at_least_zero(int64_t value)
{
    return value > 0 ? (uint64_t)value : 0;
}

cadre_status etcd_unpack_status(
    const struct etcd_message *message, struct etcd_answer *answer, struct cadre_error *error)
{
    const Etcdserverpb__StatusResponse *from =
        unpack_message(message, &etcdserverpb__status_response__descriptor, error);
    if (from == NULL) {
        return error->code;
    }
    CADRE_TRY(unpack_header(from->header, answer, error));
    struct etcd_member *member = unpack_take(message, 1, sizeof *member);
    if (member == NULL) {
        return answer_too_large(message->arena, error);
    }
    etcd_printable(from->version, member->version, sizeof member->version);
    member->has_leader = from->leader != 0;
    member->file_bytes = at_least_zero(from->dbsize);
    member->in_use_bytes = at_least_zero(from->dbsizeinuse);
    for (size_t i = 0; i < from->n_errors; i++) {
        member->no_space |= strstr(from->errors[i], "alarm:NOSPACE") != NULL;
        member->corrupt |= strstr(from->errors[i], "alarm:CORRUPT") != NULL;
    }
    answer->member = member;
    return CADRE_OK;
}

cadre_status etcd_unpack_login(
    const struct etcd_message *message, const char **ret_token, struct cadre_error *error)
{
    const Etcdserverpb__AuthenticateResponse *from =
        unpack_message(message, &etcdserverpb__authenticate_response__descriptor, error);
    if (from == NULL) {
        return error->code;
    }
    if (from->token[0] == '\0') {
        return not_etcds(error, "has no token");
    }
    for (const char *at = from->token; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~') {
            return not_etcds(error, "has a token that no header can carry");
        }
    }
    *ret_token = from->token;
    return CADRE_OK;
}

cadre_status etcd_unpack_watch(
    const struct etcd_message *message, struct etcd_notice *ret_notice, struct cadre_error *error)
{
    const Etcdserverpb__WatchResponse *from =
        unpack_message(message, &etcdserverpb__watch_response__descriptor, error);
    if (from == NULL) {
        return error->code;
    }
    struct etcd_answer answer = {.status = CADRE_OK};
    CADRE_TRY(unpack_header(from->header, &answer, error));
    *ret_notice = (struct etcd_notice){
        .created = from->created != 0,
        .changed = from->n_events > 0,
        .canceled = from->canceled != 0,
        .reason = from->cancel_reason,
        .cluster_id = answer.cluster_id,
    };
    return CADRE_OK;
}
