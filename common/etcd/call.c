/* SPDX-License-Identifier: Apache-2.0
 * One call: check of the endpoint, login, request, each when it is needed, and one answer.
 *
 *    etcd_call_start ──> CHECK ──> LOGIN ──> ASK ──> handler
 *                          ^         ^        │ the token is not valid, once
 *                          └─────────┴────────┘
 *
 * Between two handlers of a call exactly one call of gRPC is under way for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/etcd/etcd_state.h"
#include "common/pure/assert.h"

#define MAJOR_LEAST 3
#define MINOR_LEAST 4 /* with major 3 */

static void call_go(struct etcd_call *call);

static struct etcd_failure failure_of(const struct etcd_call *call)
{
    static const char *const names[] = {
        [ETCD_CALL_RANGE] = "read",
        [ETCD_CALL_TRANSACTION] = "transaction",
        [ETCD_CALL_STATUS] = "status",
        [ETCD_CALL_PREPARE] = "watch",
    };
    const struct etcd *etcd = call->etcd;
    return (struct etcd_failure){
        .endpoint = etcd->address.endpoints[call->endpoint],
        .operation = call->step == ETCD_STEP_LOGIN ? "login" : names[call->method],
        .prefix = etcd->address.prefix,
        .user = etcd->has_user ? etcd->user : NULL,
        .waited_us = clock_monotonic_us() - call->began_us,
        .is_change = call->method == ETCD_CALL_TRANSACTION && call->step == ETCD_STEP_ASK,
    };
}

/* ---- the end ---- */

void etcd_call_free(struct etcd_call *call)
{
    struct etcd *etcd = call->etcd;
    rpc_buffer_free(&call->request);
    free(call->data);
    free(call);
    etcd_unref(etcd);
}

static void call_answer(struct etcd_call *call, struct etcd_answer *answer)
{
    answer->endpoint = call->etcd->address.endpoints[call->endpoint];
    call->then.handler(answer, call->then.user);
    etcd_call_free(call);
}

static void call_fail(struct etcd_call *call, const struct cadre_error *error, bool outcome_unknown)
{
    struct etcd_answer answer = {
        .status = error->code, .text = error->text, .outcome_unknown = outcome_unknown};
    call_answer(call, &answer);
}

/* A fault of the answer, which this end found: the server is not to be asked again at once. */
static void call_refuse(struct etcd_call *call, struct cadre_error *error)
{
    struct etcd_failure failure = failure_of(call);
    bool unknown = failure.is_change;
    etcd_blame(&failure, error);
    etcd_leave(call->etcd, call->endpoint);
    call_fail(call, error, unknown);
}

/* ---- answers, step by step ---- */

static struct etcd_message message_of(const struct etcd_call *call)
{
    return (struct etcd_message){.data = call->data,
        .size = call->size,
        .prefix = call->etcd->address.prefix,
        .arena = call->etcd->arena};
}

static cadre_status check_version(const struct etcd_member *member, struct cadre_error *error)
{
    char *end = NULL;
    long major = strtol(member->version, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, &end, 10) : 0;
    if (major > MAJOR_LEAST || (major == MAJOR_LEAST && minor >= MINOR_LEAST)) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "it is etcd \"%s\", and %d.%d is the oldest that Cadre works with: upgrade it",
        member->version, MAJOR_LEAST, MINOR_LEAST);
}

static cadre_status take_status(
    struct etcd_call *call, struct etcd_answer *answer, struct cadre_error *error)
{
    struct etcd_message message = message_of(call);
    CADRE_TRY(etcd_unpack_status(&message, answer, error));
    CADRE_TRY(check_version(answer->member, error));
    CADRE_TRY(etcd_check_cluster(call->etcd, call->endpoint, answer->cluster_id, error));
    call->etcd->checked[call->endpoint] = true;
    return CADRE_OK;
}

static cadre_status take_login(struct etcd_call *call, struct cadre_error *error)
{
    struct etcd *etcd = call->etcd;
    struct etcd_message message = message_of(call);
    const char *token = NULL;
    CADRE_TRY(etcd_unpack_login(&message, &token, error));
    char *copy = fault_point("etcd.memory") ? NULL : strdup(token);
    if (copy == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a token");
    }
    free(etcd->token);
    etcd->token = copy;
    etcd->logins++;
    return CADRE_OK;
}

