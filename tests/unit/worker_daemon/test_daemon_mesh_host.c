/* SPDX-License-Identifier: Apache-2.0
 * Where tasks listen: the address that the routes to the coordinator begin at. */
#include <string.h>

#include "tests/lib/test.h"
#include "worker/host/daemon/mesh_host.h"

static void local_coordinators_are_met_on_loopback(void **state)
{
    (void)state;
    static const char *const peers[] = {"unix:", "unix:/run/cadre/coordinator.sock",
        "unix-abstract:cadre", "ipv4:127.0.0.1:7077", "ipv4:127.0.0.1"};
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        struct cadre_error error = {0};
        char host[MESH_HOST_BYTES] = "";
        assert_ok(mesh_host_toward(peers[i], host, &error), &error);
        assert_string_equal(host, "127.0.0.1");
    }
}

/* Both ways to write one address come to the same, also where the host has no IPv6 at all. */
static void brackets_may_be_escaped(void **state)
{
    (void)state;
    struct cadre_error plain_error = {0};
    struct cadre_error escaped_error = {0};
    char plain[MESH_HOST_BYTES] = "";
    char escaped[MESH_HOST_BYTES] = "";
    cadre_status status = mesh_host_toward("ipv6:[::1]:7077", plain, &plain_error);
    assert_int_equal(mesh_host_toward("ipv6:%5B::1%5D:7077", escaped, &escaped_error), status);
    assert_string_equal(plain, escaped);
    if (status == CADRE_OK) {
        assert_string_equal(plain, "::1");
    } else {
        assert_int_equal(status, CADRE_UNAVAILABLE);
    }
}

static void what_is_no_address_is_said(void **state)
{
    (void)state;
    static const char *const peers[] = {"", "ipv4:", "ipv4:1.2.3:80",
        "ipv4:10.0.0.1.2.3.4.5.6.7.8:80", "ipv6:", "ipv6:::1", "ipv6:[::1", "ipv6:%5B::1",
        "ipv6:[]:80", "ipv6:[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:80",
        "coordinator:7077", "dns:x"};
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        struct cadre_error error = {0};
        char host[MESH_HOST_BYTES];
        assert_error(mesh_host_toward(peers[i], host, &error), CADRE_INVALID_ARGUMENT, &error,
            "name one with --mesh-host");
    }
    struct cadre_error error = {0};
    char host[MESH_HOST_BYTES];
    assert_error(mesh_host_toward("ipv4:255.255.255.255:80", host, &error), CADRE_UNAVAILABLE,
        &error, "no address of this host leads to");
}

static void the_option_is_checked(void **state)
{
    (void)state;
    static const char *const good[] = {"auto", "127.0.0.1", "10.1.2.3", "::1", "fd00::7"};
    static const char *const bad[] = {"", "eth0", "10.1.2.3:80", "[::1]", "10.1.2", "host.example"};
    struct cadre_error error = {0};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_ok(mesh_host_check(good[i], &error), &error);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_error(mesh_host_check(bad[i], &error), CADRE_INVALID_ARGUMENT, &error,
            "neither \"auto\" nor an IPv4 or IPv6 address");
    }
    assert_true(mesh_host_is_auto("auto"));
    assert_false(mesh_host_is_auto("127.0.0.1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_coordinators_are_met_on_loopback),
        cmocka_unit_test(brackets_may_be_escaped),
        cmocka_unit_test(what_is_no_address_is_said),
        cmocka_unit_test(the_option_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
