/* SPDX-License-Identifier: Apache-2.0
 * Mutual TLS between servers and channels: the identity of the other end, the error for each
 * wrong certificate, and new files while connections stay. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/rpc/tls.h"
#include "tests/lib/tls_files.h"

#define WHO             "/test.Tls/Who"
#define HOLD            "/test.Tls/Hold"
#define WAIT_TIMEOUT_US (20 * CADRE_US_PER_S)

struct fixture {
    struct rpc_loop *loop;
    struct tls_key_pair ca, other_ca;
    const char *server_folder;
    struct rpc_tls *server_tls;
    struct rpc_server *server;
    char address[64], unix_address[TEST_PATH_BYTES];
    int events[RPC_TLS_REFUSED + 1];
    char last[CADRE_ERROR_TEXT_BYTES]; /* the text of the last event */
    char all[4096];                    /* of it, as much as there is room for */
    bool had_any_event;
};

/* ---- the server ---- */

static uint64_t certificate_ends_s; /* of the client that asked last */

static void who_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    const struct tls_identity *identity = rpc_call_identity(call);
    char text[TLS_NAME_BYTES + 32];
    (void)data;
    (void)length;
    (void)user;
    certificate_ends_s = rpc_call_certificate_ends_s(call);
    snprintf(text, sizeof text, "%s/%s", tls_role_name(identity->role), identity->name);
    rpc_call_send(call, text, strlen(text), NULL);
    rpc_call_finish(call, CADRE_OK, NULL);
}

static void hold_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)user;
    rpc_call_send(call, data, length, NULL);
}

static const struct rpc_server_ops who_ops = {.on_message = who_message};
static const struct rpc_server_ops hold_ops = {.on_message = hold_message};

static cadre_status no_viewers(
    struct rpc_call *call, const char *method, void *user, struct cadre_error *error)
{
    (void)user;
    const struct tls_identity *identity = rpc_call_identity(call);
    if (identity->role == TLS_ROLE_VIEWER) {
        return cadre_error_set(
            error, CADRE_PERMISSION_DENIED, "no %s for viewer %s", method, identity->name);
    }
    return CADRE_OK;
}

static void on_event(enum rpc_tls_event event, const char *text, void *user)
{
    struct fixture *fixture = user;
    fixture->events[event]++;
    fixture->had_any_event = true;
    snprintf(fixture->last, sizeof fixture->last, "%s", text);
    size_t length = strlen(fixture->all);
    snprintf(fixture->all + length, sizeof fixture->all - length, "%s\n", text);
}

static void open_server(struct fixture *fixture, struct rpc_tls *tls)
{
    static const struct rpc_method methods[] = {
        {.path = WHO, .request_bytes_max = 100, .ops = &who_ops}, {.path = HOLD,
                                                                      .client_streams = true,
                                                                      .server_streams = true,
                                                                      .request_bytes_max = 100,
                                                                      .ops = &hold_ops}};
    const struct rpc_server_options options = {
        .methods = methods, .method_count = 2, .tls = tls, .authorize = no_viewers};
    struct cadre_error error = {0};
    int port = 0;
    assert_ok(rpc_server_open(fixture->loop, &options, &fixture->server, &error), &error);
    const char *where = tls != NULL ? "0.0.0.0:0" : "127.0.0.1:0";
    assert_ok(rpc_server_listen(fixture->server, where, NULL, &port, &error), &error);
    assert_ok(
        rpc_server_listen(fixture->server, fixture->unix_address, NULL, NULL, &error), &error);
    rpc_server_start(fixture->server);
    snprintf(fixture->address, sizeof fixture->address, "127.0.0.1:%d", port);
}

