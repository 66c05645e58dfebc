/* SPDX-License-Identifier: Apache-2.0 */
#include "etcd_standin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etcd/rpc.pb-c.h"
#include "tests/lib/speed.h"

#define REQUEST_BYTES_MAX (4 << 20)
#define OPERATIONS_MAX    128

/* ---- healthy answers ---- */

static void send_message(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct rpc_buffer buffer;
    rpc_buffer_alloc(&buffer, protobuf_c_message_get_packed_size(message));
    protobuf_c_message_pack(message, buffer.data);
    assert_int_equal(rpc_call_send_buffer(call, &buffer, NULL), CADRE_OK);
    rpc_buffer_free(&buffer);
}

static void reply_message(struct rpc_call *call, const ProtobufCMessage *message)
{
    send_message(call, message);
    rpc_call_finish(call, CADRE_OK, NULL);
}

static Etcdserverpb__ResponseHeader header_of(const struct standin *standin)
{
    Etcdserverpb__ResponseHeader header = ETCDSERVERPB__RESPONSE_HEADER__INIT;
    header.cluster_id = standin->cluster_id;
    header.member_id = standin->member_id;
    header.revision = 7;
    header.raft_term = 2;
    return header;
}

static Mvccpb__KeyValue head_pair(void)
{
    static uint8_t key[] = "cadre/head";
    static uint8_t value[] = "value";
    Mvccpb__KeyValue pair = MVCCPB__KEY_VALUE__INIT;
    pair.key = (ProtobufCBinaryData){.data = key, .len = sizeof key - 1};
    pair.value = (ProtobufCBinaryData){.data = value, .len = sizeof value - 1};
    pair.create_revision = 3;
    pair.mod_revision = 5;
    pair.version = 2;
    return pair;
}

static void healthy_status(struct standin *standin, struct rpc_call *call)
{
    Etcdserverpb__ResponseHeader header = header_of(standin);
    Etcdserverpb__StatusResponse answer = ETCDSERVERPB__STATUS_RESPONSE__INIT;
    char *alarm = (char *)(uintptr_t)standin->alarm;
    answer.header = &header;
    answer.version = (char *)(uintptr_t)standin->version;
    answer.leader = standin->member_id;
    answer.dbsize = 4096;
    answer.dbsizeinuse = 1024;
    answer.errors = &alarm;
    answer.n_errors = alarm != NULL ? 1 : 0;
    reply_message(call, &answer.base);
}

static void healthy_login(struct standin *standin, struct rpc_call *call)
{
    Etcdserverpb__ResponseHeader header = header_of(standin);
    Etcdserverpb__AuthenticateResponse answer = ETCDSERVERPB__AUTHENTICATE_RESPONSE__INIT;
    char token[32];
    snprintf(token, sizeof token, "token-%u", ++standin->tokens);
    answer.header = &header;
    answer.token = token;
    reply_message(call, &answer.base);
}

static void healthy_range(struct standin *standin, struct rpc_call *call)
{
    Etcdserverpb__ResponseHeader header = header_of(standin);
    Etcdserverpb__RangeResponse answer = ETCDSERVERPB__RANGE_RESPONSE__INIT;
    Mvccpb__KeyValue pair = head_pair();
    Mvccpb__KeyValue *pairs = &pair;
    answer.header = &header;
    answer.kvs = &pairs;
    answer.n_kvs = standin->has_key ? 1 : 0;
    answer.more = standin->has_key;
    reply_message(call, &answer.base);
}