static cadre_status take_answer(
    struct etcd_call *call, struct etcd_answer *answer, struct cadre_error *error)
{
    struct etcd_message message = message_of(call);
    if (call->method == ETCD_CALL_STATUS) {
        return take_status(call, answer, error);
    }
    if (call->method == ETCD_CALL_TRANSACTION) {
        CADRE_TRY(etcd_unpack_transaction(&message, &call->shape, answer, error));
    } else {
        CADRE_TRY(etcd_unpack_range(&message, answer, error));
    }
    return etcd_check_cluster(call->etcd, call->endpoint, answer->cluster_id, error);
}

static void call_take(struct etcd_call *call)
{
    struct cadre_error error = {0};
    struct etcd_answer answer = {.status = CADRE_OK, .text = ""};
    cadre_status status;
    if (call->no_memory) {
        status = cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for its answer");
    } else if (call->step == ETCD_STEP_CHECK) {
        status = take_status(call, &answer, &error);
    } else if (call->step == ETCD_STEP_LOGIN) {
        status = take_login(call, &error);
    } else {
        status = take_answer(call, &answer, &error);
    }
    if (status != CADRE_OK) {
        call_refuse(call, &error);
    } else if (call->step == ETCD_STEP_ASK) {
        call_answer(call, &answer);
    } else if (call->step == ETCD_STEP_CHECK && call->method == ETCD_CALL_PREPARE) {
        call->prepared = true;
        call_go(call);
    } else {
        call_go(call);
    }
}

static void call_judge(struct etcd_call *call, cadre_status status, const char *text)
{
    struct etcd *etcd = call->etcd;
    struct etcd_failure failure = failure_of(call);
    struct etcd_verdict verdict;
    etcd_judge(&failure, status, text, &verdict);
    if (verdict.login_is_off && call->step == ETCD_STEP_LOGIN) {
        etcd->login_is_off = true;
        call_go(call);
        return;
    }
    if (verdict.token_is_void && call->step != ETCD_STEP_LOGIN && !call->logged_in_again) {
        call->logged_in_again = true;
        etcd->login_is_off = false;
        if (call->login == etcd->logins) { /* else another call has a newer one already */
            free(etcd->token);
            etcd->token = NULL;
        }
        call_go(call);
        return;
    }
    if (verdict.elsewhere) {
        etcd_leave(etcd, call->endpoint);
    }
    struct etcd_answer answer = {.status = verdict.error.code,
        .text = verdict.error.text,
        .outcome_unknown = verdict.outcome_unknown,
        .no_space = verdict.no_space};
    call_answer(call, &answer);
}

/* ---- handlers of gRPC's calls ---- */

static void call_message(struct rpc_call *rpc, const void *data, size_t size, void *user)
{
    struct etcd_call *call = user;
    (void)rpc;
    if (call->etcd->closed || call->has_message) {
        return;
    }
    call->has_message = true;
    call->data = fault_point("etcd.memory") ? NULL : malloc(size + 1);
    call->no_memory = call->data == NULL;
    if (call->data != NULL) {
        memcpy(call->data, data, size);
        call->size = size;
    }
}

static void call_status(struct rpc_call *rpc, cadre_status status, const char *text, void *user)
{
    struct etcd_call *call = user;
    (void)rpc;
    if (call->etcd->closed) {
        struct etcd_failure failure = failure_of(call);
        struct cadre_error error;
        cadre_error_set(&error, CADRE_CANCELLED, "the client was closed");
        etcd_blame(&failure, &error);
        call_fail(call, &error, failure.is_change);
    } else if (status == CADRE_OK) {
        call_take(call);
    } else {
        call_judge(call, status, text);
    }
}

/* ---- the steps ---- */

