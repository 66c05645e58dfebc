/* SPDX-License-Identifier: Apache-2.0
 * Ranges of ports: which texts are one, and that listeners share a range without a port for two. */
#include "common/base/port_range.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/test.h"

static void texts_are_ranges_or_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "47000", "47000:", ":47000", "47010:47000", "0:9",
        "80:90", "1023:2000", "47000:65536", "47000:470010", "47000-47010", "47000:47010 ", "a:b",
        "-1:47000", "47000:+47001", "47000:47001:47002", "99999999999999999999:1"};
    static const struct port_range good[] = {{1024, 65535}, {47000, 47099}, {2000, 2000}};
    struct cadre_error error = {0};
    struct port_range range;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_error(port_range_parse("--mesh-ports", bad[i], 1, &range, &error),
            CADRE_INVALID_ARGUMENT, &error, "write FIRST:LAST within 1024..65535");
        assert_int_equal(port_range_count(&range), 0);
    }
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char text[PORT_RANGE_TEXT_BYTES];
        port_range_format(&good[i], text);
        assert_ok(port_range_parse("--mesh-ports", text, 1, &range, &error), &error);
        assert_int_equal(range.first, good[i].first);
        assert_int_equal(range.last, good[i].last);
        assert_int_equal(port_range_count(&range), good[i].last - good[i].first + 1);
    }
    assert_ok(port_range_parse("--mesh-ports", NULL, 8, &range, &error), &error);
    assert_int_equal(port_range_count(&range), 0);
}

static void each_task_has_a_port(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct port_range range;
    assert_ok(port_range_parse("--mesh-ports", "47000:47003", 4, &range, &error), &error);
    assert_error(port_range_parse("--mesh-ports", "47000:47003", 5, &range, &error),
        CADRE_INVALID_ARGUMENT, &error, "47000:47004");
}

/* Of 127.0.0.0/8 one that no other test of this machine uses. */
static in_addr_t own_loopback(void)
{
    uint32_t pid = (uint32_t)getpid();
    return htonl(0x7f000002 + (pid & 0xffffff) % 0xfffff0);
}

static cadre_status listen_on(const struct port_range *range, int family, int *ret_fd,
    uint16_t *ret_port, struct cadre_error *error)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};
    socklen_t bytes = sizeof(struct sockaddr_in);
    if (family == AF_INET) {
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = own_loopback();
    } else {
        bytes = sizeof(struct sockaddr_in6);
        ((struct sockaddr_in6 *)&address)->sin6_addr = in6addr_loopback;
    }
    const char *host = family == AF_INET ? "127/8" : "::1";
    CADRE_TRY(port_range_listen(range, &address, &bytes, host, "the mesh", ret_fd, error));
    *ret_port = ntohs(family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port
                                        : ((struct sockaddr_in6 *)&address)->sin6_port);
    return CADRE_OK;
}

/* Two neighbouring ports that are free: the kernel chose the first, so no fixed port is needed. */
static struct port_range free_pair(void)
{
    struct cadre_error error = {0};
    for (int attempt = 0; attempt < 100; attempt++) {
        int fds[2] = {-1, -1};
        uint16_t ports[2] = {0, 0};
        assert_ok(listen_on(NULL, AF_INET, &fds[0], &ports[0], &error), &error);
        const struct port_range next = {(uint16_t)(ports[0] + 1), (uint16_t)(ports[0] + 1)};
        bool both = ports[0] < UINT16_MAX &&
                    listen_on(&next, AF_INET, &fds[1], &ports[1], &error) == CADRE_OK;
        close(fds[0]);
        if (both) {
            close(fds[1]);
            return (struct port_range){ports[0], ports[1]};
        }
    }
    fail_msg("no two ports side by side are free");
    return (struct port_range){0};
}

static void listeners_share_a_range(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct port_range range = free_pair();
    int fds[3] = {-1, -1, -1};
    uint16_t ports[3] = {0, 0, 0};
    assert_ok(listen_on(&range, AF_INET, &fds[0], &ports[0], &error), &error);
    assert_ok(listen_on(&range, AF_INET, &fds[1], &ports[1], &error), &error);
    assert_int_equal(ports[0], range.first);
    assert_int_equal(ports[1], range.last);
    assert_error(listen_on(&range, AF_INET, &fds[2], &ports[2], &error), CADRE_RESOURCE_EXHAUSTED,
        &error, "are in use");
    char text[PORT_RANGE_TEXT_BYTES];
    port_range_format(&range, text);
    assert_non_null(strstr(error.text, text));
    assert_non_null(strstr(error.text, "--mesh-ports"));
    assert_int_equal(fds[2], -1);
    close(fds[0]); /* a task ended: the next one has its port */
    assert_ok(listen_on(&range, AF_INET, &fds[2], &ports[2], &error), &error);
    assert_int_equal(ports[2], range.first);
    close(fds[1]);
    close(fds[2]);
}

/* The last bytes of a task that ended may still be on their way: its port is free all the same. */
static void a_port_that_had_connections_is_free(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct port_range range = free_pair();
    range.last = range.first;
    int fd = -1;
    uint16_t port = 0;
    assert_ok(listen_on(&range, AF_INET, &fd, &port, &error), &error);
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = own_loopback()};
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(peer, (struct sockaddr *)&to, sizeof to), 0);
    int accepted = accept(fd, NULL, NULL);
    assert_true(accepted >= 0);
    close(accepted); /* the side that closes first keeps the connection in TIME_WAIT */
    char byte;
    assert_int_equal(read(peer, &byte, 1), 0);
    close(peer);
    close(fd);
    assert_ok(listen_on(&range, AF_INET, &fd, &port, &error), &error);
    close(fd);
}

static void version_six_too(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    int fd = -1;
    uint16_t port = 0;
    if (listen_on(NULL, AF_INET6, &fd, &port, &error) != CADRE_OK) {
        skip(); /* a host without ::1 */
    }
    close(fd);
    const struct port_range range = {port, port};
    uint16_t again = 0;
    assert_ok(listen_on(&range, AF_INET6, &fd, &again, &error), &error);
    assert_int_equal(again, port);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_ranges_or_are_refused),
        cmocka_unit_test(each_task_has_a_port),
        cmocka_unit_test(listeners_share_a_range),
        cmocka_unit_test(a_port_that_had_connections_is_free),
        cmocka_unit_test(version_six_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