static void open_tls_server(struct fixture *fixture)
{
    struct rpc_tls_options options = {.dir = (char *)(uintptr_t)fixture->server_folder};
    struct cadre_error error = {0};
    assert_ok(rpc_tls_open(fixture->loop, &options, TLS_ROLE_NONE, on_event, fixture,
                  &fixture->server_tls, &error),
        &error);
    open_server(fixture, fixture->server_tls);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_int_equal(rpc_loop_open(&fixture->loop, NULL), CADRE_OK);
    tls_files_authority(&fixture->ca);
    tls_files_authority(&fixture->other_ca);
    fixture->server_folder = test_temp_dir();
    char path[TEST_PATH_BYTES];
    snprintf(fixture->unix_address, sizeof fixture->unix_address, "unix:%.400s",
        test_path(path, fixture->server_folder, "s"));
    tls_files_issue(fixture->server_folder, &fixture->ca, TLS_ROLE_COORDINATOR, "main");
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    rpc_server_close(fixture->server);
    rpc_tls_close(fixture->server_tls);
    rpc_loop_close(fixture->loop);
    tls_key_pair_free(&fixture->ca);
    tls_key_pair_free(&fixture->other_ca);
    free(fixture);
    return 0;
}

/* ---- the client ---- */

struct client {
    struct fixture *fixture;
    struct rpc_tls *tls;
    struct rpc_channel *channel;
    char answer[256];
    struct cadre_error error;
};

static void open_client(struct fixture *fixture, const char *folder, struct client *ret_client)
{
    struct rpc_tls_options files = {.dir = (char *)(uintptr_t)folder};
    struct cadre_error error = {0};
    *ret_client = (struct client){.fixture = fixture};
    assert_ok(rpc_tls_open(fixture->loop, &files, TLS_ROLE_NONE, on_event, fixture,
                  &ret_client->tls, &error),
        &error);
    const struct rpc_channel_options options = {.tls = ret_client->tls};
    assert_ok(
        rpc_channel_open(fixture->loop, fixture->address, &options, &ret_client->channel, &error),
        &error);
}

static void close_client(struct client *client)
{
    rpc_channel_close(client->channel);
    rpc_tls_close(client->tls);
}

static void on_answer(const void *data, size_t length, void *user)
{
    struct client *client = user;
    snprintf(client->answer, sizeof client->answer, "%.*s", (int)length, (const char *)data);
}

static cadre_status ask(struct client *client)
{
    const struct rpc_call_options options = {.path = WHO};
    struct rpc_buffer empty;
    rpc_buffer_alloc(&empty, 0);
    client->answer[0] = '\0';
    client->error = (struct cadre_error){0};
    cadre_status status = rpc_channel_call_blocking(
        client->channel, &options, &empty, on_answer, client, &client->error);
    rpc_buffer_free(&empty);
    return status;
}

/* One call with the files of a folder; NULL for none. */
static cadre_status ask_once(struct fixture *fixture, const char *folder, struct client *client)
{
    open_client(fixture, folder, client);
    cadre_status status = ask(client);
    close_client(client);
    return status;
}

/* ---- tests ---- */

static void who_it_is(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    const char *folder = test_temp_dir();
    open_tls_server(fixture);
    for (int role = TLS_ROLE_COORDINATOR; role < TLS_ROLES; role++) {
        char wanted[64];
        tls_files_issue(folder, &fixture->ca, (enum tls_role)role, "n.1");
        cadre_status status = ask_once(fixture, folder, &client);
        if (role == TLS_ROLE_VIEWER) {
            assert_error(
                status, CADRE_PERMISSION_DENIED, &client.error, "no /test.Tls/Who for viewer n.1");
            continue;
        }
        assert_ok(status, &client.error);
        snprintf(wanted, sizeof wanted, "%s/n.1", tls_role_name((enum tls_role)role));
        assert_string_equal(client.answer, wanted);
    }
    snprintf(fixture->address, sizeof fixture->address, "%.60s", fixture->unix_address);
    assert_ok(ask_once(fixture, folder, &client), &client.error);
    assert_string_equal(client.answer, "local/");
    assert_int_equal(certificate_ends_s, UINT64_MAX);
}

static void when_its_certificate_ends(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    const char *folder = test_temp_dir();
    struct tls_validity validity = tls_files_validity(-60, 1234);
    open_tls_server(fixture);
    tls_files_issue_for(folder, &fixture->ca, TLS_ROLE_CLIENT, "anna", validity);
    assert_ok(ask_once(fixture, folder, &client), &client.error);
    assert_int_equal(certificate_ends_s, validity.not_after_s);
}

