/* SPDX-License-Identifier: Apache-2.0
 * The HTTP server on a loop: its answers, at once and later, refused clients, and silent clients
 * that do not delay others. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <uv.h>

#include "common/base/clock.h"
#include "common/http/pacing.h"
#include "common/http/server.h"
#include "tests/lib/test.h"

static uv_loop_t loop;
static struct http_server *server;
static int port;
static unsigned status = 200;

static struct http_request *waiting; /* of "/later" */

static void show(void *user, struct http_request *request)
{
    assert_ptr_equal(user, &loop);
    struct exposition out = {0};
    exposition_text(&out, "the page\n");
    http_answer(request, http_response_exposition(status, HTTP_TYPE_TEXT, &out));
}

/* Shows how it was asked. */
static void show_rest(void *user, struct http_request *request)
{
    (void)user;
    const char *a = http_request_header(request, "X-A");
    const char *argument = http_target_argument(http_request_target(request), "a");
    char text[200];
    snprintf(text, sizeof text, "rest=%s a=%s header=%s", http_request_rest(request),
        argument != NULL ? argument : "none", a != NULL ? a : "none");
    http_answer(request, http_response_text(200, false, text));
}

static void show_body(void *user, struct http_request *request)
{
    (void)user;
    char text[100];
    size_t size = 0;
    const char *body = http_request_body(request, &size);
    snprintf(text, sizeof text, "acts=%d body=%zu %.*s", http_request_acts(request), size,
        size < 20 ? (int)size : 20, body);
    http_answer(request, http_response_text(200, true, text));
}

static void wait_with_answer(void *user, struct http_request *request)
{
    (void)user;
    assert_null(waiting);
    waiting = request;
}

static struct http_response *refuse(unsigned refused_status, const struct cadre_error *error)
{
    char text[600];
    snprintf(text, sizeof text, "refused: %s", error->text);
    return http_response_text(refused_status, false, text);
}

/* More than the buffers of a socket take. */
static char large[8 * 1024 * 1024];

static void show_large(void *user, struct http_request *request)
{
    (void)user;
    const struct http_content content = {
        .status = 200, .type = HTTP_TYPE_TEXT, .bytes = large, .size = sizeof large};
    http_answer(request, http_response_new(&content));
}

static uint64_t cost_us;     /* CPU that an answer of "/cost" takes */
static uint64_t served_us;   /* when it was asked last */
static unsigned served;      /* how often */
static unsigned served_runs; /* in so many runs of the server */

static void show_cost(void *user, struct http_request *request)
{
    (void)user;
    static uint64_t run_ms;
    uint64_t began_us = clock_thread_cpu_us();
    served_runs += served == 0 || uv_now(&loop) != run_ms;
    run_ms = uv_now(&loop);
    served_us = clock_monotonic_us();
    served++;
    while (clock_thread_cpu_us() - began_us < cost_us) {
    }
    http_answer(request, http_response_text(200, true, "at a cost"));
}

static const struct http_page pages[] = {
    {.path = "/page", .summary = "a page", .serve = show},
    {.path = "/below/", .serve = show_rest, .refuse = refuse, .own_only = true},
    {.path = "/act", .serve = show_body, .acts = true},
    {.path = "/later", .serve = wait_with_answer},
    {.path = "/large", .serve = show_large},
    {.path = "/cost", .serve = show_cost},
};

#define PAGES (sizeof pages / sizeof pages[0])

static cadre_status open_at(const char *address, struct cadre_error *error)
{
    const struct http_options options = {
        .address = address, .program = "test", .pages = pages, .page_count = PAGES, .user = &loop};
    return http_server_open(&loop, &options, &server, &port, error);
}

