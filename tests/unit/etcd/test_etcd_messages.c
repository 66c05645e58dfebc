/* SPDX-License-Identifier: Apache-2.0
 * etcd's messages: what is sent, field by field; answers of any bytes are accepted or refused, and
 * never more than the budget of memory is used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/etcd/errors.h"
#include "common/etcd/messages.h"
#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "etcd/rpc.pb-c.h"
#include "tests/lib/test.h"

#define SCRATCH_BYTES ((size_t)1024 * 1024)
#define BUDGET_BYTES  ((size_t)64 * 1024)
#define MUTATIONS     20000

/* ---- requests ---- */

static const struct etcd_comparison comparisons[] = {
    {.key = "a", .what = ETCD_VERSION, .number = 1},
    {.key = "b", .what = ETCD_CREATE_REVISION, .number = 2},
    {.key = "c", .what = ETCD_MOD_REVISION, .number = 3},
    {.key = "d", .what = ETCD_VALUE, .value = {.data = "four", .size = 4}},
};
static const struct etcd_operation then_operations[] = {
    {.kind = ETCD_PUT, .key = "log/1", .value = {.data = "one", .size = 3}},
    {.kind = ETCD_PUT, .key = "empty"},
    {.kind = ETCD_DELETE, .key = "part/1", .end = "part/2"},
};
static const struct etcd_operation otherwise_operations[] = {
    {.kind = ETCD_GET, .key = "leader"},
    {.kind = ETCD_GET, .key = "log/", .end = "log0", .limit = 64},
};
static const struct etcd_transaction transaction = {.comparisons = comparisons,
    .comparison_count = 4,
    .then = then_operations,
    .then_count = 3,
    .otherwise = otherwise_operations,
    .otherwise_count = 2};

static void assert_binary(ProtobufCBinaryData seen, const char *wanted)
{
    assert_int_equal(seen.len, strlen(wanted));
    assert_memory_equal(seen.data, wanted, seen.len);
}

static void a_transaction_is_sent_whole(void **state)
{
    struct wire_arena *scratch = wire_arena_new(SCRATCH_BYTES);
    struct rpc_buffer buffer;
    struct cadre_error error;
    (void)state;
    assert_ok(etcd_pack_transaction(&transaction, "p/q", scratch, &buffer, &error), &error);
    Etcdserverpb__TxnRequest *sent =
        etcdserverpb__txn_request__unpack(NULL, buffer.length, buffer.data);
    assert_non_null(sent);
    assert_int_equal(sent->n_compare, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(sent->compare[i]->result, ETCDSERVERPB__COMPARE__COMPARE_RESULT__EQUAL);
        assert_int_equal(sent->compare[i]->target, i);
    }
    assert_binary(sent->compare[0]->key, "p/q/a");
    assert_int_equal(sent->compare[0]->version, 1);
    assert_int_equal(sent->compare[1]->create_revision, 2);
    assert_int_equal(sent->compare[2]->mod_revision, 3);
    assert_binary(sent->compare[3]->value, "four");
    assert_int_equal(sent->n_success, 3);
    assert_binary(sent->success[0]->request_put->key, "p/q/log/1");
    assert_binary(sent->success[0]->request_put->value, "one");
    assert_binary(sent->success[1]->request_put->value, "");
    assert_binary(sent->success[2]->request_delete_range->key, "p/q/part/1");
    assert_binary(sent->success[2]->request_delete_range->range_end, "p/q/part/2");
    assert_int_equal(sent->n_failure, 2);
    assert_binary(sent->failure[0]->request_range->key, "p/q/leader");
    assert_binary(sent->failure[0]->request_range->range_end, "");
    assert_binary(sent->failure[1]->request_range->range_end, "p/q/log0");
    assert_int_equal(sent->failure[0]->request_range->limit, 0);
    assert_int_equal(sent->failure[1]->request_range->limit, 64);
    etcdserverpb__txn_request__free_unpacked(sent, NULL);
    rpc_buffer_free(&buffer);
    wire_arena_free(scratch);
}

