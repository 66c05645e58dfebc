/* SPDX-License-Identifier: Apache-2.0
 * What OpenSSL's contexts become once resumption is disabled, beside what a configuration file
 * says. */
#include <stdio.h>

#include <openssl/ssl.h>

#include "common/base/files.h"
#include "common/tls/resumption.h"
#include "tests/lib/tls_files.h"

/* A context as gRPC makes them. */
static SSL_CTX *context_of(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    assert_non_null(context);
    return context;
}

static void assert_no_tickets(const SSL_CTX *context)
{
    assert_int_equal(SSL_CTX_get_num_tickets(context), 0);
    assert_true(SSL_CTX_get_options(context) & SSL_OP_NO_TICKET);
}

static SSL_CTX *disabled_beside(const char *content)
{
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    test_path(path, test_temp_dir(), "openssl.cnf");
    if (content != NULL) {
        test_write(path, content);
    }
    assert_ok(tls_resumption_disable(path, &error), &error);
    SSL_CTX *context = context_of();
    assert_no_tickets(context);
    return context;
}

static void no_tickets_from_here_on(void **state)
{
    struct cadre_error error = {0};
    (void)state;
    SSL_CTX *before = context_of();
    assert_int_not_equal(SSL_CTX_get_num_tickets(before), 0);
    assert_ok(tls_resumption_disable(NULL, &error), &error);
    SSL_CTX *after = context_of();
    assert_no_tickets(after);
    assert_int_not_equal(SSL_CTX_get_num_tickets(before), 0);
    SSL_CTX_free(before);
    SSL_CTX_free(after);
}

static void what_the_file_demands_stays(void **state)
{
    (void)state;
    SSL_CTX *context = disabled_beside("openssl_conf = modules\n[modules]\nssl_conf = ssl\n"
                                       "[ssl]\nsystem_default = strict\n"
                                       "[strict]\nMinProtocol = TLSv1.3\nNumTickets = 5\n"
                                       "Options = ServerPreference,SessionTicket\n");
    assert_int_equal(SSL_CTX_get_min_proto_version(context), TLS1_3_VERSION);
    assert_true(SSL_CTX_get_options(context) & SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_free(context);
}

static void files_without_a_system_default(void **state)
{
    static const char *const contents[] = {NULL, "", "openssl_conf = modules\n",
        "openssl_conf = modules\n[modules]\nproviders = none\n",
        "openssl_conf = modules\n[modules]\nssl_conf = ssl\n[ssl]\nother = x\n[x]\n",
        "openssl_conf = modules\n[modules]\nssl_conf = ssl\n[ssl]\nsystem_default = nowhere\n",
        "[unfinished\nopenssl_conf"};
    (void)state;
    for (size_t i = 0; i < sizeof contents / sizeof contents[0]; i++) {
        SSL_CTX_free(disabled_beside(contents[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_tickets_from_here_on),
        cmocka_unit_test(what_the_file_demands_stays),
        cmocka_unit_test(files_without_a_system_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
