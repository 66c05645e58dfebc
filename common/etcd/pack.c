/* SPDX-License-Identifier: Apache-2.0
 * Requests to etcd: from the structs of etcd.h to bytes. Values are not copied on the way, only
 * into the buffer that is sent. Called by client.c and watch.c. */
#include "common/etcd/messages.h"

#include <stdio.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/wire/arena.h"
#include "etcd/rpc.pb-c.h"

#define WHOLE_KEY_BYTES (ETCD_PREFIX_BYTES + ETCD_KEY_BYTES)

/* A key with the prefix before it. */
struct whole_key {
    char text[WHOLE_KEY_BYTES];
    size_t length;
};

struct packing {
    const char *prefix;
    struct wire_arena *scratch;
    struct cadre_error *error;
};

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "no memory for a request to etcd: end something else");
}

static void *pack_take(const struct packing *packing, size_t count, size_t size)
{
    return fault_point("etcd.memory") ? NULL : wire_arena_alloc(packing->scratch, count * size);
}

static cadre_status make_key(
    const char *key, const char *prefix, struct whole_key *ret_key, struct cadre_error *error)
{
    size_t length = strlen(key);
    if (length == 0 || length >= ETCD_KEY_BYTES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "key \"%.100s\": %zu characters; a key beneath the prefix has 1 to %d", key, length,
            ETCD_KEY_BYTES - 1);
    }
    int written = snprintf(ret_key->text, sizeof ret_key->text, "%s/%s", prefix, key);
    CADRE_ASSERT(written > 0 && (size_t)written < sizeof ret_key->text);
    ret_key->length = (size_t)written;
    return CADRE_OK;
}

static ProtobufCBinaryData binary(const void *data, size_t size)
{
    return (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)data, .len = size};
}

/* In the scratch arena; absent for NULL. */
static cadre_status pack_key(
    const struct packing *packing, const char *key, ProtobufCBinaryData *ret_key)
{
    *ret_key = binary(NULL, 0);
    if (key == NULL) {
        return CADRE_OK;
    }
    struct whole_key *whole = pack_take(packing, 1, sizeof *whole);
    if (whole == NULL) {
        return no_memory(packing->error);
    }
    CADRE_TRY(make_key(key, packing->prefix, whole, packing->error));
    *ret_key = binary(whole->text, whole->length);
    return CADRE_OK;
}

static cadre_status pack_comparison(
    const struct packing *packing, const struct etcd_comparison *from, Etcdserverpb__Compare *to)
{
    etcdserverpb__compare__init(to);
    switch (from->what) {
    case ETCD_VERSION:
        to->target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__VERSION;
        to->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_VERSION;
        to->version = from->number;
        break;
    case ETCD_CREATE_REVISION:
        to->target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__CREATE;
        to->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_CREATE_REVISION;
        to->create_revision = from->number;
        break;
    case ETCD_MOD_REVISION:
        to->target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__MOD;
        to->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_MOD_REVISION;
        to->mod_revision = from->number;
        break;
    case ETCD_VALUE:
        to->target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__VALUE;
        to->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_VALUE;
        to->value = binary(from->value.data, from->value.size);
        break;
    }
    return pack_key(packing, from->key, &to->key);
}

static cadre_status pack_get(
    const struct packing *packing, const struct etcd_operation *from, Etcdserverpb__RequestOp *to)
{
    Etcdserverpb__RangeRequest *get = pack_take(packing, 1, sizeof *get);
    if (get == NULL) {
        return no_memory(packing->error);
    }
    etcdserverpb__range_request__init(get);
    to->request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE;
    to->request_range = get;
    get->limit = from->limit;
    CADRE_TRY(pack_key(packing, from->key, &get->key));
    return pack_key(packing, from->end, &get->range_end);
}