static void limits_of_a_transaction(void **state)
{
    static struct etcd_operation many[ETCD_OPERATIONS_MAX + 1];
    static uint8_t large[ETCD_TRANSACTION_BYTES_MAX];
    static char long_key[ETCD_KEY_BYTES + 1];
    struct wire_arena *scratch = wire_arena_new(SCRATCH_BYTES);
    struct rpc_buffer buffer;
    struct cadre_error error;
    (void)state;
    for (size_t i = 0; i < CADRE_COUNT_OF(many); i++) {
        many[i] = (struct etcd_operation){.kind = ETCD_PUT, .key = "k"};
    }
    struct etcd_transaction lists = {.then = many,
        .then_count = ETCD_OPERATIONS_MAX,
        .otherwise = many,
        .otherwise_count = ETCD_OPERATIONS_MAX};
    assert_ok(etcd_pack_transaction(&lists, "p", scratch, &buffer, &error), &error);
    rpc_buffer_free(&buffer);
    lists.otherwise_count++;
    assert_error(etcd_pack_transaction(&lists, "p", scratch, &buffer, &error),
        CADRE_INVALID_ARGUMENT, &error, "a transaction of 126 operations otherwise");
    lists.then_count++;
    assert_error(etcd_pack_transaction(&lists, "p", scratch, &buffer, &error),
        CADRE_INVALID_ARGUMENT, &error, "a transaction of 126 operations: at most 125");

    /* "p/k" and the lengths around it: 5 bytes of the put before the value, 4 for its length. */
    const struct etcd_operation put = {
        .kind = ETCD_PUT, .key = "k", .value = {.data = large, .size = sizeof large - 17}};
    const struct etcd_transaction one = {.then = &put, .then_count = 1};
    assert_ok(etcd_pack_transaction(&one, "p", scratch, &buffer, &error), &error);
    assert_int_equal(buffer.length, ETCD_TRANSACTION_BYTES_MAX);
    rpc_buffer_free(&buffer);
    const struct etcd_operation larger = {
        .kind = ETCD_PUT, .key = "k", .value = {.data = large, .size = sizeof large - 16}};
    const struct etcd_transaction too_large = {.then = &larger, .then_count = 1};
    assert_error(etcd_pack_transaction(&too_large, "p", scratch, &buffer, &error),
        CADRE_INVALID_ARGUMENT, &error, "a transaction of 1114113 bytes: at most 1114112");

    memset(long_key, 'k', ETCD_KEY_BYTES);
    const struct etcd_operation bad_keys[] = {
        {.kind = ETCD_PUT, .key = ""}, {.kind = ETCD_GET, .key = long_key}};
    for (size_t i = 0; i < 2; i++) {
        const struct etcd_transaction bad = {.then = &bad_keys[i], .then_count = 1};
        assert_error(etcd_pack_transaction(&bad, "p", scratch, &buffer, &error),
            CADRE_INVALID_ARGUMENT, &error, "a key beneath the prefix has 1 to 95");
    }
    assert_error(etcd_pack_range("", NULL, 1, "p", &buffer, &error), CADRE_INVALID_ARGUMENT, &error,
        "1 to 95");
    assert_error(
        etcd_pack_watch(long_key, "p", &buffer, &error), CADRE_INVALID_ARGUMENT, &error, "1 to 95");
    wire_arena_free(scratch);
}

static void every_memory_of_a_request_once(void **state)
{
    struct wire_arena *scratch = wire_arena_new(SCRATCH_BYTES);
    struct rpc_buffer buffer;
    struct cadre_error error;
    (void)state;
    uint64_t nth = 1;
    for (bool met = true; met; nth++) {
        fault_arm("etcd.", nth);
        cadre_status status = etcd_pack_transaction(&transaction, "p", scratch, &buffer, &error);
        met = fault_disarm();
        assert_int_equal(status, met ? CADRE_RESOURCE_EXHAUSTED : CADRE_OK);
        if (status == CADRE_OK) {
            rpc_buffer_free(&buffer);
        }
    }
    assert_true(nth > 15);
    wire_arena_free(scratch);
}