static bool had_event(struct fixture *fixture, enum rpc_tls_event event)
{
    uint64_t deadline_us = clock_monotonic_us() + WAIT_TIMEOUT_US;
    while (fixture->events[event] == 0 && clock_monotonic_us() < deadline_us) {
        fixture->had_any_event = false;
        (void)rpc_loop_run_until(fixture->loop, &fixture->had_any_event, deadline_us);
    }
    return fixture->events[event] > 0;
}

static bool logs_refusal(struct fixture *fixture, const char *text)
{
    uint64_t deadline_us = clock_monotonic_us() + WAIT_TIMEOUT_US;
    while (strstr(fixture->all, text) == NULL && clock_monotonic_us() < deadline_us) {
        fixture->had_any_event = false;
        (void)rpc_loop_run_until(fixture->loop, &fixture->had_any_event, deadline_us);
    }
    return strstr(fixture->all, text) != NULL;
}

static bool was_refused(struct fixture *fixture)
{
    return had_event(fixture, RPC_TLS_REFUSED);
}

static void a_server_of_another_ca(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    const char *folder = test_temp_dir();
    open_tls_server(fixture);
    tls_files_issue(folder, &fixture->other_ca, TLS_ROLE_CLIENT, "bob");
    assert_error(ask_once(fixture, folder, &client), CADRE_UNAUTHENTICATED, &client.error,
        "the certificate of the server at 127.0.0.1");
    assert_non_null(strstr(client.error.text, "one CA"));
}

/* The client trusts both, the server only its own. */
static void a_client_of_another_ca(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    const char *folder = test_temp_dir();
    char path[TEST_PATH_BYTES];
    open_tls_server(fixture);
    tls_files_issue(folder, &fixture->other_ca, TLS_ROLE_CLIENT, "bob");
    char both[8192];
    snprintf(both, sizeof both, "%s%s", fixture->other_ca.cert_pem, fixture->ca.cert_pem);
    test_write(test_path(path, folder, "ca.pem"), both);
    assert_error(ask_once(fixture, folder, &client), CADRE_UNAUTHENTICATED, &client.error,
        "takes certificates of the CA");
    assert_true(was_refused(fixture));
    assert_non_null(strstr(fixture->last, "127.0.0.1:"));
    assert_non_null(strstr(fixture->last, "not of the CA"));
    /* Another mistake of the same host is reported in the same minute. */
    assert_int_equal(ask_once(fixture, NULL, &client), CADRE_UNAUTHENTICATED);
    assert_true(logs_refusal(fixture, "plain text"));
}

static void only_a_coordinator_is_a_server(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    const char *folder = test_temp_dir();
    tls_files_issue(fixture->server_folder, &fixture->ca, TLS_ROLE_WORKER, "mallory");
    open_tls_server(fixture);
    tls_files_issue(folder, &fixture->ca, TLS_ROLE_CLIENT, "anna");
    assert_error(ask_once(fixture, folder, &client), CADRE_PERMISSION_DENIED, &client.error,
        "of the role worker (\"mallory\")");
}

static void plain_to_tls_and_tls_to_plain(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    const char *folder = test_temp_dir();
    tls_files_issue(folder, &fixture->ca, TLS_ROLE_CLIENT, "anna");
    open_server(fixture, NULL);
    assert_error(ask_once(fixture, folder, &client), CADRE_UNAVAILABLE, &client.error,
        "uses plain text, not TLS");
    assert_ok(ask_once(fixture, NULL, &client), &client.error);
    assert_string_equal(client.answer, "local/");
    rpc_server_close(fixture->server);
    open_tls_server(fixture);
    assert_error(ask_once(fixture, NULL, &client), CADRE_UNAUTHENTICATED, &client.error,
        "requires TLS, and no certificate is given");
    assert_true(logs_refusal(fixture, "plain text"));
}

/* Waits until the wall clock has passed the end of `tls`'s certificate. */
static bool has_expired(void *tls)
{
    return rpc_tls_expires_in_s(tls) < 0;
}