static cadre_status ask_rpc(struct etcd_call *call, const char *path,
    const struct rpc_buffer *request, struct cadre_error *error)
{
    static const struct rpc_client_ops ops = {.on_message = call_message, .on_status = call_status};
    const struct etcd *etcd = call->etcd;
    const struct rpc_metadata token = {.key = "token", .value = etcd->token};
    const struct rpc_call_options options = {
        .path = path,
        .deadline_us = call->then.deadline_us,
        .metadata = &token,
        .metadata_count = etcd->token != NULL && call->step != ETCD_STEP_LOGIN ? 1 : 0,
        .ops = &ops,
        .user = call,
    };
    free(call->data);
    call->data = NULL;
    call->has_message = false;
    call->no_memory = false;
    call->login = etcd->logins;
    if (fault_point("etcd.call")) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a call");
    }
    struct rpc_call *rpc = NULL;
    CADRE_TRY(rpc_channel_call(etcd->channels[call->endpoint], &options, &rpc, error));
    cadre_status status = rpc_call_send_buffer(rpc, request, error);
    CADRE_ASSERT(status == CADRE_OK);
    return CADRE_OK;
}

static cadre_status ask_once(
    struct etcd_call *call, const char *path, struct rpc_buffer *request, struct cadre_error *error)
{
    cadre_status status = ask_rpc(call, path, request, error);
    rpc_buffer_free(request);
    return status;
}

static bool wants_check(const struct etcd_call *call)
{
    if (call->method == ETCD_CALL_PREPARE && !call->prepared) {
        return true;
    }
    return call->method != ETCD_CALL_STATUS && !call->etcd->checked[call->endpoint];
}

static bool wants_login(const struct etcd_call *call)
{
    const struct etcd *etcd = call->etcd;
    bool has_none = etcd->has_user && etcd->token == NULL && !etcd->login_is_off;
    return has_none && (call->method != ETCD_CALL_STATUS || call->logged_in_again);
}

/* True: the call of this step is under way, or *ret_status says why not. False: none is left. */
static bool call_step(struct etcd_call *call, cadre_status *ret_status, struct cadre_error *error)
{
    static const char *const paths[] = {
        [ETCD_CALL_RANGE] = ETCD_PATH_RANGE,
        [ETCD_CALL_TRANSACTION] = ETCD_PATH_TXN,
        [ETCD_CALL_STATUS] = ETCD_PATH_STATUS,
    };
    const struct etcd *etcd = call->etcd;
    struct rpc_buffer own = {.data = NULL};
    bool login_first = call->logged_in_again && wants_login(call);
    if (wants_check(call) && !login_first) {
        call->step = ETCD_STEP_CHECK;
        etcd_pack_status(&own);
        *ret_status = ask_once(call, ETCD_PATH_STATUS, &own, error);
    } else if (wants_login(call)) {
        call->step = ETCD_STEP_LOGIN;
        etcd_pack_login(etcd->user, etcd->password, &own);
        *ret_status = ask_once(call, ETCD_PATH_AUTHENTICATE, &own, error);
    } else if (call->method == ETCD_CALL_PREPARE) {
        return false;
    } else {
        call->step = ETCD_STEP_ASK;
        *ret_status = ask_rpc(call, paths[call->method], &call->request, error);
    }
    return true;
}

static void call_go(struct etcd_call *call)
{
    struct cadre_error error = {0};
    cadre_status status = CADRE_OK;
    if (!call_step(call, &status, &error)) {
        struct etcd_answer answer = {.status = CADRE_OK, .text = ""};
        call_answer(call, &answer);
    } else if (status != CADRE_OK) {
        struct etcd_failure failure = failure_of(call);
        etcd_blame(&failure, &error);
        call_fail(call, &error, false);
    }
}

struct etcd_call *etcd_call_new(struct etcd *etcd, enum etcd_method method, size_t endpoint,
    const struct etcd_then *then, struct cadre_error *error)
{
    CADRE_ASSERT(!etcd->closed);
    CADRE_ASSERT(then->handler != NULL);
    struct etcd_call *call = fault_point("etcd.memory") ? NULL : calloc(1, sizeof *call);
    if (call == NULL) {
        cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a request to etcd: end something else");
        return NULL;
    }
    call->etcd = etcd;
    call->method = method;
    call->endpoint = endpoint;
    call->then = *then;
    call->began_us = clock_monotonic_us();
    etcd_ref(etcd);
    return call;
}

cadre_status etcd_call_start(struct etcd_call *call, struct cadre_error *error)
{
    cadre_status status = CADRE_OK;
    bool under_way = call_step(call, &status, error);
    CADRE_ASSERT(under_way);
    if (status != CADRE_OK) {
        struct etcd_failure failure = failure_of(call);
        etcd_blame(&failure, error);
        etcd_call_free(call);
    }
    return status;
}
