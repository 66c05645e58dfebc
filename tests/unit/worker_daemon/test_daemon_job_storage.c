/* SPDX-License-Identifier: Apache-2.0
 * Which settings and credentials a job's check in an object store gets: its own, and no others. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "tests/lib/test.h"
#include "worker/host/daemon/objects/job_storage.h"

/* ---- in place of common/storage ---- */

static struct storage_options given;
static int opened;
static int stopped;
static bool fails;
static const struct isolation_user as_the_daemon = {.change = false};

cadre_status storage_client_open(const struct storage_options *options,
    struct storage_client **ret_client, struct cadre_error *error)
{
    given = *options;
    if (fails) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "a wrong endpoint");
    }
    opened++;
    *ret_client = (struct storage_client *)(void *)&opened;
    return CADRE_OK;
}

void storage_client_stop(struct storage_client *client)
{
    assert_ptr_equal(client, &opened);
    stopped++;
}

void storage_client_close(struct storage_client *client)
{
    if (client != NULL) {
        opened--;
    }
}

/* ---- tests ---- */

static const char *found(const char *name)
{
    return given.variables->find(given.variables->user, name);
}

static void open_with(struct job_storage *storage, const char *const *environment, size_t count)
{
    struct cadre_error error = {0};
    const struct job_spec spec = {.environment = environment, .environment_count = count};
    assert_ok(job_storage_open(storage, &spec, &as_the_daemon, &error), &error);
    assert_true(given.objects_only);
    assert_true(given.no_metadata);
    assert_int_equal(opened, 1);
}

static void the_job_s_variables_count(void **state)
{
    (void)state;
    struct job_storage storage;
    static const char *const environment[] = {"AWS_ACCESS_KEY_ID=first", "AWS_REGION=eu-1",
        "AWS_SECRET_ACCESS_KEY=a=b", "AWS_ACCESS_KEY_ID=second",
        "AWS_ENDPOINT_URL_S3=", "AWS_REGIONAL=none", "OTHER=x"};
    assert_int_equal(setenv("AWS_SESSION_TOKEN", "the daemon's", 1), 0);
    open_with(&storage, environment, CADRE_COUNT_OF(environment));
    assert_string_equal(found("AWS_ACCESS_KEY_ID"), "second");
    assert_string_equal(found("AWS_SECRET_ACCESS_KEY"), "a=b");
    assert_string_equal(found("AWS_REGION"), "eu-1");
    assert_string_equal(found("AWS_ENDPOINT_URL_S3"), "");
    assert_null(found("AWS_SESSION_TOKEN"));
    assert_null(found("AWS_REG"));
    assert_null(found("OTHER"));
    job_storage_stop(&storage);
    assert_int_equal(stopped, 1);
    job_storage_close(&storage);
    assert_int_equal(opened, 0);
}

