/* SPDX-License-Identifier: Apache-2.0
 * Tokens for the pages: whose they are, and each way in which one is void. */
#include <stdio.h>
#include <string.h>

#include "coordinator/daemon/base/login_token.h"
#include "tests/lib/test.h"

#define NOW   UINT64_C(12345) /* seconds since the host's boot */
#define NEVER UINT64_MAX      /* no certificate was shown */

static struct cadre_error error;

static struct login_key key_of_start(void)
{
    struct login_key key;
    assert_ok(login_key_make(&key, &error), &error);
    return key;
}

static void assert_void(
    const struct login_key *key, const char *token, uint64_t now_s, const char *part)
{
    struct tls_identity identity;
    assert_error(login_token_check(key, token, now_s, &identity, &error), CADRE_UNAUTHENTICATED,
        &error, part);
    assert_int_equal(identity.role, TLS_ROLE_NONE);
}

static void it_says_whose_it_is(void **state)
{
    (void)state;
    const struct login_key key = key_of_start();
    static const struct tls_identity identities[] = {{.role = TLS_ROLE_LOCAL},
        {.role = TLS_ROLE_CLIENT, .name = "root.example-1"},
        {.role = TLS_ROLE_SUBMITTER, .name = "a_b"}, {.role = TLS_ROLE_VIEWER, .name = "v"}};
    for (size_t i = 0; i < sizeof identities / sizeof identities[0]; i++) {
        char token[LOGIN_TOKEN_BYTES];
        uint64_t lasts_s = 0;
        struct tls_identity identity;
        assert_ok(
            login_token_make(&key, &identities[i], NOW, NEVER, token, &lasts_s, &error), &error);
        assert_int_equal(lasts_s, LOGIN_LASTS_S);
        assert_ok(login_token_check(&key, token, NOW, &identity, &error), &error);
        assert_int_equal(identity.role, identities[i].role);
        assert_string_equal(identity.name, identities[i].name);
        assert_ok(login_token_check(&key, token, NOW + lasts_s - 1, &identity, &error), &error);
        assert_void(&key, token, NOW + lasts_s, "has expired");
    }
}

static void the_longest_name_fits(void **state)
{
    (void)state;
    const struct login_key key = key_of_start();
    struct tls_identity identity = {.role = TLS_ROLE_SUBMITTER};
    struct tls_identity seen;
    char token[LOGIN_TOKEN_BYTES];
    uint64_t lasts_s = 0;
    memset(identity.name, 'x', sizeof identity.name - 1);
    assert_ok(login_token_make(&key, &identity, NOW, NEVER, token, &lasts_s, &error), &error);
    assert_ok(login_token_check(&key, token, NOW, &seen, &error), &error);
    assert_string_equal(seen.name, identity.name);
}

static void it_lasts_no_longer_than_the_certificate(void **state)
{
    (void)state;
    const struct login_key key = key_of_start();
    const struct tls_identity viewer = {.role = TLS_ROLE_VIEWER, .name = "eve"};
    struct tls_identity seen;
    char token[LOGIN_TOKEN_BYTES];
    uint64_t lasts_s = 0;
    assert_ok(login_token_make(&key, &viewer, NOW, 60, token, &lasts_s, &error), &error);
    assert_int_equal(lasts_s, 60);
    assert_ok(login_token_check(&key, token, NOW + 59, &seen, &error), &error);
    assert_void(&key, token, NOW + 60, "has expired");
    assert_ok(
        login_token_make(&key, &viewer, NOW, LOGIN_LASTS_S + 1, token, &lasts_s, &error), &error);
    assert_int_equal(lasts_s, LOGIN_LASTS_S);
    assert_error(login_token_make(&key, &viewer, NOW, 0, token, &lasts_s, &error),
        CADRE_UNAUTHENTICATED, &error, "cadre pki issue --force");
}

static void a_key_is_wiped(void **state)
{
    (void)state;
    static const struct login_key zero;
    struct login_key key = key_of_start();
    assert_memory_not_equal(&key, &zero, sizeof key);
    login_key_wipe(&key);
    assert_memory_equal(&key, &zero, sizeof key);
}

static void workers_get_none(void **state)
{
    (void)state;
    const struct login_key key = key_of_start();
    static const enum tls_role roles[] = {TLS_ROLE_NONE, TLS_ROLE_WORKER, TLS_ROLE_COORDINATOR};
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        const struct tls_identity identity = {.role = roles[i], .name = "w"};
        char token[LOGIN_TOKEN_BYTES];
        uint64_t lasts_s = 0;
        assert_error(login_token_make(&key, &identity, NOW, NEVER, token, &lasts_s, &error),
            CADRE_PERMISSION_DENIED, &error, "gets no token");
    }
}

static void each_change_makes_it_void(void **state)
{
    (void)state;
    const struct login_key key = key_of_start();
    const struct login_key other = key_of_start();
    const struct tls_identity viewer = {.role = TLS_ROLE_VIEWER, .name = "eve"};
    char token[LOGIN_TOKEN_BYTES];
    char changed[LOGIN_TOKEN_BYTES + 300];
    uint64_t lasts_s = 0;
    assert_ok(login_token_make(&key, &viewer, NOW, NEVER, token, &lasts_s, &error), &error);
    assert_void(&other, token, NOW, "not of this start"); /* another start of the coordinator */
    for (size_t i = 0; i < strlen(token); i++) {
        for (int bit = 0; bit < 7; bit++) {
            memcpy(changed, token, sizeof token);
            changed[i] = (char)(changed[i] ^ (1 << bit));
            assert_void(&key, changed, NOW, "not whole");
        }
        memcpy(changed, token, sizeof token);
        changed[i] = '\0'; /* it is cut off */
        assert_void(&key, changed, NOW, "not whole");
    }
    snprintf(changed, sizeof changed, "client%s", strchr(token, '~')); /* another role */
    assert_void(&key, changed, NOW, "not whole");
    snprintf(changed, sizeof changed, "%s0", token);
    assert_void(&key, changed, NOW, "not whole");
    memset(changed, 'a', sizeof changed);
    changed[sizeof changed - 1] = '\0';
    assert_void(&key, changed, NOW, "not whole");
    assert_void(&key, "", NOW, "not whole");
    assert_void(&key, "~~~", NOW, "not whole");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_whose_it_is),
        cmocka_unit_test(the_longest_name_fits),
        cmocka_unit_test(it_lasts_no_longer_than_the_certificate),
        cmocka_unit_test(a_key_is_wiped),
        cmocka_unit_test(workers_get_none),
        cmocka_unit_test(each_change_makes_it_void),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
