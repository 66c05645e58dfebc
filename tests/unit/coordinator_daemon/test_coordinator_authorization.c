/* SPDX-License-Identifier: Apache-2.0
 * Every role against every method, by the table and over connections with a certificate of that
 * role. */
#include <stdio.h>
#include <string.h>

#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/rpc/tls.h"
#include "common/wire/methods.h"
#include "coordinator/daemon/base/authorization.h"
#include "tests/lib/tls_files.h"

#define HEALTH     "/grpc.health.v1.Health/Check"
#define REFLECTION "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"

static const char *const methods[] = {
#define PATH(path, shape) path,
    METHOD_TABLE(PATH)
#undef PATH
        HEALTH,
    REFLECTION};
#define METHODS (sizeof methods / sizeof methods[0])

/* What each role may call, by the last word of the method; Agents and Jobs have some words in
 * common, so workers come apart. Jobs and Coordinators have List in common, for the same roles. */
static const char *const allowed[TLS_ROLES] = {
    [TLS_ROLE_COORDINATOR] = "",
    [TLS_ROLE_CLIENT] = " Submit Get List Watch Logs Cancel MissingBlobs PutBlob ListOutputs "
                        "GetOutput Verify Metrics History Trace Checkpoint Drain ListWorkers Login "
                        "Version Leader ",
    [TLS_ROLE_SUBMITTER] = " Submit Get List Watch Logs Cancel MissingBlobs PutBlob ListOutputs "
                           "GetOutput Verify Metrics History Trace Login Version Leader ",
    [TLS_ROLE_VIEWER] = " Get List Watch Logs ListOutputs GetOutput Verify Metrics History "
                        "ListWorkers Login Version Leader ",
};

static bool should_be_allowed(enum tls_role role, const char *method)
{
    if (role == TLS_ROLE_NONE) {
        return false;
    }
    if (role == TLS_ROLE_LOCAL || strncmp(method, "/grpc.", 6) == 0) {
        return true;
    }
    bool agents = strstr(method, METHOD_SERVICE_AGENTS) != NULL;
    if (role == TLS_ROLE_WORKER || agents) {
        return role == TLS_ROLE_WORKER &&
               (agents || strcmp(method, METHOD_COORDINATORS_LEADER) == 0);
    }
    char word[64];
    snprintf(word, sizeof word, " %s ", strrchr(method, '/') + 1);
    return strstr(allowed[role], word) != NULL;
}

static void no_method_is_missing(void **state)
{
    (void)state;
    for (size_t i = 0; i < METHODS; i++) {
        bool found = false;
        for (int role = 0; role < TLS_ROLES; role++) {
            const struct tls_identity identity = {(enum tls_role)role, "anna"};
            found = found ||
                    (role != TLS_ROLE_LOCAL && authorize(&identity, methods[i], NULL) == CADRE_OK);
        }
        if (!found) {
            fail_msg("no row for %s", methods[i]);
        }
    }
}

static void every_role_and_method(void **state)
{
    (void)state;
    for (int role = 0; role < TLS_ROLES; role++) {
        const struct tls_identity identity = {(enum tls_role)role, "anna"};
        for (size_t i = 0; i < METHODS; i++) {
            struct cadre_error error = {0};
            cadre_status status = authorize(&identity, methods[i], &error);
            bool wanted = should_be_allowed(identity.role, methods[i]);
            if (wanted != (status == CADRE_OK)) {
                fail_msg("%s calls %s: %s", tls_role_name(identity.role), methods[i], error.text);
            }
            if (!wanted) {
                assert_error(status, CADRE_PERMISSION_DENIED, &error, methods[i]);
                assert_non_null(strstr(error.text, tls_role_name(identity.role)));
                assert_non_null(strstr(error.text, "anna"));
            }
        }
        cadre_status status = authorize(&identity, "/cadre.v1.Jobs/Another", NULL);
        assert_int_equal(status, role == TLS_ROLE_LOCAL ? CADRE_OK : CADRE_PERMISSION_DENIED);
    }
}

/* ---- over connections ---- */