/* ---- answers ---- */

struct answers {
    uint8_t bytes[4096];
    size_t size;
    struct wire_arena *arena;
};

static struct etcd_message message_of(struct answers *answers)
{
    return (struct etcd_message){
        .data = answers->bytes, .size = answers->size, .prefix = "cadre", .arena = answers->arena};
}

static void pack_answer(struct answers *answers, const ProtobufCMessage *message)
{
    answers->size = protobuf_c_message_get_packed_size(message);
    assert_true(answers->size <= sizeof answers->bytes);
    protobuf_c_message_pack(message, answers->bytes);
}

static Etcdserverpb__ResponseHeader header_of(uint64_t cluster_id)
{
    Etcdserverpb__ResponseHeader header = ETCDSERVERPB__RESPONSE_HEADER__INIT;
    header.cluster_id = cluster_id;
    header.member_id = 2;
    header.revision = 3;
    header.raft_term = 4;
    return header;
}

static void pack_range_answer(
    struct answers *answers, uint64_t cluster_id, const void *key, size_t key_size)
{
    Etcdserverpb__ResponseHeader header = header_of(cluster_id);
    Etcdserverpb__RangeResponse answer = ETCDSERVERPB__RANGE_RESPONSE__INIT;
    Mvccpb__KeyValue pair = MVCCPB__KEY_VALUE__INIT;
    Mvccpb__KeyValue *pairs = &pair;
    pair.key = (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t)key, .len = key_size};
    pair.value = (ProtobufCBinaryData){.data = (uint8_t *)(uintptr_t) "v\0w", .len = 3};
    pair.create_revision = 5;
    pair.mod_revision = 6;
    pair.version = 7;
    answer.header = &header;
    answer.kvs = &pairs;
    answer.n_kvs = 1;
    answer.more = true;
    pack_answer(answers, &answer.base);
}

static void a_read_is_taken(void **state)
{
    struct answers answers = {.arena = wire_arena_new(BUDGET_BYTES)};
    struct etcd_answer answer = {0};
    struct cadre_error error;
    (void)state;
    pack_range_answer(&answers, 1, "cadre/log/1", 11);
    struct etcd_message message = message_of(&answers);
    assert_ok(etcd_unpack_range(&message, &answer, &error), &error);
    assert_int_equal(answer.cluster_id, 1);
    assert_int_equal(answer.member_id, 2);
    assert_int_equal(answer.revision, 3);
    assert_int_equal(answer.raft_term, 4);
    assert_int_equal(answer.result_count, 1);
    assert_true(answer.results[0].more);
    assert_int_equal(answer.results[0].pair_count, 1);
    const struct etcd_pair *pair = answer.results[0].pairs;
    assert_string_equal(pair->key, "log/1");
    assert_int_equal(pair->value.size, 3);
    assert_memory_equal(pair->value.data, "v\0w", 3);
    assert_int_equal(pair->create_revision, 5);
    assert_int_equal(pair->mod_revision, 6);
    assert_int_equal(pair->version, 7);
    wire_arena_free(answers.arena);
}

