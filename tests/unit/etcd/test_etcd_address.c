/* SPDX-License-Identifier: Apache-2.0
 * Addresses of etcd: what is read, and the sentence for each fault. */
#include <stdio.h>
#include <string.h>

#include "common/etcd/address.h"
#include "tests/lib/test.h"

static void good_addresses(void **state)
{
    struct etcd_address address;
    struct cadre_error error;
    (void)state;
    assert_ok(etcd_address_parse("etcd://127.0.0.1:2379/cadre", false, &address, &error), &error);
    assert_int_equal(address.endpoint_count, 1);
    assert_string_equal(address.endpoints[0], "127.0.0.1:2379");
    assert_string_equal(address.prefix, "cadre");
    assert_ok(etcd_address_parse("etcd://e1:2379,10.0.0.2:2380,[fd00::3]:2379/site-a/cadre_1.x",
                  true, &address, &error),
        &error);
    assert_int_equal(address.endpoint_count, 3);
    assert_string_equal(address.endpoints[0], "e1:2379");
    assert_string_equal(address.endpoints[1], "10.0.0.2:2380");
    assert_string_equal(address.endpoints[2], "[fd00::3]:2379");
    assert_string_equal(address.prefix, "site-a/cadre_1.x");
}

static void bad_addresses(void **state)
{
    static const struct {
        const char *text;
        bool tls;
        const char *part;
    } rows[] = {
        {"", false, "expected etcd://"},
        {"http://127.0.0.1:2379/cadre", false, "expected etcd://"},
        {"etcd:/127.0.0.1:2379/cadre", false, "expected etcd://"},
        {"etcd://127.0.0.1:2379", false, "the prefix of the keys is missing"},
        {"etcd://127.0.0.1:2379/", false, "the prefix of the keys is missing"},
        {"etcd:///cadre", false, "an endpoint is empty"},
        {"etcd://127.0.0.1:2379,/cadre", false, "an endpoint is empty"},
        {"etcd://127.0.0.1:2379,,127.0.0.1:2380/cadre", false, "an endpoint is empty"},
        {"etcd://127.0.0.1/cadre", false, "2379"},
        {"etcd://127.0.0.1:0/cadre", false, "expected HOST:PORT"},
        {"etcd://127.0.0.1:65536/cadre", false, "expected HOST:PORT"},
        {"etcd://127.0.0.1:2379,127.0.0.1:2379/cadre", false, "is there twice"},
        {"etcd://localhost:2379,127.0.0.1:2379/cadre", false, "is there twice"},
        {"etcd://e1:2379/cadre", false, "connections between machines need TLS"},
        {"etcd://10.0.0.1:2379/cadre", false, "connections between machines need TLS"},
        {"etcd://0.0.0.0:2379/cadre", true, "a client needs the address of one host"},
        {"etcd://-x:2379/cadre", true, "neither an address nor a host's name"},
        {"etcd://root:secret@127.0.0.1:2379/cadre", false, "endpoint 1 has a user in it"},
        {"etcd://127.0.0.1:2379/cadre/", false, "the prefix has an empty part"},
        {"etcd://127.0.0.1:2379//cadre", false, "the prefix has an empty part"},
        {"etcd://127.0.0.1:2379/a/../b", false, "the prefix has the part \"..\""},
        {"etcd://127.0.0.1:2379/.", false, "the prefix has the part \".\""},
        {"etcd://127.0.0.1:2379/ca dre", false, "the prefix has a character other than"},
        {"etcd://127.0.0.1:2379/ca\xc3\xa4", false, "the prefix has a character other than"},
    };
    struct etcd_address address;
    struct cadre_error error;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_error(etcd_address_parse(rows[i].text, rows[i].tls, &address, &error),
            CADRE_INVALID_ARGUMENT, &error, rows[i].part);
    }
    /* A password is not repeated in a message. */
    assert_error(etcd_address_parse("etcd://127.0.0.1:1,root:secret@127.0.0.1:2379/cadre", false,
                     &address, &error),
        CADRE_INVALID_ARGUMENT, &error, "endpoint 2 has a user in it");
    assert_null(strstr(error.text, "secret"));
}

static void what_is_too_long(void **state)
{
    static char text[8192];
    struct etcd_address address;
    struct cadre_error error;
    (void)state;
    size_t length = (size_t)snprintf(text, sizeof text, "etcd://");
    for (int i = 0; i <= ETCD_ENDPOINTS_MAX; i++) {
        length += (size_t)snprintf(
            text + length, sizeof text - length, "%s127.0.0.1:%d", i > 0 ? "," : "", 1000 + i);
    }
    snprintf(text + length, sizeof text - length, "/cadre");
    assert_error(etcd_address_parse(text, false, &address, &error), CADRE_INVALID_ARGUMENT, &error,
        "more than 16 endpoints");

    length = (size_t)snprintf(text, sizeof text, "etcd://127.0.0.1:1/");
    memset(text + length, 'p', ETCD_PREFIX_BYTES - 1);
    text[length + ETCD_PREFIX_BYTES - 1] = '\0';
    assert_ok(etcd_address_parse(text, false, &address, &error), &error);
    text[length + ETCD_PREFIX_BYTES - 1] = 'p';
    text[length + ETCD_PREFIX_BYTES] = '\0';
    assert_error(etcd_address_parse(text, false, &address, &error), CADRE_INVALID_ARGUMENT, &error,
        "the prefix has 128 characters; at most 127");

    length = (size_t)snprintf(text, sizeof text, "etcd://");
    memset(text + length, 'h', 400);
    snprintf(text + length + 400, sizeof text - length - 400, ":1/cadre");
    assert_error(etcd_address_parse(text, true, &address, &error), CADRE_INVALID_ARGUMENT, &error,
        "endpoint 1 has 402 characters");

    memset(text + 7, '/', 5000);
    text[5007] = '\0';
    assert_error(etcd_address_parse(text, true, &address, &error), CADRE_INVALID_ARGUMENT, &error,
        "more than 4096 characters");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_addresses),
        cmocka_unit_test(bad_addresses),
        cmocka_unit_test(what_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