static void answer(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)data;
    (void)length;
    (void)user;
    rpc_call_send(call, "", 0, NULL);
    rpc_call_finish(call, CADRE_OK, NULL);
}

static cadre_status ask_table(
    struct rpc_call *call, const char *method, void *user, struct cadre_error *error)
{
    (void)user;
    return authorize(rpc_call_identity(call), method, error);
}

static void open_server(struct rpc_loop *loop, struct rpc_tls *tls, const char *unix_address,
    struct rpc_server **ret_server, int *ret_port)
{
    static const struct rpc_server_ops ops = {.on_message = answer};
    struct rpc_method table[METHODS];
    struct cadre_error error = {0};
    for (size_t i = 0; i < METHODS; i++) {
        table[i] = (struct rpc_method){.path = methods[i], .request_bytes_max = 100, .ops = &ops};
    }
    const struct rpc_server_options options = {
        .methods = table, .method_count = METHODS, .tls = tls, .authorize = ask_table};
    assert_ok(rpc_server_open(loop, &options, ret_server, &error), &error);
    assert_ok(rpc_server_listen(*ret_server, "127.0.0.1:0", NULL, ret_port, &error), &error);
    assert_ok(rpc_server_listen(*ret_server, unix_address, NULL, NULL, &error), &error);
    rpc_server_start(*ret_server);
}

static void call_all(
    struct rpc_loop *loop, const char *address, struct rpc_tls *tls, enum tls_role role)
{
    const struct rpc_channel_options options = {.tls = tls};
    struct rpc_channel *channel = NULL;
    struct cadre_error error = {0};
    struct rpc_buffer empty;
    rpc_buffer_alloc(&empty, 0);
    assert_ok(rpc_channel_open(loop, address, &options, &channel, &error), &error);
    for (size_t i = 0; i < METHODS; i++) {
        const struct rpc_call_options call = {.path = methods[i]};
        cadre_status status = rpc_channel_call_blocking(channel, &call, &empty, NULL, NULL, &error);
        if (should_be_allowed(role, methods[i])) {
            assert_ok(status, &error);
        } else {
            assert_error(status, CADRE_PERMISSION_DENIED, &error, methods[i]);
        }
    }
    rpc_buffer_free(&empty);
    rpc_channel_close(channel);
}

static void every_role_over_connections(void **state)
{
    struct rpc_loop *loop = NULL;
    struct rpc_tls *tls = NULL;
    struct rpc_server *server = NULL;
    struct cadre_error error = {0};
    struct tls_key_pair ca;
    int port = 0;
    char address[64];
    char path[TEST_PATH_BYTES];
    char unix_address[TEST_PATH_BYTES + 8];
    const char *folder = test_temp_dir();
    const char *own = test_temp_dir();
    (void)state;
    tls_files_authority(&ca);
    tls_files_issue(folder, &ca, TLS_ROLE_COORDINATOR, "main");
    assert_int_equal(rpc_loop_open(&loop, NULL), CADRE_OK);
    struct rpc_tls_options files = {.dir = (char *)(uintptr_t)folder};
    assert_ok(rpc_tls_open(loop, &files, TLS_ROLE_COORDINATOR, NULL, NULL, &tls, &error), &error);
    snprintf(unix_address, sizeof unix_address, "unix:%s", test_path(path, folder, "s"));
    open_server(loop, tls, unix_address, &server, &port);
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    for (int role = TLS_ROLE_COORDINATOR; role < TLS_ROLES; role++) {
        struct rpc_tls *client = NULL;
        tls_files_issue(own, &ca, (enum tls_role)role, "anna");
        files.dir = (char *)(uintptr_t)own;
        assert_ok(rpc_tls_open(loop, &files, TLS_ROLE_NONE, NULL, NULL, &client, &error), &error);
        call_all(loop, address, client, (enum tls_role)role);
        rpc_tls_close(client);
    }
    call_all(loop, unix_address, NULL, TLS_ROLE_LOCAL);
    rpc_server_close(server);
    rpc_tls_close(tls);
    rpc_loop_close(loop);
    tls_key_pair_free(&ca);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_method_is_missing),
        cmocka_unit_test(every_role_and_method), cmocka_unit_test(every_role_over_connections)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
