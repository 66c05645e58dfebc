/* SPDX-License-Identifier: Apache-2.0
 * The transport alone: connections that are used again, shared fairly and ended at once; TLS;
 * proxies. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/thread.h"
#include "common/storage/transport/http.h"
#include "store_rig.h"
#include "tests/lib/speed.h"

#define SECOND UINT64_C(1000000)

static struct rig rig;
static struct http *http;
static struct cadre_error error;

static void open_http(unsigned connections)
{
    const struct http_options options = {.connections = connections};
    rig_reset(&rig);
    (void)rig_order(&rig, "POST", "settings", "{\"token\": \"\"}");
    assert_ok(http_open(&options, &http, &error), &error);
}

static void close_http(void)
{
    http_close(http);
    http = NULL;
}

static const char *url_of(const char *path)
{
    static _Thread_local char url[256];
    snprintf(url, sizeof url, "%s%s", rig.url, path);
    return url;
}

/* One request, from its begin to its end; what the answer's status was. */
static cadre_status ask(const struct http_request *request, int *ret_status, char *ret_body,
    bool *ret_may_pass, struct cadre_error *failure)
{
    struct http_call *call = NULL;
    CADRE_TRY(http_begin(http, request, true, &call, failure));
    (void)http_wait(http, &call, 1, UINT64_MAX);
    cadre_status status = http_result(call, ret_may_pass, failure);
    const struct http_answer *answer = http_answer_of(call);
    *ret_status = answer->status;
    if (ret_body != NULL) {
        snprintf(ret_body, 256, "%.255s", answer->body != NULL ? answer->body : "");
    }
    http_end(call);
    return status;
}

static struct http_request get(const char *path, uint64_t within_us)
{
    return (struct http_request){.method = "GET",
        .url = url_of(path),
        .deadline_us = clock_monotonic_us() + within_us,
        .limit_bytes = 65536};
}

static void connections_are_used_again(void **state)
{
    int status = 0;
    bool may_pass = false;
    (void)state;
    open_http(4);
    for (unsigned i = 0; i < 20; i++) {
        struct http_request request = get("/web/none", 10 * SECOND);
        assert_ok(ask(&request, &status, NULL, &may_pass, &error), &error);
        assert_int_equal(status, 404);
    }
    assert_string_equal(rig_order(&rig, "GET", "connections", NULL), "1 1");
    close_http();
}

/* Connections of this process that a program which it starts would have, too. */
static unsigned count_inherited(void)
{
    unsigned count = 0;
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_storage peer;
        socklen_t size = sizeof peer;
        bool is_connection = getpeername(fd, (struct sockaddr *)&peer, &size) == 0 &&
                             (peer.ss_family == AF_INET || peer.ss_family == AF_INET6);
        count += is_connection && (fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0 ? 1 : 0;
    }
    return count;
}

static void no_program_inherits_a_connection(void **state)
{
    int status = 0;
    bool may_pass = false;
    (void)state;
    open_http(1);
    unsigned before = count_inherited();
    struct http_request request = get("/web/none", 10 * SECOND);
    assert_ok(ask(&request, &status, NULL, &may_pass, &error), &error);
    assert_int_equal(count_inherited(), before);
    close_http();
}

/* --- more threads than connections --- */

#define THREADS 12

static void *ask_five_times(void *argument)
{
    bool *good = argument;
    for (unsigned i = 0; i < 5; i++) {
        struct cadre_error failure;
        int status = 0;
        bool may_pass = false;
        struct http_request request = get("/web/none", 60 * SECOND);
        *good = ask(&request, &status, NULL, &may_pass, &failure) == CADRE_OK && status == 404;
        if (!*good) {
            return NULL;
        }
    }
    return NULL;
}