/* All comparisons hold unless the key is there. */
static void healthy_txn(
    struct standin *standin, struct rpc_call *call, const void *data, size_t size)
{
    Etcdserverpb__TxnRequest *request = etcdserverpb__txn_request__unpack(NULL, size, data);
    assert_non_null(request);
    Etcdserverpb__ResponseHeader header = header_of(standin);
    Etcdserverpb__TxnResponse answer = ETCDSERVERPB__TXN_RESPONSE__INIT;
    static Etcdserverpb__ResponseOp each[OPERATIONS_MAX];
    static Etcdserverpb__ResponseOp *list[OPERATIONS_MAX];
    Etcdserverpb__PutResponse put = ETCDSERVERPB__PUT_RESPONSE__INIT;
    Etcdserverpb__RangeResponse range = ETCDSERVERPB__RANGE_RESPONSE__INIT;
    Etcdserverpb__DeleteRangeResponse deletion = ETCDSERVERPB__DELETE_RANGE_RESPONSE__INIT;
    Mvccpb__KeyValue pair = head_pair();
    Mvccpb__KeyValue *pairs = &pair;
    range.kvs = &pairs;
    range.n_kvs = standin->has_key ? 1 : 0;
    deletion.deleted = 4;
    answer.header = &header;
    answer.succeeded = !standin->has_key;
    size_t count = answer.succeeded ? request->n_success : request->n_failure;
    Etcdserverpb__RequestOp **from = answer.succeeded ? request->success : request->failure;
    assert_true(count <= OPERATIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        etcdserverpb__response_op__init(&each[i]);
        each[i].response_case = (Etcdserverpb__ResponseOp__ResponseCase)from[i]->request_case;
        if (from[i]->request_case == ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT) {
            each[i].response_put = &put;
            standin->puts++;
        } else if (from[i]->request_case == ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE) {
            each[i].response_range = &range;
        } else {
            each[i].response_delete_range = &deletion;
        }
        list[i] = &each[i];
    }
    answer.responses = list;
    answer.n_responses = count;
    reply_message(call, &answer.base);
    etcdserverpb__txn_request__free_unpacked(request, NULL);
}

static void send_watch(
    struct standin *standin, bool created, bool changed, bool canceled, const char *reason)
{
    Etcdserverpb__ResponseHeader header = header_of(standin);
    Etcdserverpb__WatchResponse answer = ETCDSERVERPB__WATCH_RESPONSE__INIT;
    Mvccpb__Event event = MVCCPB__EVENT__INIT;
    Mvccpb__Event *events = &event;
    answer.header = &header;
    answer.created = created;
    answer.canceled = canceled;
    answer.cancel_reason = (char *)(uintptr_t)(reason != NULL ? reason : "");
    answer.events = &events;
    answer.n_events = changed ? 1 : 0;
    assert_non_null(standin->watch);
    send_message(standin->watch, &answer.base);
}

void standin_event(struct standin *standin)
{
    send_watch(standin, false, true, false, NULL);
}

void standin_cancel_watch(struct standin *standin, const char *reason)
{
    send_watch(standin, false, false, true, reason);
}

/* ---- scripts ---- */

static bool token_is_wrong(struct standin *standin, struct rpc_call *call)
{
    char text[32] = "";
    size_t length = 0;
    unsigned number = 0;
    const char *token = rpc_call_metadata(call, "token", &length);
    if (token != NULL && length < sizeof text) {
        memcpy(text, token, length);
    }
    return standin->wants_token && (sscanf(text, "token-%u", &number) != 1 ||
                                       number <= standin->voided || number > standin->tokens);
}

static void play(struct standin *standin, enum standin_method method, struct rpc_call *call,
    const void *data, size_t size)
{
    struct standin_script script = standin->once[method].act != STANDIN_HEALTHY
                                       ? standin->once[method]
                                       : standin->always[method];
    standin->once[method] = (struct standin_script){.act = STANDIN_HEALTHY};
    standin->calls[method]++;
    if (script.act == STANDIN_SILENT) {
        return;
    }
    if (script.act == STANDIN_FAIL) {
        rpc_call_finish(call, script.code, script.text);
        return;
    }
    if (script.act == STANDIN_BYTES) {
        assert_int_equal(rpc_call_send(call, script.bytes, script.size, NULL), CADRE_OK);
        if (method != STANDIN_WATCH) {
            rpc_call_finish(call, CADRE_OK, NULL);
        }
        return;
    }
    if (method != STANDIN_STATUS && method != STANDIN_LOGIN && token_is_wrong(standin, call)) {
        size_t length = 0;
        bool any = rpc_call_metadata(call, "token", &length) != NULL;
        rpc_call_finish(call, any ? CADRE_UNAUTHENTICATED : CADRE_INVALID_ARGUMENT,
            any ? "etcdserver: invalid auth token" : "etcdserver: user name is empty");
        return;
    }
    switch (method) {
    case STANDIN_STATUS:
        healthy_status(standin, call);
        break;
    case STANDIN_LOGIN:
        healthy_login(standin, call);
        break;
    case STANDIN_TXN:
        healthy_txn(standin, call, data, size);
        break;
    case STANDIN_RANGE:
        healthy_range(standin, call);
        break;
    case STANDIN_WATCH:
        standin->watch = call;
        send_watch(standin, true, false, false, NULL);
        break;
    case STANDIN_METHODS:
        break;
    }
}