static void keys_that_were_not_asked_for(void **state)
{
    static char longest[6 + ETCD_KEY_BYTES];
    struct answers answers = {.arena = wire_arena_new(BUDGET_BYTES)};
    struct etcd_answer answer = {0};
    struct cadre_error error;
    (void)state;
    memset(longest, 'x', sizeof longest);
    memcpy(longest, "cadre/", 6);
    const struct {
        const void *key;
        size_t size;
    } rows[] = {{"", 0}, {"cadre", 5}, {"cadre/", 6}, {"cadrex/a", 8}, {"other/abc", 9},
        {"cadre/a\0b", 9}, {longest, sizeof longest}};
    for (size_t i = 0; i < CADRE_COUNT_OF(rows); i++) {
        pack_range_answer(&answers, 1, rows[i].key, rows[i].size);
        struct etcd_message message = message_of(&answers);
        assert_error(etcd_unpack_range(&message, &answer, &error), CADRE_INTERNAL, &error,
            "has a key that was not asked for: is it an etcd");
    }
    pack_range_answer(&answers, 1, longest, sizeof longest - 1);
    struct etcd_message message = message_of(&answers);
    assert_ok(etcd_unpack_range(&message, &answer, &error), &error);
    pack_range_answer(&answers, 0, "cadre/a", 7);
    message = message_of(&answers);
    assert_error(etcd_unpack_range(&message, &answer, &error), CADRE_INTERNAL, &error,
        "does not say of which cluster it is");
    wire_arena_free(answers.arena);
}

/* Of the transaction above, with success: put, put, delete. */
static void pack_txn_answer(struct answers *answers, size_t count, bool wrong_kind)
{
    Etcdserverpb__ResponseHeader header = header_of(1);
    Etcdserverpb__TxnResponse answer = ETCDSERVERPB__TXN_RESPONSE__INIT;
    Etcdserverpb__PutResponse put = ETCDSERVERPB__PUT_RESPONSE__INIT;
    Etcdserverpb__DeleteRangeResponse deletion = ETCDSERVERPB__DELETE_RANGE_RESPONSE__INIT;
    Etcdserverpb__ResponseOp each[3] = {ETCDSERVERPB__RESPONSE_OP__INIT,
        ETCDSERVERPB__RESPONSE_OP__INIT, ETCDSERVERPB__RESPONSE_OP__INIT};
    Etcdserverpb__ResponseOp *list[3] = {&each[0], &each[1], &each[2]};
    deletion.deleted = 9;
    for (size_t i = 0; i < 2; i++) {
        each[i].response_case = ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_PUT;
        each[i].response_put = &put;
    }
    each[2].response_case = wrong_kind ? ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_PUT
                                       : ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_DELETE_RANGE;
    if (wrong_kind) {
        each[2].response_put = &put;
    } else {
        each[2].response_delete_range = &deletion;
    }
    answer.header = &header;
    answer.succeeded = true;
    answer.responses = list;
    answer.n_responses = count;
    pack_answer(answers, &answer.base);
}

static void a_transaction_s_answer_fits_it(void **state)
{
    struct answers answers = {.arena = wire_arena_new(BUDGET_BYTES)};
    struct etcd_answer answer = {0};
    struct etcd_shape shape;
    struct cadre_error error;
    (void)state;
    etcd_shape_of(&transaction, &shape);
    pack_txn_answer(&answers, 3, false);
    struct etcd_message message = message_of(&answers);
    assert_ok(etcd_unpack_transaction(&message, &shape, &answer, &error), &error);
    assert_true(answer.succeeded);
    assert_int_equal(answer.result_count, 3);
    assert_int_equal(answer.results[2].deleted, 9);
    pack_txn_answer(&answers, 2, false);
    message = message_of(&answers);
    assert_error(etcd_unpack_transaction(&message, &shape, &answer, &error), CADRE_INTERNAL, &error,
        "has another number of operations than were sent");
    pack_txn_answer(&answers, 3, true);
    message = message_of(&answers);
    assert_error(etcd_unpack_transaction(&message, &shape, &answer, &error), CADRE_INTERNAL, &error,
        "is not that of the operations that were sent");
    wire_arena_free(answers.arena);
}