static void certificates_that_expire_in_use(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    const char *folder = test_temp_dir();
    open_tls_server(fixture);
    tls_files_issue_for(folder, &fixture->ca, TLS_ROLE_CLIENT, "anna", tls_files_validity(-60, 3));
    open_client(fixture, folder, &client);
    assert_true(test_wait(has_expired, client.tls, WAIT_TIMEOUT_US));
    assert_error(ask(&client), CADRE_UNAUTHENTICATED, &client.error, "expired on");
    assert_non_null(strstr(client.error.text, "cert.pem"));
    assert_true(was_refused(fixture));
    assert_non_null(strstr(fixture->last, "has expired"));
    /* A new one in the same place is enough. */
    tls_files_issue(folder, &fixture->ca, TLS_ROLE_CLIENT, "anna");
    rpc_tls_reload(client.tls);
    assert_ok(ask(&client), &client.error);
    close_client(&client);
}

static void servers_that_expire_in_use(void **state)
{
    struct fixture *fixture = *state;
    struct client client;
    const char *folder = test_temp_dir();
    tls_files_issue_for(fixture->server_folder, &fixture->ca, TLS_ROLE_COORDINATOR, "main",
        tls_files_validity(-60, 3));
    tls_files_issue(folder, &fixture->ca, TLS_ROLE_CLIENT, "anna");
    open_tls_server(fixture);
    assert_true(test_wait(has_expired, fixture->server_tls, WAIT_TIMEOUT_US));
    assert_error(
        ask_once(fixture, folder, &client), CADRE_UNAUTHENTICATED, &client.error, "expired on");
    assert_non_null(strstr(client.error.text, "the server at"));
    assert_true(fixture->events[RPC_TLS_EXPIRES] + fixture->events[RPC_TLS_EXPIRED] > 0);
}

struct held {
    bool got, ended;
    int messages;
    cadre_status status;
};

static void held_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct held *held = user;
    (void)call;
    (void)data;
    (void)length;
    held->messages++;
    held->got = true;
}

static void held_status(struct rpc_call *call, cadre_status status, const char *text, void *user)
{
    struct held *held = user;
    (void)call;
    (void)text;
    held->status = status;
    held->ended = true;
}

static void echo(struct fixture *fixture, struct rpc_call *call, struct held *held)
{
    held->got = false;
    assert_int_equal(rpc_call_send(call, "x", 1, NULL), CADRE_OK);
    assert_int_equal(
        rpc_loop_run_until(fixture->loop, &held->got, clock_monotonic_us() + WAIT_TIMEOUT_US),
        CADRE_OK);
}

static void new_files_while_streams_run(void **state)
{
    static const struct rpc_client_ops ops = {.on_message = held_message, .on_status = held_status};
    struct fixture *fixture = *state;
    struct client client;
    struct held held = {0};
    struct rpc_call *call = NULL;
    const char *folder = test_temp_dir();
    char path[TEST_PATH_BYTES];
    open_tls_server(fixture);
    tls_files_issue(folder, &fixture->ca, TLS_ROLE_CLIENT, "anna");
    open_client(fixture, folder, &client);
    const struct rpc_call_options options = {
        .path = HOLD, .client_streams = true, .server_streams = true, .ops = &ops, .user = &held};
    assert_int_equal(rpc_channel_call(client.channel, &options, &call, NULL), CADRE_OK);
    echo(fixture, call, &held);

    /* A broken file changes nothing. */
    test_write(test_path(path, fixture->server_folder, "cert.pem"), "broken");
    rpc_tls_reload(fixture->server_tls);
    assert_int_equal(fixture->events[RPC_TLS_RELOAD_FAILED], 1);
    assert_non_null(strstr(fixture->last, "no PEM certificate"));
    struct client second;
    assert_ok(ask_once(fixture, folder, &second), &second.error);

    /* Nor may another identity slip in. */
    tls_files_issue(fixture->server_folder, &fixture->ca, TLS_ROLE_COORDINATOR, "another");
    rpc_tls_reload(fixture->server_tls);
    assert_int_equal(fixture->events[RPC_TLS_RELOAD_FAILED], 2);
    assert_non_null(strstr(fixture->last, "until it is started again"));

    /* Both ends move to a new CA: what runs stays, what is new uses the new files. */
    tls_files_issue(fixture->server_folder, &fixture->other_ca, TLS_ROLE_COORDINATOR, "main");
    rpc_tls_reload(fixture->server_tls);
    assert_int_equal(fixture->events[RPC_TLS_RELOADED], 1);
    echo(fixture, call, &held);
    assert_int_equal(ask_once(fixture, folder, &second), CADRE_UNAUTHENTICATED);
    tls_files_issue(folder, &fixture->other_ca, TLS_ROLE_CLIENT, "anna");
    rpc_tls_reload(client.tls);
    assert_int_equal(rpc_tls_generation(client.tls), 2);
    assert_ok(ask(&client), &client.error);
    assert_string_equal(client.answer, "client/anna");
    echo(fixture, call, &held);
    assert_int_equal(held.messages, 3);
    assert_false(held.ended);

    rpc_call_cancel(call);
    assert_int_equal(
        rpc_loop_run_until(fixture->loop, &held.ended, clock_monotonic_us() + WAIT_TIMEOUT_US),
        CADRE_OK);
    close_client(&client);
}