#define METHOD(name, NAME)                                                                         \
    static void name##_message(struct rpc_call *call, const void *data, size_t size, void *user)   \
    {                                                                                              \
        play(user, STANDIN_##NAME, call, data, size);                                              \
    }
METHOD(status, STATUS)
METHOD(login, LOGIN)
METHOD(txn, TXN)
METHOD(range, RANGE)
METHOD(watch, WATCH)
#undef METHOD

static void watch_closed(struct rpc_call *call, bool cancelled, void *user)
{
    struct standin *standin = user;
    (void)cancelled;
    if (standin->watch == call) {
        standin->watch = NULL;
    }
}

static void standin_start(struct standin *standin)
{
    static const struct rpc_server_ops ops[STANDIN_METHODS] = {
        [STANDIN_STATUS] = {.on_message = status_message},
        [STANDIN_LOGIN] = {.on_message = login_message},
        [STANDIN_TXN] = {.on_message = txn_message},
        [STANDIN_RANGE] = {.on_message = range_message},
        [STANDIN_WATCH] = {.on_message = watch_message, .on_closed = watch_closed},
    };
    static const char *const paths[STANDIN_METHODS] = {
        [STANDIN_STATUS] = "/etcdserverpb.Maintenance/Status",
        [STANDIN_LOGIN] = "/etcdserverpb.Auth/Authenticate",
        [STANDIN_TXN] = "/etcdserverpb.KV/Txn",
        [STANDIN_RANGE] = "/etcdserverpb.KV/Range",
        [STANDIN_WATCH] = "/etcdserverpb.Watch/Watch",
    };
    struct rpc_method methods[STANDIN_METHODS];
    for (size_t i = 0; i < STANDIN_METHODS; i++) {
        methods[i] = (struct rpc_method){
            paths[i], i == STANDIN_WATCH, i == STANDIN_WATCH, REQUEST_BYTES_MAX, &ops[i], standin};
    }
    const struct rpc_server_options options = {.methods = methods,
        .method_count = STANDIN_METHODS,
        .send_queue_bytes_max = 2 * ETCD_ANSWER_BYTES_MAX};
    struct cadre_error error;
    assert_ok(rpc_server_open(standin->rig->loop, &options, &standin->server, &error), &error);
    assert_ok(
        rpc_server_listen(standin->server, "127.0.0.1:0", NULL, &standin->port, &error), &error);
    rpc_server_start(standin->server);
}

void standin_stop(struct standin *standin)
{
    rpc_server_close(standin->server);
    standin->server = NULL;
    standin->watch = NULL;
}

void standin_fail(
    struct standin *standin, enum standin_method method, cadre_status code, const char *text)
{
    standin->once[method] =
        (struct standin_script){.act = STANDIN_FAIL, .code = code, .text = text};
}

/* ---- the rig ---- */

int rig_open(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    assert_int_equal(rpc_loop_open(&rig->loop, NULL), CADRE_OK);
    for (size_t i = 0; i < STANDINS_MAX; i++) {
        rig->standins[i] = (struct standin){
            .rig = rig, .cluster_id = CLUSTER_ID, .member_id = 11 + i, .version = "3.4.23"};
        standin_start(&rig->standins[i]);
    }
    *state = rig;
    return 0;
}

int rig_close(void **state)
{
    struct rig *rig = *state;
    etcd_close(rig->etcd);
    for (size_t i = 0; i < STANDINS_MAX; i++) {
        rpc_server_close(rig->standins[i].server);
    }
    rpc_loop_close(rig->loop);
    free(rig);
    return 0;
}

void rig_connect(struct rig *rig, size_t count, const struct etcd_options *options)
{
    char text[256];
    size_t length = (size_t)snprintf(text, sizeof text, "etcd://");
    for (size_t i = 0; i < count; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "%s127.0.0.1:%d",
            i > 0 ? "," : "", rig->standins[i].port);
    }
    snprintf(text + length, sizeof text - length, "/cadre");
    struct etcd_address address;
    struct cadre_error error;
    struct etcd_options own = options != NULL ? *options : (struct etcd_options){0};
    assert_ok(etcd_address_parse(text, false, &address, &error), &error);
    own.address = &address;
    own.watch_pause_us = own.watch_pause_us != 0 ? own.watch_pause_us : CADRE_US_PER_MS;
    assert_ok(etcd_open(rig->loop, &own, &rig->etcd, &error), &error);
}