/* What a job names is not asked for credentials, and the host's own only where that is allowed. */
static void services_of_the_host(void **state)
{
    (void)state;
    struct job_storage storage;
    static const char full[] = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    static const char relative[] = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
    static const char disabled[] = "AWS_EC2_METADATA_DISABLED";
    static const char endpoint[] = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
    static const char *const environment[] = {
        "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1/admin",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/admin", "AWS_CONTAINER_AUTHORIZATION_TOKEN=x",
        "AWS_EC2_METADATA_DISABLED=false",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT=http://127.0.0.1/admin"};
    assert_int_equal(setenv(full, "http://169.254.170.23/v1/credentials", 1), 0);
    open_with(&storage, environment, CADRE_COUNT_OF(environment));
    assert_null(found(full));
    assert_null(found(relative));
    assert_null(found(endpoint));
    assert_null(found("AWS_CONTAINER_AUTHORIZATION_TOKEN"));
    assert_string_equal(found(disabled), "true");
    job_storage_use_host_credentials(true);
    assert_string_equal(found(full), "http://169.254.170.23/v1/credentials");
    assert_null(found(relative));
    assert_null(found(endpoint));
    assert_string_equal(found(disabled), "false");
    assert_int_equal(setenv(disabled, "true", 1), 0);
    assert_string_equal(found(disabled), "true"); /* the operator's */
    assert_int_equal(unsetenv(disabled), 0);
    job_storage_close(&storage);
    open_with(&storage, (const char *const[]){"AWS_EC2_METADATA_DISABLED=true"}, 1);
    assert_string_equal(found(disabled), "true"); /* the job's */
    job_storage_use_host_credentials(false);
    job_storage_close(&storage);
    assert_int_equal(unsetenv(full), 0);
}

/* What the host's credentials sign goes to the store of its worker alone. */
static void the_store_of_the_host(void **state)
{
    (void)state;
    static const char *const none[] = {"AWS_REGION=eu-1"};
    static const char *const same[] = {"AWS_ENDPOINT_URL=http://store", "AWS_ACCESS_KEY_ID=half"};
    static const char *const other[] = {"AWS_ENDPOINT_URL_S3=http://other"};
    static const char *const own[] = {
        "AWS_ENDPOINT_URL=http://other", "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"};
    struct job_storage storage;
    struct cadre_error error = {0};
    const struct job_spec refused = {.environment = other, .environment_count = 1};
    job_storage_use_host_credentials(true);
    open_with(&storage, none, CADRE_COUNT_OF(none));
    assert_null(found("AWS_ENDPOINT_URL"));
    job_storage_close(&storage);
    assert_error(job_storage_open(&storage, &refused, &as_the_daemon, &error),
        CADRE_PERMISSION_DENIED, &error, "http://other, and the host's credentials");
    assert_non_null(strstr(error.text, "(Amazon's)"));
    assert_int_equal(setenv("AWS_ENDPOINT_URL", "http://store", 1), 0);
    assert_error(job_storage_open(&storage, &refused, &as_the_daemon, &error),
        CADRE_PERMISSION_DENIED, &error, "(http://store)");
    open_with(&storage, none, CADRE_COUNT_OF(none));
    assert_string_equal(found("AWS_ENDPOINT_URL"), "http://store");
    assert_string_equal(found("AWS_REGION"), "eu-1");
    job_storage_close(&storage);
    open_with(&storage, same, CADRE_COUNT_OF(same));
    assert_string_equal(found("AWS_ENDPOINT_URL"), "http://store");
    job_storage_close(&storage);
    open_with(&storage, own, CADRE_COUNT_OF(own)); /* it has keys */
    assert_string_equal(found("AWS_ENDPOINT_URL"), "http://other");
    job_storage_close(&storage);
    job_storage_use_host_credentials(false);
    open_with(&storage, other, CADRE_COUNT_OF(other));
    assert_string_equal(found("AWS_ENDPOINT_URL_S3"), "http://other");
    job_storage_close(&storage);
    assert_int_equal(unsetenv("AWS_ENDPOINT_URL"), 0);
}

static void assert_same(const char *const *one, size_t ones, const char *const *other,
    size_t others, const char *otherwise, bool same)
{
    struct cadre_error error = {0};
    struct sha256 first;
    struct sha256 second;
    const struct job_spec spec1 = {.environment = one, .environment_count = ones};
    const struct job_spec spec2 = {.environment = other, .environment_count = others};
    assert_ok(job_storage_identity(&spec1, "job 1", &first, &error), &error);
    assert_ok(job_storage_identity(&spec2, otherwise, &second, &error), &error);
    assert_int_equal(sha256_equal(&first, &second), same);
}

static void who_a_job_is(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_ENDPOINT_URL=http://s"};
    static const char *const again[] = {"X=y", "AWS_ENDPOINT_URL=http://s",
        "AWS_SECRET_ACCESS_KEY=old", "AWS_SECRET_ACCESS_KEY=b", "AWS_ACCESS_KEY_ID=a",
        "AWS_SESSION_TOKEN="};
    static const char *const others[][3] = {
        {"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=c", "AWS_ENDPOINT_URL=http://s"},
        {"AWS_ACCESS_KEY_ID=b", "AWS_SECRET_ACCESS_KEY=a", "AWS_ENDPOINT_URL=http://s"},
        {"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_ENDPOINT_URL=http://t"},
        {"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_ENDPOINT_URL_S3=http://s"},
        {"AWS_ACCESS_KEY_ID=a", "AWS_ENDPOINT_URL=http://s", "AWS_SECRET_ACCESS_KEY="},
    };
    assert_same(keys, CADRE_COUNT_OF(keys), again, CADRE_COUNT_OF(again), "job 2", true);
    for (size_t i = 0; i < CADRE_COUNT_OF(others); i++) {
        assert_same(keys, CADRE_COUNT_OF(keys), others[i], 3, "job 1", false);
    }
    assert_same(keys, 0, keys, 0, "job 1", true);
    assert_same(keys, 0, keys, 0, "job 2", false);
    assert_same(keys, 1, keys, 1, "job 2", false); /* half of the keys are none */
}

/* The daemon may read them where the job's user may not. */
static void files_of_the_host_do_not(void **state)
{
    (void)state;
    struct job_storage storage;
    static const char *const environment[] = {"HOME=/own", "AWS_PROFILE=root",
        "AWS_SHARED_CREDENTIALS_FILE=/own/.aws/credentials", "AWS_CONFIG_FILE=/own/.aws/config",
        "AWS_WEB_IDENTITY_TOKEN_FILE=/own/token",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=/own/token"};
    static const char *const names[] = {"HOME", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"};
    open_with(&storage, environment, CADRE_COUNT_OF(environment));
    for (size_t i = 0; i < CADRE_COUNT_OF(names); i++) {
        assert_null(found(names[i]));
    }
    job_storage_close(&storage);
}

static void assert_no_bundle(const char *path, const char *words)
{
    struct cadre_error error = {0};
    char *bytes = NULL;
    size_t size = 0;
    assert_error(given.read_bundle(given.user, path, &bytes, &size, &error),
        CADRE_FAILED_PRECONDITION, &error, words);
    assert_non_null(strstr(error.text, "AWS_CA_BUNDLE"));
    assert_non_null(strstr(error.text, path));
}

/* That of authorities' certificates is read, as the job's user. */
static void the_file_of_authorities(void **state)
{
    (void)state;
    struct job_storage storage;
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    char *bytes = NULL;
    size_t size = 0;
    test_write(test_path(path, test_temp_dir(), "ca.pem"), "certificates");
    open_with(&storage, (const char *const[]){"AWS_CA_BUNDLE=/own/ca.pem"}, 1);
    assert_string_equal(found("AWS_CA_BUNDLE"), "/own/ca.pem");
    assert_ok(given.read_bundle(given.user, path, &bytes, &size, &error), &error);
    assert_string_equal(bytes, "certificates");
    assert_int_equal(size, strlen("certificates"));
    free(bytes);
    assert_no_bundle("ca.pem", "an absolute path");
    assert_no_bundle("/dev/zero", "is not a regular file");
    assert_no_bundle(test_temp_dir(), "is not a regular file");
    assert_no_bundle("/no/such/file", "No such file");
    job_storage_close(&storage);
}

static void hash_of(const char *const *environment, size_t count, struct sha256 *ret_hash)
{
    struct job_storage storage;
    struct cadre_error error = {0};
    struct sha256_stream *stream = NULL;
    open_with(&storage, environment, count);
    assert_ok(sha256_open(&stream, &error), &error);
    assert_ok(job_storage_hash_address(&storage, stream, &error), &error);
    assert_ok(sha256_finish(stream, ret_hash, &error), &error);
    sha256_close(stream);
    job_storage_close(&storage);
}

/* Where the store is counts, and not who asks there. */
static void a_place_is_where_the_store_is(void **state)
{
    (void)state;
    struct sha256 first;
    struct sha256 other;
    hash_of((const char *const[]){"AWS_ENDPOINT_URL=https://a", "AWS_ACCESS_KEY_ID=1"}, 2, &first);
    hash_of((const char *const[]){"AWS_ACCESS_KEY_ID=2", "AWS_ENDPOINT_URL=https://a"}, 2, &other);
    assert_true(sha256_equal(&first, &other));
    hash_of((const char *const[]){"AWS_ENDPOINT_URL=https://b"}, 1, &other);
    assert_false(sha256_equal(&first, &other));
    hash_of((const char *const[]){"AWS_ENDPOINT_URL_S3=https://a"}, 1, &other);
    assert_false(sha256_equal(&first, &other));
    hash_of((const char *const[]){"AWS_ENDPOINT_URL=https://a", "AWS_REGION=x"}, 2, &other);
    assert_false(sha256_equal(&first, &other));
}

static void a_failure_leaves_nothing(void **state)
{
    (void)state;
    struct job_storage storage;
    struct cadre_error error = {0};
    const struct job_spec spec = {
        .environment = (const char *const[]){"AWS_ENDPOINT_URL=x"}, .environment_count = 1};
    fails = true;
    assert_error(job_storage_open(&storage, &spec, &as_the_daemon, &error), CADRE_INVALID_ARGUMENT,
        &error, "a wrong endpoint");
    fails = false;
    job_storage_stop(&storage);
    job_storage_close(&storage);
    assert_int_equal(opened, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_job_s_variables_count),
        cmocka_unit_test(services_of_the_host), cmocka_unit_test(the_store_of_the_host),
        cmocka_unit_test(who_a_job_is), cmocka_unit_test(files_of_the_host_do_not),
        cmocka_unit_test(the_file_of_authorities), cmocka_unit_test(a_place_is_where_the_store_is),
        cmocka_unit_test(a_failure_leaves_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