static void memory_is_bounded(void **state)
{
    /* Empty pairs, of two bytes each, which unpack to a hundred. */
    static uint8_t bombs[200000];
    struct wire_arena *arena = wire_arena_new(BUDGET_BYTES);
    struct etcd_answer answer = {0};
    struct cadre_error error;
    (void)state;
    for (size_t i = 0; i < sizeof bombs; i += 2) {
        bombs[i] = 2 << 3 | 2;
    }
    const struct etcd_message message = {
        .data = bombs, .size = sizeof bombs, .prefix = "cadre", .arena = arena};
    assert_error(etcd_unpack_range(&message, &answer, &error), CADRE_RESOURCE_EXHAUSTED, &error,
        "takes more memory than the 65536 bytes");
    wire_arena_free(arena);
}

/* All five ways to read one message; what is accepted is within its limits. */
static void unpack_all(struct answers *answers, const struct etcd_shape *shape)
{
    struct cadre_error error;
    struct etcd_answer answer = {0};
    struct etcd_notice notice;
    const char *token = NULL;
    struct etcd_message message = message_of(answers);
    if (etcd_unpack_range(&message, &answer, &error) == CADRE_OK) {
        for (size_t i = 0; i < answer.results[0].pair_count; i++) {
            size_t length = strlen(answer.results[0].pairs[i].key);
            assert_true(length > 0 && length < ETCD_KEY_BYTES);
        }
    }
    answer = (struct etcd_answer){0};
    if (etcd_unpack_transaction(&message, shape, &answer, &error) == CADRE_OK) {
        assert_int_equal(answer.result_count, shape->counts[answer.succeeded]);
    }
    answer = (struct etcd_answer){0};
    if (etcd_unpack_status(&message, &answer, &error) == CADRE_OK) {
        assert_true(strlen(answer.member->version) < ETCD_VERSION_BYTES);
    }
    if (etcd_unpack_login(&message, &token, &error) == CADRE_OK) {
        assert_true(token[0] != '\0');
    }
    (void)etcd_unpack_watch(&message, &notice, &error);
}

static void any_bytes_are_taken_or_refused(void **state)
{
    struct answers answers = {.arena = wire_arena_new(BUDGET_BYTES)};
    struct etcd_shape shape;
    struct prng prng = {.state = 20261130};
    (void)state;
    etcd_shape_of(&transaction, &shape);
    for (int round = 0; round < MUTATIONS; round++) {
        if (round % 3 == 0) {
            pack_range_answer(&answers, 1, "cadre/log/1", 11);
        } else if (round % 3 == 1) {
            pack_txn_answer(&answers, 3, false);
        } else {
            answers.size = prng_uniform(&prng, 64);
            for (size_t i = 0; i < answers.size; i++) {
                answers.bytes[i] = (uint8_t)prng_uniform(&prng, 256);
            }
        }
        for (uint64_t i = prng_uniform(&prng, 4); i > 0 && answers.size > 0; i--) {
            answers.bytes[prng_uniform(&prng, answers.size)] = (uint8_t)prng_uniform(&prng, 256);
        }
        if (prng_uniform(&prng, 4) == 0) {
            answers.size = prng_uniform(&prng, answers.size + 1);
        }
        unpack_all(&answers, &shape);
    }
    wire_arena_free(answers.arena);
}

static void texts_of_others_are_made_printable(void **state)
{
    char text[8];
    (void)state;
    etcd_printable("a\033[31m\xff", text, sizeof text);
    assert_string_equal(text, "a?[31m?");
    etcd_printable("123456789", text, sizeof text);
    assert_string_equal(text, "1234567");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transaction_is_sent_whole),
        cmocka_unit_test(limits_of_a_transaction),
        cmocka_unit_test(every_memory_of_a_request_once),
        cmocka_unit_test(a_read_is_taken),
        cmocka_unit_test(keys_that_were_not_asked_for),
        cmocka_unit_test(a_transaction_s_answer_fits_it),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(any_bytes_are_taken_or_refused),
        cmocka_unit_test(texts_of_others_are_made_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