void seen_answer(const struct etcd_answer *answer, void *user)
{
    struct seen *seen = user;
    seen->answers++;
    seen->done = true;
    seen->status = answer->status;
    snprintf(seen->text, sizeof seen->text, "%s", answer->text);
    snprintf(seen->endpoint, sizeof seen->endpoint, "%s", answer->endpoint);
    seen->outcome_unknown = answer->outcome_unknown;
    seen->no_space = answer->no_space;
    seen->succeeded = answer->succeeded;
    seen->cluster_id = answer->cluster_id;
    seen->member_id = answer->member_id;
    seen->result_count = answer->result_count;
    if (answer->result_count > 0) {
        seen->more = answer->results[0].more;
        seen->pair_count = answer->results[0].pair_count;
    }
    if (seen->pair_count > 0) {
        snprintf(seen->key, sizeof seen->key, "%s", answer->results[0].pairs[0].key);
    }
    if (answer->member != NULL) {
        seen->member = *answer->member;
    }
}

struct etcd_then rig_then(struct seen *seen, uint64_t timeout_us)
{
    *seen = (struct seen){.done = false};
    return (struct etcd_then){
        .deadline_us = clock_monotonic_us() +
                       (timeout_us != 0 ? timeout_us : speed_scaled_us(WAIT_TIMEOUT_US)),
        .handler = seen_answer,
        .user = seen};
}

void rig_until(struct rig *rig, const bool *done)
{
    uint64_t deadline_us = clock_monotonic_us() + speed_scaled_us(2 * WAIT_TIMEOUT_US);
    assert_int_equal(rpc_loop_run_until(rig->loop, done, deadline_us), CADRE_OK);
}

struct checking {
    bool (*check)(void *user);
    void *user;
    bool done;
};

static void check_now(void *user)
{
    struct checking *checking = user;
    checking->done = checking->check(checking->user);
}

void rig_until_check(struct rig *rig, bool (*check)(void *user), void *user)
{
    struct checking checking = {.check = check, .user = user, .done = check(user)};
    rpc_loop_on_turn_end(rig->loop, check_now, &checking);
    rig_until(rig, &checking.done);
    rpc_loop_on_turn_end(rig->loop, NULL, NULL);
}

static const struct etcd_comparison comparisons[] = {
    {.key = "head", .what = ETCD_MOD_REVISION, .number = 0}};
static const struct etcd_operation then_puts[] = {
    {.kind = ETCD_PUT, .key = "head", .value = {.data = "value", .size = 5}}};
static const struct etcd_operation else_gets[] = {{.kind = ETCD_GET, .key = "head"}};
const struct etcd_transaction rig_transaction = {.comparisons = comparisons,
    .comparison_count = 1,
    .then = then_puts,
    .then_count = 1,
    .otherwise = else_gets,
    .otherwise_count = 1};

void rig_transact(struct rig *rig, uint64_t timeout_us, struct seen *seen)
{
    const struct etcd_then then = rig_then(seen, timeout_us);
    struct cadre_error error;
    assert_ok(etcd_transact(rig->etcd, &rig_transaction, &then, &error), &error);
    rig_until(rig, &seen->done);
    assert_int_equal(seen->answers, 1);
}

void rig_range(struct rig *rig, struct seen *seen)
{
    const struct etcd_then then = rig_then(seen, 0);
    struct cadre_error error;
    assert_ok(etcd_range(rig->etcd, "head", NULL, 1, &then, &error), &error);
    rig_until(rig, &seen->done);
    assert_int_equal(seen->answers, 1);
}