static cadre_status pack_put(
    const struct packing *packing, const struct etcd_operation *from, Etcdserverpb__RequestOp *to)
{
    Etcdserverpb__PutRequest *put = pack_take(packing, 1, sizeof *put);
    if (put == NULL) {
        return no_memory(packing->error);
    }
    etcdserverpb__put_request__init(put);
    put->value = binary(from->value.data, from->value.size);
    to->request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
    to->request_put = put;
    return pack_key(packing, from->key, &put->key);
}

static cadre_status pack_delete(
    const struct packing *packing, const struct etcd_operation *from, Etcdserverpb__RequestOp *to)
{
    Etcdserverpb__DeleteRangeRequest *deletion = pack_take(packing, 1, sizeof *deletion);
    if (deletion == NULL) {
        return no_memory(packing->error);
    }
    etcdserverpb__delete_range_request__init(deletion);
    to->request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
    to->request_delete_range = deletion;
    CADRE_TRY(pack_key(packing, from->key, &deletion->key));
    return pack_key(packing, from->end, &deletion->range_end);
}

static cadre_status pack_operation(
    const struct packing *packing, const struct etcd_operation *from, Etcdserverpb__RequestOp *to)
{
    etcdserverpb__request_op__init(to);
    switch (from->kind) {
    case ETCD_GET:
        return pack_get(packing, from, to);
    case ETCD_PUT:
        return pack_put(packing, from, to);
    case ETCD_DELETE:
        return pack_delete(packing, from, to);
    }
    CADRE_ASSERT(false);
    return CADRE_INTERNAL;
}

static cadre_status pack_operations(const struct packing *packing,
    const struct etcd_operation *from, size_t count, Etcdserverpb__RequestOp ***ret_list)
{
    Etcdserverpb__RequestOp **list = pack_take(packing, count, sizeof(Etcdserverpb__RequestOp *));
    Etcdserverpb__RequestOp *each = pack_take(packing, count, sizeof *each);
    if (list == NULL || each == NULL) {
        return no_memory(packing->error);
    }
    for (size_t i = 0; i < count; i++) {
        list[i] = &each[i];
        CADRE_TRY(pack_operation(packing, &from[i], &each[i]));
    }
    *ret_list = list;
    return CADRE_OK;
}

static cadre_status pack_comparisons(const struct packing *packing,
    const struct etcd_comparison *from, size_t count, Etcdserverpb__Compare ***ret_list)
{
    Etcdserverpb__Compare **list = pack_take(packing, count, sizeof(Etcdserverpb__Compare *));
    Etcdserverpb__Compare *each = pack_take(packing, count, sizeof *each);
    if (list == NULL || each == NULL) {
        return no_memory(packing->error);
    }
    for (size_t i = 0; i < count; i++) {
        list[i] = &each[i];
        CADRE_TRY(pack_comparison(packing, &from[i], &each[i]));
    }
    *ret_list = list;
    return CADRE_OK;
}

static void pack_message(const ProtobufCMessage *message, struct rpc_buffer *ret_buffer)
{
    rpc_buffer_alloc(ret_buffer, protobuf_c_message_get_packed_size(message));
    size_t written = protobuf_c_message_pack(message, ret_buffer->data);
    CADRE_ASSERT(written == ret_buffer->length);
}

static cadre_status check_counts(
    const struct etcd_transaction *transaction, struct cadre_error *error)
{
    const struct {
        const char *name;
        size_t count;
    } lists[] = {{"comparisons", transaction->comparison_count},
        {"operations", transaction->then_count},
        {"operations otherwise", transaction->otherwise_count}};
    for (size_t i = 0; i < CADRE_COUNT_OF(lists); i++) {
        if (lists[i].count > ETCD_OPERATIONS_MAX) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "a transaction of %zu %s: at most %d fit; make two of it", lists[i].count,
                lists[i].name, ETCD_OPERATIONS_MAX);
        }
    }
    return CADRE_OK;
}

