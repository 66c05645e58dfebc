/* SPDX-License-Identifier: Apache-2.0
 * The HTTP server on a loop: its answers, refused clients, and silent clients that do not delay
 * others. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <uv.h>

#include "common/base/clock.h"
#include "common/http/server.h"
#include "tests/lib/test.h"

static uv_loop_t loop;
static struct http_server *server;
static int port;
static unsigned status = 200;

static unsigned show(void *user, struct exposition *out)
{
    assert_ptr_equal(user, &loop);
    exposition_text(out, "the page\n");
    return status;
}

static const struct http_page pages[] = {{"/page", HTTP_TYPE_TEXT, "a page", show}};

static cadre_status open_at(const char *address, struct cadre_error *error)
{
    const struct http_options options = {
        .address = address, .program = "test", .pages = pages, .page_count = 1, .user = &loop};
    return http_server_open(&loop, &options, &server, &port, error);
}

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uv_loop_init(&loop);
    status = 200;
    assert_ok(open_at("127.0.0.1:0", &error), &error);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    http_server_close(server);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

static int dial(void)
{
    struct sockaddr_in where = {.sin_family = AF_INET,
        .sin_port = htons((in_port_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    (void)connect(fd, (const struct sockaddr *)&where, sizeof where);
    return fd;
}

struct answer {
    int fd;
    char text[4096];
    size_t size;
    bool ended;
};

static bool has_ended(void *data)
{
    struct answer *answer = data;
    uv_run(&loop, UV_RUN_NOWAIT);
    ssize_t got =
        recv(answer->fd, answer->text + answer->size, sizeof answer->text - 1 - answer->size, 0);
    answer->size += got > 0 ? (size_t)got : 0;
    answer->text[answer->size] = '\0';
    return got == 0;
}

/* Sends the text and reads until the server closes. */
static const char *exchange(const char *request, struct answer *answer)
{
    *answer = (struct answer){.fd = dial()};
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(send(answer->fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    assert_true(test_wait(has_ended, answer, 5 * CADRE_US_PER_S));
    close(answer->fd);
    return answer->text;
}

static bool begins(const char *text, const char *part)
{
    return strncmp(text, part, strlen(part)) == 0;
}

static void pages_are_answered(void **state)
{
    (void)state;
    struct answer answer;
    const char *text = exchange("GET /page?x=1 HTTP/1.1\r\nHost: h\r\n\r\n", &answer);
    assert_true(begins(text, "HTTP/1.1 200 "));
    assert_non_null(strstr(text, "\r\nContent-Type: text/plain; charset=utf-8\r\n"));
    assert_non_null(strstr(text, "\r\n\r\nthe page\n"));
    text = exchange("HEAD /page HTTP/1.1\r\nHost: h\r\n\r\n", &answer);
    assert_true(begins(text, "HTTP/1.1 200 "));
    assert_non_null(strstr(text, "\r\nContent-Length: 9\r\n"));
    assert_null(strstr(text, "the page"));
    status = 503;
    assert_true(begins(exchange("GET /page HTTP/1.0\r\n\r\n", &answer) + 8, " 503 "));
    text = exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n", &answer);
    assert_non_null(strstr(text, "/page        a page\n"));
}

static void others_are_refused(void **state)
{
    (void)state;
    struct answer answer;
    const char *text = exchange("GET /no HTTP/1.1\r\nHost: h\r\n\r\n", &answer);
    assert_true(begins(text, "HTTP/1.1 404 "));
    text = exchange("POST /page HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc", &answer);
    assert_true(begins(text, "HTTP/1.1 405 "));
    assert_non_null(strstr(text, "\r\nAllow: GET, HEAD\r\n"));
    char large[20000];
    memset(large, 'a', sizeof large);
    memcpy(large, "GET /", 5);
    memcpy(large + sizeof large - 14, " HTTP/1.1\r\n\r\n", 14);
    answer = (struct answer){.fd = dial()};
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_true(send(answer.fd, large, sizeof large - 1, MSG_NOSIGNAL) > 0);
    (void)test_wait(has_ended, &answer, CADRE_US_PER_S);
    assert_true(answer.size == 0 || begins(answer.text, "HTTP/1.1 4"));
    close(answer.fd);
}

/* More than there may be at a time, all silent: when they have gone, the next is answered. */
static void silent_ones_do_not_stay_in_the_way(void **state)
{
    (void)state;
    int silent[HTTP_CONNECTIONS_MAX + 8];
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        silent[i] = dial();
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        close(silent[i]);
    }
    struct answer answer;
    const char *text = exchange("GET /page HTTP/1.1\r\nHost: h\r\n\r\n", &answer);
    assert_true(begins(text, "HTTP/1.1 200 "));
}

static void addresses_are_checked(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:+80",
        "127.0.0.1:80x", "127.0.0.1:65536", "host.example:80", "[::1:80", "unix:/tmp/x",
        "127.0.0.1:000000080"};
    struct cadre_error error = {0};
    struct http_server *first = server;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_error(open_at(wrong[i], &error), CADRE_INVALID_ARGUMENT, &error, "127.0.0.1:PORT");
    }
    assert_error(open_at("0.0.0.0:0", &error), CADRE_INVALID_ARGUMENT, &error, "--tls-cert");
    assert_error(open_at("[::]:0", &error), CADRE_INVALID_ARGUMENT, &error, "needs TLS");
    char taken[32];
    snprintf(taken, sizeof taken, "127.0.0.1:%d", port);
    assert_error(open_at(taken, &error), CADRE_ALREADY_EXISTS, &error, "choose another port");
    assert_ptr_equal(server, first);
}

static void bad_tls_files_are_refused(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct http_server *other = NULL;
    char no[] = "no";
    const struct tls_material tls = {.cert_pem = no, .key_pem = no, .ca_pem = no};
    const struct http_options options = {
        .address = "0.0.0.0:0", .program = "test", .pages = pages, .page_count = 1, .tls = &tls};
    assert_error(http_server_open(&loop, &options, &other, NULL, &error), CADRE_INVALID_ARGUMENT,
        &error, "TLS certificate");
}

static void loopback_is_plain_http(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct http_server *first = server;
    int first_port = port;
    char no[] = "no";
    const struct tls_material tls = {.cert_pem = no, .key_pem = no, .ca_pem = no};
    const struct http_options options = {.address = "127.0.0.1:0",
        .program = "test",
        .pages = pages,
        .page_count = 1,
        .user = &loop,
        .tls = &tls};
    assert_int_equal(http_server_open(&loop, &options, &server, &port, &error), CADRE_OK);
    struct http_server *secure = server;
    http_server_reload_tls(&server, &tls);
    assert_ptr_equal(server, secure); /* nothing of it is TLS */
    struct answer answer;
    assert_true(
        begins(exchange("GET /page HTTP/1.1\r\nHost: h\r\n\r\n", &answer), "HTTP/1.1 200 "));
    http_server_close(secure);
    server = first;
    port = first_port;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(pages_are_answered), TEST(others_are_refused),
        TEST(silent_ones_do_not_stay_in_the_way), TEST(addresses_are_checked),
        TEST(bad_tls_files_are_refused), TEST(loopback_is_plain_http)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
