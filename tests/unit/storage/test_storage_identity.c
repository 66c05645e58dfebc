/* SPDX-License-Identifier: Apache-2.0
 * Who a client is, over HTTP: the token of a pod exchanged for credentials. And where a client does
 * not go that has another's settings: to the metadata services of the host. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/storage/transport/metadata_address.h"
#include "store_rig.h"

#define ROLE "arn:aws:iam::123456789012:role/train"

static struct rig rig;
static struct cadre_error error;

static struct storage_client *client_of_pod(const char *token)
{
    static char url[128];
    static char path[TEST_PATH_BYTES];
    snprintf(url, sizeof url, "%s/-/sts", rig.url);
    test_write(test_path(path, test_temp_dir(), "token"), token);
    rig_set(&rig, "AWS_ACCESS_KEY_ID", NULL);
    rig_set(&rig, "AWS_SECRET_ACCESS_KEY", NULL);
    rig_set(&rig, "AWS_WEB_IDENTITY_TOKEN_FILE", path);
    rig_set(&rig, "AWS_ROLE_ARN", ROLE);
    rig_set(&rig, "AWS_ENDPOINT_URL_STS", url);
    return rig_client(&rig, NULL);
}

static void the_token_of_a_pod(void **state)
{
    (void)state;
    rig_reset(&rig);
    rig_setting(&rig, "'token': 'of-the-role', 'identity': 'of-the+pod/=', 'role': '" ROLE "'");
    struct storage_client *client = client_of_pod("of-the+pod/=\n");
    assert_ok(storage_put(client, RIG_BUCKET "a", "1", 1, &error), &error);
    assert_string_equal(rig_order(&rig, "GET", "header?X-Amz-Security-Token", NULL), "of-the-role");
    storage_client_close(client);
    client = client_of_pod("of-another");
    assert_error(storage_put(client, RIG_BUCKET "a", "1", 1, &error), CADRE_UNAUTHENTICATED, &error,
        "STS for the role \"" ROLE "\" gives no credentials: InvalidIdentityToken (HTTP 400)");
    storage_client_close(client);
}

/* --- metadata services --- */

static bool is_metadata(int family, const uint8_t *bytes)
{
    struct sockaddr_in ipv4 = {.sin_family = AF_INET};
    struct sockaddr_in6 ipv6 = {.sin6_family = AF_INET6};
    if (family == AF_INET) {
        memcpy(&ipv4.sin_addr, bytes, 4);
        return metadata_address_is((const struct sockaddr *)&ipv4);
    }
    memcpy(&ipv6.sin6_addr, bytes, 16);
    return metadata_address_is((const struct sockaddr *)&ipv6);
}

static void addresses_of_metadata(void **state)
{
    static const uint8_t metadata4[][4] = {{169, 254, 169, 254}, {169, 254, 170, 2},
        {169, 254, 0, 0}, {168, 63, 129, 16}, {100, 100, 100, 200}};
    static const uint8_t others4[][4] = {
        {127, 0, 0, 1}, {169, 253, 169, 254}, {10, 0, 0, 1}, {168, 63, 129, 17}};
    static const uint8_t metadata6[][16] = {{0xfe, 0x80, [15] = 1}, {0xfe, 0xbf, [15] = 1},
        {0xfd, 0x00, 0x0e, 0xc2, [14] = 2, 0x54}, {[10] = 0xff, 0xff, 169, 254, 169, 254},
        {0x00, 0x64, 0xff, 0x9b, [12] = 169, 254, 169, 254}};
    static const uint8_t others6[][16] = {{[15] = 1}, {0x20, 0x01, 0x0d, 0xb8, [15] = 1},
        {0xfe, 0xc0, [15] = 1}, {[10] = 0xff, 0xff, 127, 0, 0, 1}, {0xfd, 0x00, 0x0e, 0xc3}};
    (void)state;
    for (size_t i = 0; i < CADRE_COUNT_OF(metadata4); i++) {
        assert_true(is_metadata(AF_INET, metadata4[i]));
    }
    for (size_t i = 0; i < CADRE_COUNT_OF(others4); i++) {
        assert_false(is_metadata(AF_INET, others4[i]));
    }
    for (size_t i = 0; i < CADRE_COUNT_OF(metadata6); i++) {
        assert_true(is_metadata(AF_INET6, metadata6[i]));
    }
    for (size_t i = 0; i < CADRE_COUNT_OF(others6); i++) {
        assert_false(is_metadata(AF_INET6, others6[i]));
    }
    assert_false(metadata_address_is(&(struct sockaddr){.sa_family = AF_UNIX}));
}

/* Whatever way the address is written; there is no second try. */
static void a_store_that_is_none(void **state)
{
    static const char *const urls[] = {"http://169.254.169.254", "https://169.254.169.254:8443",
        "http://2852039166", "http://[::ffff:169.254.169.254]", "http://0xa9fea9fe"};
    static const struct storage_options options = {.no_metadata = true, .objects_only = true};
    char *bytes = NULL;
    size_t size = 0;
    (void)state;
    for (size_t i = 0; i < CADRE_COUNT_OF(urls); i++) {
        rig_reset(&rig);
        rig_set(&rig, "AWS_ENDPOINT_URL_S3", urls[i]);
        struct storage_client *client = rig_client(&rig, &options);
        assert_error(storage_get(client, "s3://latest/meta-data/iam", 100, &bytes, &size, &error),
            CADRE_PERMISSION_DENIED, &error, "is an address of a host's metadata services");
        storage_client_close(client);
    }
    rig_reset(&rig); /* others are stores as before */
    struct storage_client *client = rig_client(&rig, &options);
    assert_ok(storage_put(client, RIG_BUCKET "a", "1", 1, &error), &error);
    storage_client_close(client);
}

static int start(void **state)
{
    (void)state;
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
        cmocka_unit_test(the_token_of_a_pod),
        cmocka_unit_test(addresses_of_metadata),
        cmocka_unit_test(a_store_that_is_none),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