static void no_more_connections_than_allowed(void **state)
{
    pthread_t threads[THREADS];
    bool good[THREADS] = {false};
    unsigned made = 0;
    unsigned most = 0;
    (void)state;
    open_http(3);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(thread_start(&threads[i], ask_five_times, &good[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(good[i]);
    }
    assert_int_equal(sscanf(rig_order(&rig, "GET", "connections", NULL), "%u %u", &made, &most), 2);
    assert_in_range(made, 1, 3);
    assert_in_range(most, 1, 3);
    close_http();
}

static void the_wait_for_a_connection_has_an_end(void **state)
{
    struct http_call *held = NULL;
    struct http_call *call = NULL;
    (void)state;
    open_http(1);
    rig_rule(&rig, "'match': 'GET /web/held', 'act': 'silent'");
    struct http_request request = get("/web/held", 60 * SECOND);
    assert_ok(http_begin(http, &request, true, &held, &error), &error);
    request = get("/web/other", SECOND / 5);
    assert_error(http_begin(http, &request, true, &call, &error), CADRE_UNAVAILABLE, &error,
        "1 connections");
    assert_null(call);
    assert_ok(http_begin(http, &request, false, &call, &error), &error);
    assert_null(call);
    http_end(held);
    request = get("/web/other", 10 * SECOND);
    assert_ok(http_begin(http, &request, false, &call, &error), &error);
    assert_non_null(call);
    http_end(call);
    close_http();
}

/* --- the stop --- */

struct stopped {
    const char *path;
    bool needs_connection;
    cadre_status status;
    uint64_t ended_us;
};

static void *ask_until_stopped(void *argument)
{
    struct stopped *stopped = argument;
    struct cadre_error failure;
    int status = 0;
    bool may_pass = false;
    struct http_request request = get(stopped->path, 600 * SECOND);
    stopped->status = ask(&request, &status, NULL, &may_pass, &failure);
    stopped->ended_us = clock_monotonic_us();
    return NULL;
}

static bool has_two(void *data)
{
    (void)data;
    return rig_count(&rig, "GET /web/") == 2;
}

static void all_that_wait_are_stopped(void **state)
{
    struct stopped stopped[4] = {
        {.path = "/web/silent"}, {.path = "/web/drip"}, {.path = "/web/x"}, {.path = "/web/y"}};
    pthread_t threads[4];
    (void)state;
    open_http(2);
    rig_rule(&rig, "'match': 'GET /web/', 'times': 9, 'act': 'silent'");
    for (size_t i = 0; i < 4; i++) { /* two of them have a connection */
        assert_int_equal(thread_start(&threads[i], ask_until_stopped, &stopped[i]), 0);
    }
    assert_true(test_wait(has_two, NULL, 20 * SECOND));
    uint64_t stopped_us = clock_monotonic_us();
    http_stop(http);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(stopped[i].status, CADRE_CANCELLED);
        assert_true(stopped[i].ended_us - stopped_us < speed_scaled_us(SECOND / 10));
    }
    struct http_call *call = NULL;
    struct http_request request = get("/web/x", SECOND);
    assert_error(http_begin(http, &request, true, &call, &error), CADRE_CANCELLED, &error, "stop");
    close_http();
}

/* --- bodies --- */

static void bodies_have_bounds(void **state)
{
    char to[16] = "";
    int status = 0;
    bool may_pass = false;
    (void)state;
    open_http(1);
    rig_rule(&rig, "'match': 'GET /web/page', 'times': 99, 'act': 'status', 'code': 200, "
                   "'html': '0123456789abcdef'");
    struct http_request request = get("/web/page", 10 * SECOND);
    request.limit_bytes = 16;
    char body[256];
    assert_ok(ask(&request, &status, body, &may_pass, &error), &error);
    assert_string_equal(body, "0123456789abcdef");
    request.limit_bytes = 15;
    assert_error(ask(&request, &status, body, &may_pass, &error), CADRE_OUT_OF_RANGE, &error, "15");
    assert_false(may_pass);
    request.limit_bytes = 0;
    request.to = to;
    request.to_bytes = 16;
    assert_ok(ask(&request, &status, body, &may_pass, &error), &error);
    assert_memory_equal(to, "0123456789abcdef", 16);
    assert_string_equal(body, "");
    request.to_bytes = 15;
    assert_error(ask(&request, &status, body, &may_pass, &error), CADRE_UNAVAILABLE, &error, "15");
    assert_true(may_pass);
    request.to_most = true;
    assert_error(ask(&request, &status, body, &may_pass, &error), CADRE_OUT_OF_RANGE, &error, "15");
    request.to_bytes = sizeof to;
    assert_ok(ask(&request, &status, body, &may_pass, &error), &error);
    /* An error's page that is longer is cut, and is none. */
    rig_rule(&rig, "'match': 'GET /web/lost', 'times': 99, 'act': 'status', 'code': 404, "
                   "'html': '0123456789abcdef'");
    request = get("/web/lost", 10 * SECOND);
    request.limit_bytes = 3;
    assert_ok(ask(&request, &status, body, &may_pass, &error), &error);
    assert_int_equal(status, 404);
    assert_string_equal(body, "012");
    close_http();
}

static void a_deadline_ends_a_request(void **state)
{
    int status = 0;
    bool may_pass = false;
    (void)state;
    open_http(1);
    rig_rule(&rig, "'match': 'GET /web/x', 'times': 99, 'act': 'silent'");
    struct http_request request = get("/web/x", SECOND / 5);
    uint64_t begun_us = clock_monotonic_us();
    assert_error(
        ask(&request, &status, NULL, &may_pass, &error), CADRE_UNAVAILABLE, &error, "in time");
    assert_true(clock_monotonic_us() - begun_us >= SECOND / 5);
    request = get("/web/x", 60 * SECOND);
    request.stall_us = SECOND / 5;
    assert_error(
        ask(&request, &status, NULL, &may_pass, &error), CADRE_UNAVAILABLE, &error, "stalled");
    assert_true(may_pass);
    close_http();
}

static void redirects_are_followed_where_allowed(void **state)
{
    int status = 0;
    bool may_pass = false;
    char rule[256];
    (void)state;
    open_http(1);
    snprintf(rule, sizeof rule,
        "'match': 'GET /web/x', 'times': 99, 'act': 'redirect', 'to': '%s/web/none'", rig.url);
    rig_rule(&rig, rule);
    struct http_request request = get("/web/x", 10 * SECOND);
    assert_ok(ask(&request, &status, NULL, &may_pass, &error), &error);
    assert_int_equal(status, 302);
    request.redirects_max = 1;
    assert_ok(ask(&request, &status, NULL, &may_pass, &error), &error);
    assert_int_equal(status, 404);
    rig_rule(
        &rig, "'match': 'GET /web/y', 'times': 99, 'act': 'redirect', 'to': 'file:///etc/passwd'");
    request = get("/web/y", 10 * SECOND);
    request.redirects_max = 9;
    assert_int_equal(ask(&request, &status, NULL, &may_pass, &error), CADRE_FAILED_PRECONDITION);
    close_http();
}

/* --- proxies --- */

static void proxies(void **state)
{
    int status = 0;
    bool may_pass = false;
    (void)state;
    open_http(1);
    setenv("http_proxy", rig.url, 1);
    struct http_request request = get("", 10 * SECOND);
    request.url = "http://store.invalid/web/none";
    assert_ok(ask(&request, &status, NULL, &may_pass, &error), &error);
    assert_int_equal(status, 404);
    assert_string_equal(rig_order(&rig, "GET", "header?X-Proxied", NULL), "yes");
    request = get("/web/none", 10 * SECOND);
    request.no_proxy = true;
    request.apart = true;
    assert_ok(ask(&request, &status, NULL, &may_pass, &error), &error);
    assert_string_equal(rig_order(&rig, "GET", "header?X-Proxied", NULL), "");
    unsetenv("http_proxy");
    close_http();
}

/* --- TLS --- */

/* A certificate of the loopback address, its own authority. */
static void make_certificate(const char *cert, const char *key)
{
    const char *argv[] = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
        "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=store", "-addext",
        "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert, NULL};
    const struct program_spec spec = {.argv = argv};
    struct program_result result;
    program_run(&spec, &result);
    if (result.exit_code != 0) {
        fail_msg("openssl: %s", result.err);
    }
    program_result_free(&result);
}

static void certificates(void **state)
{
    struct rig tls;
    char cert[TEST_PATH_BYTES], key[TEST_PATH_BYTES], url[128];
    int status = 0;
    bool may_pass = true;
    (void)state;
    const char *folder = test_temp_dir();
    make_certificate(test_path(cert, folder, "cert.pem"), test_path(key, folder, "key.pem"));
    rig_start(&tls, cert, key);
    struct http_request request = get("", 30 * SECOND);
    snprintf(url, sizeof url, "https://127.0.0.1:%d/web/none", tls.port);
    request.url = url;
    const struct http_options rows[] = {{.connections = 1, .ca_file = cert}, {.connections = 1},
        {.connections = 1, .ca_file = "/no/such/file"}};
    assert_ok(http_open(&rows[0], &http, &error), &error);
    assert_ok(ask(&request, &status, NULL, &may_pass, &error), &error);
    assert_int_equal(status, 404);
    /* Of another host. */
    snprintf(url, sizeof url, "https://localhost:%d/web/none", tls.port);
    assert_error(ask(&request, &status, NULL, &may_pass, &error), CADRE_FAILED_PRECONDITION, &error,
        "is that of another host (SSL: no alternative certificate subject name matches target host "
        "name 'localhost')");
    close_http();
    for (size_t i = 1; i < 3; i++) {
        snprintf(url, sizeof url, "https://127.0.0.1:%d/web/none", tls.port);
        assert_ok(http_open(&rows[i], &http, &error), &error);
        assert_error(ask(&request, &status, NULL, &may_pass, &error), CADRE_FAILED_PRECONDITION,
            &error, "AWS_CA_BUNDLE");
        assert_non_null(strstr(error.text, i == 1 ? "issued by CN=store," : "/no/such/file"));
        assert_false(may_pass);
        close_http();
    }
    /* Of bytes that were read before, whatever the file has by now. */
    size_t size = 0;
    char *bytes = NULL;
    assert_ok(file_read(cert, 1 << 16, &bytes, &size, &error), &error);
    for (size_t i = 0; i < 2; i++) {
        const struct http_options read = {.connections = 1,
            .ca_file = "/no/such/file",
            .ca_bytes = bytes,
            .ca_size = i == 0 ? size : size / 2};
        assert_ok(http_open(&read, &http, &error), &error);
        cadre_status got = ask(&request, &status, NULL, &may_pass, &error);
        assert_int_equal(got, i == 0 ? CADRE_OK : CADRE_FAILED_PRECONDITION);
        assert_true(
            i == 0 || strstr(error.text, "/no/such/file, which AWS_CA_BUNDLE names") != NULL);
        close_http();
    }
    free(bytes);
    rig_stop(&tls);
}

static int start(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_DFL);
    rig_start(&rig, NULL, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    rig_stop(&rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_are_used_again),
        cmocka_unit_test(no_program_inherits_a_connection),
        cmocka_unit_test(no_more_connections_than_allowed),
        cmocka_unit_test(the_wait_for_a_connection_has_an_end),
        cmocka_unit_test(all_that_wait_are_stopped),
        cmocka_unit_test(bodies_have_bounds),
        cmocka_unit_test(a_deadline_ends_a_request),
        cmocka_unit_test(redirects_are_followed_where_allowed),
        cmocka_unit_test(proxies),
        cmocka_unit_test(certificates),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