static void files_are_taken_up_by_themselves(void **state)
{
    struct fixture *fixture = *state;
    open_tls_server(fixture);
    tls_files_issue(fixture->server_folder, &fixture->other_ca, TLS_ROLE_COORDINATOR, "main");
    assert_true(had_event(fixture, RPC_TLS_RELOADED));
    assert_int_equal(fixture->events[RPC_TLS_RELOADED], 1);
    assert_int_equal(rpc_tls_generation(fixture->server_tls), 2);
}

static void options_that_do_not_go_together(void **state)
{
    struct fixture *fixture = *state;
    struct cadre_error error = {0};
    struct rpc_tls *tls = NULL;
    char cert[] = "/nowhere/cert.pem";
    struct rpc_tls_options options = {.cert = cert};
    assert_error(rpc_tls_open(fixture->loop, &options, TLS_ROLE_NONE, NULL, NULL, &tls, &error),
        CADRE_INVALID_ARGUMENT, &error, "--tls-key is missing");
    options = (struct rpc_tls_options){.dir = (char *)(uintptr_t)fixture->server_folder};
    assert_error(rpc_tls_open(fixture->loop, &options, TLS_ROLE_WORKER, NULL, NULL, &tls, &error),
        CADRE_INVALID_ARGUMENT, &error, "role coordinator");
    char empty[] = "";
    options = (struct rpc_tls_options){.dir = empty};
    assert_ok(
        rpc_tls_open(fixture->loop, &options, TLS_ROLE_WORKER, NULL, NULL, &tls, &error), &error);
    assert_null(tls);
}

static void addresses(void **state)
{
    struct fixture *fixture = *state;
    struct cadre_error error = {0};
    struct rpc_channel *channel = NULL;
    open_tls_server(fixture);
    static const char *const wrong[] = {
        "0.0.0.0:1", "[::]:1", "300.1.1.1:1", "-a:1", "a b:1", ":1", "host:0", "host"};
    static const char *const right[] = {
        "10.1.2.3:7", "[fe80::1]:7", "host-a:7", "a.b.example:7", "localhost:7"};
    const struct rpc_channel_options options = {.tls = fixture->server_tls};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(rpc_channel_open(fixture->loop, wrong[i], &options, &channel, &error),
            CADRE_INVALID_ARGUMENT);
    }
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_ok(rpc_channel_open(fixture->loop, right[i], &options, &channel, &error), &error);
        rpc_channel_close(channel);
    }
    struct rpc_server *server = NULL;
    const struct rpc_server_options server_options = {.tls = fixture->server_tls};
    assert_ok(rpc_server_open(fixture->loop, &server_options, &server, &error), &error);
    assert_error(rpc_server_listen(server, "host-a:7", NULL, NULL, &error), CADRE_INVALID_ARGUMENT,
        &error, "0.0.0.0:7");
    rpc_server_close(server);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(who_it_is), TEST(when_its_certificate_ends),
        TEST(a_server_of_another_ca),
        TEST(a_client_of_another_ca), TEST(only_a_coordinator_is_a_server),
        TEST(plain_to_tls_and_tls_to_plain), TEST(certificates_that_expire_in_use),
        TEST(servers_that_expire_in_use), TEST(new_files_while_streams_run),
        TEST(files_are_taken_up_by_themselves), TEST(options_that_do_not_go_together),
        TEST(addresses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
