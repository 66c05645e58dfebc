/* SPDX-License-Identifier: Apache-2.0
 * Channels to servers that are not Cadre's: which files are taken, that the host's name is checked,
 * and that a call does not wait beyond its deadline for the reason of a failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "common/rpc/tls.h"
#include "tests/lib/speed.h"
#include "tests/lib/tls_files.h"

#define WHO             "/test.Foreign/Who"
#define WAIT_TIMEOUT_US (20 * CADRE_US_PER_S)
#define SHORT_US        (1000 * CADRE_US_PER_MS) /* shorter than the search for a reason may take */

struct fixture {
    struct rpc_loop *loop;
    struct tls_key_pair ca;
    const char *folder;
    struct rpc_tls *server_tls;
    struct rpc_server *server;
    char address[64];
    char cert[TEST_PATH_BYTES], key[TEST_PATH_BYTES], ca_file[TEST_PATH_BYTES];
};

static void who_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    (void)user;
    rpc_call_send(call, data, length, NULL);
    rpc_call_finish(call, CADRE_OK, NULL);
}

static int set_up(void **state)
{
    static const struct rpc_server_ops ops = {.on_message = who_message};
    static const struct rpc_method method = {.path = WHO, .request_bytes_max = 100, .ops = &ops};
    struct fixture *fixture = calloc(1, sizeof *fixture);
    struct cadre_error error = {0};
    int port = 0;
    assert_non_null(fixture);
    assert_int_equal(rpc_loop_open(&fixture->loop, NULL), CADRE_OK);
    tls_files_authority(&fixture->ca);
    fixture->folder = test_temp_dir();
    tls_files_issue(fixture->folder, &fixture->ca, TLS_ROLE_COORDINATOR, "main");
    test_path(fixture->cert, fixture->folder, "cert.pem");
    test_path(fixture->key, fixture->folder, "key.pem");
    test_path(fixture->ca_file, fixture->folder, "ca.pem");
    struct rpc_tls_options files = {.dir = (char *)(uintptr_t)fixture->folder};
    assert_ok(rpc_tls_open(
                  fixture->loop, &files, TLS_ROLE_NONE, NULL, NULL, &fixture->server_tls, &error),
        &error);
    const struct rpc_server_options options = {
        .methods = &method, .method_count = 1, .tls = fixture->server_tls};
    assert_ok(rpc_server_open(fixture->loop, &options, &fixture->server, &error), &error);
    assert_ok(rpc_server_listen(fixture->server, "127.0.0.1:0", NULL, &port, &error), &error);
    rpc_server_start(fixture->server);
    snprintf(fixture->address, sizeof fixture->address, "127.0.0.1:%d", port);
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
    free(fixture);
    return 0;
}

static cadre_status ask(struct rpc_channel *channel, uint64_t timeout_us, struct cadre_error *error)
{
    const struct rpc_call_options options = {
        .path = WHO, .deadline_us = clock_monotonic_us() + timeout_us};
    struct rpc_buffer empty;
    rpc_buffer_alloc(&empty, 0);
    cadre_status status = rpc_channel_call_blocking(channel, &options, &empty, NULL, NULL, error);
    rpc_buffer_free(&empty);
    return status;
}

/* One call on a channel of its own. */
static cadre_status ask_with(
    struct fixture *fixture, const struct rpc_tls_options *files, struct cadre_error *error)
{
    struct rpc_tls *tls = NULL;
    struct rpc_channel *channel = NULL;
    assert_ok(rpc_tls_open_foreign(fixture->loop, files, NULL, NULL, &tls, error), error);
    const struct rpc_channel_options options = {.tls = tls, .foreign = "a stand-in"};
    assert_ok(rpc_channel_open(fixture->loop, fixture->address, &options, &channel, error), error);
    cadre_status status = ask(channel, speed_scaled_us(WAIT_TIMEOUT_US), error);
    rpc_channel_close(channel);
    rpc_tls_close(tls);
    return status;
}

static void files_that_go_together(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_tls *tls = NULL;
    struct cadre_error error = {0};
    const struct rpc_tls_options none = {.ca = NULL};
    assert_ok(rpc_tls_open_foreign(fixture->loop, &none, NULL, NULL, &tls, &error), &error);
    assert_null(tls);
    const struct {
        struct rpc_tls_options files;
        cadre_status status;
        const char *part;
    } rows[] = {
        {{.cert = fixture->cert, .key = fixture->key}, CADRE_INVALID_ARGUMENT,
            "a certificate is given, but no CA of the servers"},
        {{.ca = fixture->ca_file, .cert = fixture->cert}, CADRE_INVALID_ARGUMENT, "has no key"},
        {{.ca = fixture->ca_file, .key = fixture->key}, CADRE_INVALID_ARGUMENT,
            "has no certificate"},
        {{.ca = fixture->key}, CADRE_INVALID_ARGUMENT, "the TLS CA"},
        {{.ca = fixture->ca_file, .cert = fixture->ca_file, .key = fixture->key},
            CADRE_INVALID_ARGUMENT, "does not belong to"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_error(rpc_tls_open_foreign(fixture->loop, &rows[i].files, NULL, NULL, &tls, &error),
            rows[i].status, &error, rows[i].part);
        assert_null(tls);
    }
    tls_files_issue_for(
        fixture->folder, &fixture->ca, TLS_ROLE_CLIENT, "anna", tls_files_validity(-3600, -60));
    const struct rpc_tls_options old = {
        .ca = fixture->ca_file, .cert = fixture->cert, .key = fixture->key};
    assert_error(rpc_tls_open_foreign(fixture->loop, &old, NULL, NULL, &tls, &error),
        CADRE_FAILED_PRECONDITION, &error, "expired on ");
}

/* A coordinator's certificate names a role and no host. */
static void the_host_s_name_is_checked(void **state)
{
    struct fixture *fixture = *state;
    struct cadre_error error = {0};
    const struct rpc_tls_options files = {
        .ca = fixture->ca_file, .cert = fixture->cert, .key = fixture->key};
    assert_error(ask_with(fixture, &files, &error), CADRE_UNAUTHENTICATED, &error,
        "does not name the host \"127.0.0.1\"");
    const struct rpc_tls_options none = {.ca = NULL};
    assert_error(ask_with(fixture, &none, &error), CADRE_UNAUTHENTICATED, &error,
        "requires TLS: give the file of its CA");
}

static void no_call_waits_for_the_reason_beyond_its_deadline(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_channel *channel = NULL;
    struct cadre_error error = {0};
    const struct rpc_channel_options options = {.foreign = "a stand-in"};
    assert_ok(
        rpc_channel_open(fixture->loop, fixture->address, &options, &channel, &error), &error);
    cadre_status status = ask(channel, SHORT_US, &error);
    assert_true(status == CADRE_UNAVAILABLE || status == CADRE_DEADLINE_EXCEEDED);
    /* The reason is looked for all the same, and a call that has the time waits for it. */
    assert_error(ask(channel, speed_scaled_us(WAIT_TIMEOUT_US), &error), CADRE_UNAUTHENTICATED,
        &error, "requires TLS: give the file of its CA");
    rpc_channel_close(channel);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(files_that_go_together),
        TEST(the_host_s_name_is_checked),
        TEST(no_call_waits_for_the_reason_beyond_its_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