cadre_status etcd_pack_transaction(const struct etcd_transaction *transaction, const char *prefix,
    struct wire_arena *scratch, struct rpc_buffer *ret_buffer, struct cadre_error *error)
{
    const struct packing packing = {.prefix = prefix, .scratch = scratch, .error = error};
    Etcdserverpb__TxnRequest request = ETCDSERVERPB__TXN_REQUEST__INIT;
    wire_arena_reset(scratch);
    CADRE_TRY(check_counts(transaction, error));
    request.n_compare = transaction->comparison_count;
    request.n_success = transaction->then_count;
    request.n_failure = transaction->otherwise_count;
    CADRE_TRY(
        pack_comparisons(&packing, transaction->comparisons, request.n_compare, &request.compare));
    CADRE_TRY(pack_operations(&packing, transaction->then, request.n_success, &request.success));
    CADRE_TRY(
        pack_operations(&packing, transaction->otherwise, request.n_failure, &request.failure));
    size_t bytes = etcdserverpb__txn_request__get_packed_size(&request);
    if (bytes > ETCD_TRANSACTION_BYTES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a transaction of %zu bytes: at most %zu fit; make two of it", bytes,
            ETCD_TRANSACTION_BYTES_MAX);
    }
    pack_message(&request.base, ret_buffer);
    return CADRE_OK;
}

void etcd_shape_of(const struct etcd_transaction *transaction, struct etcd_shape *ret_shape)
{
    const struct {
        const struct etcd_operation *operations;
        size_t count;
    } lists[2] = {{transaction->otherwise, transaction->otherwise_count},
        {transaction->then, transaction->then_count}};
    for (size_t side = 0; side < 2; side++) {
        CADRE_ASSERT(lists[side].count <= ETCD_OPERATIONS_MAX);
        ret_shape->counts[side] = (uint8_t)lists[side].count;
        for (size_t i = 0; i < lists[side].count; i++) {
            ret_shape->kinds[side][i] = (uint8_t)lists[side].operations[i].kind;
        }
    }
}

cadre_status etcd_pack_range(const char *key, const char *end, uint32_t limit, const char *prefix,
    struct rpc_buffer *ret_buffer, struct cadre_error *error)
{
    struct whole_key from = {.length = 0};
    struct whole_key to = {.length = 0};
    Etcdserverpb__RangeRequest request = ETCDSERVERPB__RANGE_REQUEST__INIT;
    CADRE_TRY(make_key(key, prefix, &from, error));
    if (end != NULL) {
        CADRE_TRY(make_key(end, prefix, &to, error));
    }
    request.key = binary(from.text, from.length);
    request.range_end = binary(to.text, to.length);
    request.limit = limit;
    pack_message(&request.base, ret_buffer);
    return CADRE_OK;
}

cadre_status etcd_pack_watch(
    const char *key, const char *prefix, struct rpc_buffer *ret_buffer, struct cadre_error *error)
{
    struct whole_key whole;
    Etcdserverpb__WatchCreateRequest create = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
    Etcdserverpb__WatchRequest request = ETCDSERVERPB__WATCH_REQUEST__INIT;
    CADRE_TRY(make_key(key, prefix, &whole, error));
    create.key = binary(whole.text, whole.length);
    request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
    request.create_request = &create;
    pack_message(&request.base, ret_buffer);
    return CADRE_OK;
}

void etcd_pack_status(struct rpc_buffer *ret_buffer)
{
    const Etcdserverpb__StatusRequest request = ETCDSERVERPB__STATUS_REQUEST__INIT;
    pack_message(&request.base, ret_buffer);
}

void etcd_pack_login(const char *user, const char *password, struct rpc_buffer *ret_buffer)
{
    Etcdserverpb__AuthenticateRequest request = ETCDSERVERPB__AUTHENTICATE_REQUEST__INIT;
    request.name = (char *)(uintptr_t)user;
    request.password = (char *)(uintptr_t)password;
    pack_message(&request.base, ret_buffer);
}