static int set_up(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uv_loop_init(&loop);
    status = 200;
    cost_us = 0;
    served = 0;
    served_runs = 0;
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
    const char *text = exchange("GET /page?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    assert_true(begins(text, "HTTP/1.1 200 "));
    assert_non_null(strstr(text, "\r\nContent-Type: text/plain; charset=utf-8\r\n"));
    assert_non_null(strstr(text, "\r\n\r\nthe page\n"));
    text = exchange("HEAD /page HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    assert_true(begins(text, "HTTP/1.1 200 "));
    assert_non_null(strstr(text, "\r\nContent-Length: 9\r\n"));
    assert_null(strstr(text, "the page"));
    status = 503;
    assert_true(begins(exchange("GET /page HTTP/1.0\r\n\r\n", &answer) + 8, " 503 "));
    text = exchange("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", &answer);
    assert_non_null(strstr(text, "/page        a page\n"));
    assert_null(strstr(text, "below"));
    text = exchange("GET /pages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", &answer);
    assert_non_null(strstr(text, "/page        a page\n"));
}

static void others_are_refused(void **state)
{
    (void)state;
    struct answer answer;
    const char *text = exchange("GET /no HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    assert_true(begins(text, "HTTP/1.1 404 "));
    text =
        exchange("POST /page HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", &answer);
    assert_true(begins(text, "HTTP/1.1 405 "));
    assert_non_null(strstr(text, "\r\nAllow: GET, HEAD\r\n"));
    char request[30000];
    memset(request, 'a', sizeof request);
    memcpy(request, "GET /", 5);
    memcpy(request + sizeof request - 14, " HTTP/1.1\r\n\r\n", 14);
    answer = (struct answer){.fd = dial()};
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_true(send(answer.fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0);
    (void)test_wait(has_ended, &answer, CADRE_US_PER_S);
    assert_true(answer.size == 0 || begins(answer.text, "HTTP/1.1 4"));
    close(answer.fd);
}

/* What is behind a page's path, arguments and headers. */
static void a_request_is_read(void **state)
{
    (void)state;
    struct answer answer;
    const char *text = exchange("GET /below/x%20y/z?a=1%2B1+2&b HTTP/1.1\r\nHost: [::1]:80\r\n"
                                "X-A: h\r\nConnection: close\r\n\r\n",
        &answer);
    assert_non_null(strstr(text, "\r\n\r\nrest=x y/z a=1+1 2 header=h\n"));
    text = exchange(
        "GET /below/%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", &answer);
    assert_true(begins(text, "HTTP/1.1 400 "));
    assert_non_null(strstr(text, "\r\n\r\nrefused: the path of the URL"));
}

static void headers_keep_browsers_at_home(void **state)
{
    (void)state;
    static const char *const lines[] = {"Content-Security-Policy: default-src 'none'; ",
        "X-Content-Type-Options: nosniff\r\n", "Referrer-Policy: no-referrer\r\n",
        "Cross-Origin-Resource-Policy: same-origin\r\n", "Cache-Control: no-store\r\n"};
    struct answer answer;
    const char *text = exchange("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_non_null(strstr(text, lines[i]));
    }
}

/* Each request of another site's page, and of a name that was resolved to this host. */
static void other_sites_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *request;
        const char *begin;
    } rows[] = {{"GET /page HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 421 "},
        {"GET /page HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", "HTTP/1.1 421 "},
        {"GET /below/a HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n"
         "Connection: close\r\n\r\n",
            "HTTP/1.1 403 "},
        {"GET /below/a HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
         "Connection: close\r\n\r\n",
            "HTTP/1.1 403 "},
        {"GET /below/a HTTP/1.1\r\nHost: localhost:1\r\nOrigin: http://localhost:1\r\n"
         "Sec-Fetch-Site: same-origin\r\nConnection: close\r\n\r\n",
            "HTTP/1.1 200 "},
        {"GET /page HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n",
            "HTTP/1.1 200 "}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct answer answer;
        assert_true(begins(exchange(rows[i].request, &answer), rows[i].begin));
    }
}

/* A POST of this server's own page, and its body. */
static void a_page_acts(void **state)
{
    (void)state;
    static const char own[] =
        "POST /act HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n";
    static const struct {
        const char *rest;
        const char *part;
    } rows[] = {{"Content-Length: 3\r\n\r\nabc", "\r\n\r\nacts=1 body=3 abc\n"},
        {"Content-Length: 0\r\n\r\n", "\r\n\r\nacts=1 body=0 \n"},
        {"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
            "\r\n\r\nacts=1 body=3 abc\n"},
        {"Sec-Fetch-Site: cross-site\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 403 "}};
    char request[HTTP_BODY_MAX + 300];
    struct answer answer;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(request, sizeof request, "%sConnection: close\r\n%s", own, rows[i].rest);
        assert_non_null(strstr(exchange(request, &answer), rows[i].part));
    }
    int used = snprintf(request, sizeof request,
        "%sConnection: close\r\nContent-Length: %d\r\n\r\n", own, HTTP_BODY_MAX + 1);
    memset(request + used, 'x', HTTP_BODY_MAX + 1);
    request[used + HTTP_BODY_MAX + 1] = '\0';
    assert_true(begins(exchange(request, &answer), "HTTP/1.1 413 "));
    assert_non_null(
        strstr(exchange("GET /act HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer), "acts=0 body=0"));
    assert_true(begins(exchange("POST /act HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
                                "Connection: close\r\n\r\na",
                           &answer),
        "HTTP/1.1 403 "));
}

static bool has_answer(void *data)
{
    const struct answer *answer = data;
    (void)has_ended(data);
    return strstr(answer->text, "\r\n\r\n") != NULL && strstr(answer->text, "rest=") != NULL;
}

/* Two requests, one after the other, on one connection. */
static void a_connection_stays_for_the_next_request(void **state)
{
    (void)state;
    static const char request[] = "GET /below/x HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct answer answer = {.fd = dial()};
    for (int i = 0; i < 2; i++) {
        answer.size = 0;
        uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(
            send(answer.fd, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
        assert_true(test_wait(has_answer, &answer, 5 * CADRE_US_PER_S));
    }
    close(answer.fd);
}

static bool is_asked(void *data)
{
    (void)data;
    uv_run(&loop, UV_RUN_NOWAIT);
    return waiting != NULL;
}

static const char later[] = "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n";

/* Others are answered meanwhile. */
static void an_answer_may_come_later(void **state)
{
    (void)state;
    struct answer first = {.fd = dial()};
    struct answer other;
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(send(first.fd, later, sizeof later - 1, MSG_NOSIGNAL), sizeof later - 1);
    assert_true(test_wait(is_asked, NULL, 5 * CADRE_US_PER_S));
    assert_true(
        begins(exchange("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n", &other), "HTTP/1.1 200 "));
    assert_false(has_ended(&first));
    assert_int_equal(first.size, 0);
    http_answer(waiting, http_response_text(200, true, "at last"));
    waiting = NULL;
    assert_true(test_wait(has_ended, &first, 5 * CADRE_US_PER_S));
    assert_non_null(strstr(first.text, "\r\n\r\nat last\n"));
    close(first.fd);
}

/* The page answers after its client, and after the server. */
static void an_answer_may_come_too_late(void **state)
{
    (void)state;
    struct answer first = {.fd = dial()};
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(send(first.fd, later, sizeof later - 1, MSG_NOSIGNAL), sizeof later - 1);
    assert_true(test_wait(is_asked, NULL, 5 * CADRE_US_PER_S));
    close(first.fd);
    uv_run(&loop, UV_RUN_NOWAIT);
    http_answer(waiting, http_response_text(200, true, "gone"));
    waiting = NULL;
    first = (struct answer){.fd = dial()};
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(send(first.fd, later, sizeof later - 1, MSG_NOSIGNAL), sizeof later - 1);
    assert_true(test_wait(is_asked, NULL, 5 * CADRE_US_PER_S));
    http_server_close(server);
    server = NULL;
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(http_request_is_over(waiting));
    http_answer(waiting, http_response_text(200, true, "over"));
    waiting = NULL;
    close(first.fd);
}

/* More than there may be at a time, all silent, and none of them goes. */
static void silent_ones_do_not_stay_in_the_way(void **state)
{
    (void)state;
    int silent[HTTP_CONNECTIONS_MAX + 100];
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        silent[i] = dial();
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    struct answer answer;
    const char *text = exchange("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    assert_true(begins(text, "HTTP/1.1 200 "));
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        close(silent[i]);
    }
}

static const char cost[] = "GET /cost HTTP/1.1\r\nHost: localhost\r\n\r\n";

/* What is more than its share delays the next one, on whatever connection it comes, and all are
 * answered. */
static void requests_take_a_part_of_a_core(void **state)
{
    (void)state;
    struct answer answer;
    cost_us = HTTP_CPU_BURST_US + 4000;
    assert_true(begins(exchange(cost, &answer), "HTTP/1.1 200 "));
    uint64_t first_us = served_us;
    assert_true(begins(exchange(cost, &answer), "HTTP/1.1 200 "));
    assert_int_equal(served, 2);
    assert_true(served_us - first_us >= 4000 * HTTP_CPU_SHARE - cost_us);
}

/* A client that goes while the server is held leaves it serving. */
static void a_held_server_serves_again(void **state)
{
    (void)state;
    struct answer answer;
    cost_us = HTTP_CPU_BURST_US + 1000;
    int fd = dial();
    assert_int_equal(send(fd, cost, sizeof cost - 1, MSG_NOSIGNAL), sizeof cost - 1);
    close(fd);
    assert_true(begins(exchange(cost, &answer), "HTTP/1.1 200 "));
}

#define MANY 150

static bool all_are_served(void *data)
{
    uv_run(&loop, UV_RUN_NOWAIT);
    return served == *(const unsigned *)data;
}

/* Those that come between two runs are served in one or two, not ten at a time. */
static void many_that_come_at_once_are_served_at_once(void **state)
{
    (void)state;
    int fds[MANY];
    const unsigned all = MANY;
    for (size_t i = 0; i < MANY; i++) {
        fds[i] = dial();
        assert_int_equal(send(fds[i], cost, sizeof cost - 1, MSG_NOSIGNAL), sizeof cost - 1);
    }
    assert_true(test_wait(all_are_served, (void *)(uintptr_t)&all, 30 * CADRE_US_PER_S));
    assert_in_range(served_runs, 1, 3);
    for (size_t i = 0; i < MANY; i++) {
        close(fds[i]);
    }
}

static bool is_closed(void *data)
{
    char byte[4096];
    uv_run(&loop, UV_RUN_NOWAIT);
    ssize_t got = recv(*(int *)data, byte, sizeof byte, 0);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

/* They ask for as much as is held in memory for all, and more, and never read: the first ones are
 * closed. */
static void those_who_do_not_read_are_not_waited_for(void **state)
{
    (void)state;
    static const char request[] = "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n";
    int silent[24];
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        silent[i] = dial();
        uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(
            send(silent[i], request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    struct answer answer;
    const char *text = exchange("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    assert_true(begins(text, "HTTP/1.1 200 "));
    assert_true(test_wait(is_closed, &silent[0], 5 * CADRE_US_PER_S));
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        close(silent[i]);
    }
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
    const struct http_options options = {.address = "0.0.0.0:0",
        .program = "test",
        .pages = pages,
        .page_count = PAGES,
        .tls = &tls};
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
        .page_count = PAGES,
        .user = &loop,
        .tls = &tls};
    assert_int_equal(http_server_open(&loop, &options, &server, &port, &error), CADRE_OK);
    struct http_server *secure = server;
    http_server_reload_tls(&server, &tls);
    assert_ptr_equal(server, secure); /* nothing of it is TLS */
    struct answer answer;
    assert_true(begins(
        exchange("GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer), "HTTP/1.1 200 "));
    http_server_close(secure);
    server = first;
    port = first_port;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(pages_are_answered), TEST(others_are_refused),
        TEST(a_request_is_read), TEST(headers_keep_browsers_at_home), TEST(other_sites_are_refused),
        TEST(a_page_acts), TEST(a_connection_stays_for_the_next_request),
        TEST(an_answer_may_come_later), TEST(an_answer_may_come_too_late),
        TEST(requests_take_a_part_of_a_core), TEST(a_held_server_serves_again),
        TEST(many_that_come_at_once_are_served_at_once), TEST(silent_ones_do_not_stay_in_the_way),
        TEST(those_who_do_not_read_are_not_waited_for),
        TEST(addresses_are_checked), TEST(bad_tls_files_are_refused), TEST(loopback_is_plain_http)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
