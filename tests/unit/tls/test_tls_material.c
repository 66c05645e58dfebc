/* SPDX-License-Identifier: Apache-2.0
 * Certificates and keys as files: what is taken, and what each wrong one is answered with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/tls/report.h"
#include "common/tls/material.h"
#include "tests/lib/tls_files.h"

struct place {
    struct tls_key_pair ca;
    const char *folder;
    char cert[TEST_PATH_BYTES], key[TEST_PATH_BYTES], ca_file[TEST_PATH_BYTES];
};

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    assert_non_null(place);
    place->folder = test_temp_dir();
    test_path(place->cert, place->folder, "cert.pem");
    test_path(place->key, place->folder, "key.pem");
    test_path(place->ca_file, place->folder, "ca.pem");
    tls_files_authority(&place->ca);
    tls_files_issue(place->folder, &place->ca, TLS_ROLE_WORKER, "host-a");
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    tls_key_pair_free(&place->ca);
    free(place);
    return 0;
}

static cadre_status read_task_index(const struct place *place, struct cadre_error *error)
{
    struct tls_files files = {place->cert, place->key, place->ca_file};
    struct tls_material material;
    cadre_status status = tls_material_read(&files, &material, error);
    if (status != CADRE_OK) {
        assert_null(material.key_pem);
    }
    tls_material_free(&material);
    return status;
}

static void names_are_read(void **state)
{
    static const char *const wrong[] = {"", "spiffe://cadre/", "spiffe://cadre/worker",
        "spiffe://cadre/worker/", "spiffe://cadre/worker/a/b", "spiffe://cadre/local/a",
        "spiffe://cadre/none/a", "spiffe://other/worker/a", "spiffe://cadre/Worker/a",
        "spiffe://cadre/worker/-a", "spiffe://cadre/worker/a b", "http://cadre/worker/a"};
    struct tls_identity identity;
    struct cadre_error error = {0};
    char uri[TLS_URI_BYTES];
    (void)state;
    for (int role = TLS_ROLE_COORDINATOR; role < TLS_ROLES; role++) {
        const struct tls_identity made = {(enum tls_role)role, "Host_1.a-b"};
        tls_identity_uri(&made, uri);
        assert_ok(tls_identity_parse(uri, strlen(uri), &identity, &error), &error);
        assert_int_equal(identity.role, role);
        assert_string_equal(identity.name, "Host_1.a-b");
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(tls_identity_parse(wrong[i], strlen(wrong[i]), &identity, &error),
            CADRE_INVALID_ARGUMENT);
        assert_int_equal(identity.role, TLS_ROLE_NONE);
    }
    static const char hidden[] = "spiffe://cadre/worker/a\0b";
    assert_int_equal(
        tls_identity_parse(hidden, sizeof hidden - 1, &identity, &error), CADRE_INVALID_ARGUMENT);
    char longest[TLS_NAME_BYTES + 1];
    memset(longest, 'a', sizeof longest);
    longest[TLS_NAME_BYTES - 1] = '\0';
    assert_true(tls_name_is_valid(longest));
    longest[TLS_NAME_BYTES - 1] = 'a';
    longest[TLS_NAME_BYTES] = '\0';
    assert_false(tls_name_is_valid(longest));
}

static void good_files_are_read(void **state)
{
    const struct place *place = *state;
    struct tls_files files = {place->cert, place->key, place->ca_file};
    struct tls_material material;
    struct cadre_error error = {0};
    assert_ok(tls_material_read(&files, &material, &error), &error);
    assert_int_equal(material.identity.role, TLS_ROLE_WORKER);
    assert_string_equal(material.identity.name, "host-a");
    uint64_t end_s = tls_files_validity(-60, 3600).not_after_s; /* had it been made now */
    assert_in_range(material.not_after_s, end_s - 600, end_s);
    tls_material_free(&material);
    tls_material_free(&material);
}

static void missing_and_unreadable_files(void **state)
{
    struct place *place = *state;
    struct cadre_error error = {0};
    static const char *const names[] = {"cert.pem", "key.pem", "ca.pem"};
    for (size_t i = 0; i < 3; i++) {
        char path[TEST_PATH_BYTES];
        test_path(path, place->folder, names[i]);
        assert_int_equal(unlink(path), 0);
        assert_error(read_task_index(place, &error), CADRE_NOT_FOUND, &error, names[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_true(read_task_index(place, &error) != CADRE_OK);
        assert_non_null(strstr(error.text, names[i]));
        assert_int_equal(rmdir(path), 0);
        test_write(path, "not PEM\n");
        assert_int_equal(chmod(path, 0600), 0);
        assert_error(read_task_index(place, &error), CADRE_INVALID_ARGUMENT, &error, names[i]);
        assert_non_null(strstr(error.text, "no PEM"));
        tls_files_issue(place->folder, &place->ca, TLS_ROLE_WORKER, "host-a");
        assert_ok(read_task_index(place, &error), &error);
    }
    char damaged[] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    test_write(place->cert, damaged);
    assert_error(read_task_index(place, &error), CADRE_INVALID_ARGUMENT, &error, "damaged");
}

static void a_key_that_others_can_read(void **state)
{
    static const struct {
        mode_t mode;
        bool refused, refused_of_root;
    } rows[] = {{0600, false, false}, {0400, false, false}, {0640, true, false},
        {0440, true, false}, {0660, true, true}, {0604, true, true}, {0644, true, true},
        {0620, true, true}};
    struct place *place = *state;
    struct cadre_error error = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(chmod(place->key, rows[i].mode), 0);
        bool refused = geteuid() == 0 ? rows[i].refused_of_root : rows[i].refused;
        if (refused) {
            assert_error(
                read_task_index(place, &error), CADRE_PERMISSION_DENIED, &error, "chmod 600");
        } else {
            assert_ok(read_task_index(place, &error), &error);
        }
        if (geteuid() == 0 && rows[i].refused) {
            assert_int_equal(chown(place->key, 65534, 0), 0);
            assert_error(read_task_index(place, &error), CADRE_PERMISSION_DENIED, &error, "others");
            assert_int_equal(chown(place->key, 0, 0), 0);
        }
    }
}

static void files_that_do_not_fit(void **state)
{
    struct place *place = *state;
    struct cadre_error error = {0};
    struct tls_key_pair other;
    tls_files_authority(&other);
    test_write(place->ca_file, other.cert_pem);
    assert_error(read_task_index(place, &error), CADRE_INVALID_ARGUMENT, &error, "one CA");
    test_write(place->ca_file, place->ca.cert_pem);
    test_write(place->key, other.key_pem);
    assert_error(read_task_index(place, &error), CADRE_INVALID_ARGUMENT, &error, "does not belong");
    /* The authority's own certificate has a key that fits, but no role. */
    test_write(place->cert, other.cert_pem);
    test_write(place->ca_file, other.cert_pem);
    assert_error(read_task_index(place, &error), CADRE_INVALID_ARGUMENT, &error, "names no role");
    tls_key_pair_free(&other);
}

static void files_out_of_their_time(void **state)
{
    struct place *place = *state;
    struct cadre_error error = {0};
    tls_files_issue_for(
        place->folder, &place->ca, TLS_ROLE_WORKER, "a", tls_files_validity(-3600, -60));
    assert_error(read_task_index(place, &error), CADRE_FAILED_PRECONDITION, &error, "expired on");
    tls_files_issue_for(
        place->folder, &place->ca, TLS_ROLE_WORKER, "a", tls_files_validity(60, 3600));
    assert_error(
        read_task_index(place, &error), CADRE_FAILED_PRECONDITION, &error, "valid only from");
    struct tls_key_pair old;
    struct tls_validity past = tls_files_validity(-7200, -10);
    assert_ok(tls_authority_make(&past, &old, &error), &error);
    struct tls_request request = {
        .identity = {TLS_ROLE_WORKER, "a"}, .validity = tls_files_validity(-60, 60)};
    struct tls_key_pair pair;
    assert_error(tls_authority_issue(&old, &request, &pair, &error), CADRE_FAILED_PRECONDITION,
        &error, "the authority itself");
    tls_key_pair_free(&old);
}

static void what_an_authority_refuses(void **state)
{
    struct place *place = *state;
    struct cadre_error error = {0};
    struct tls_key_pair pair;
    struct tls_request request = {
        .identity = {TLS_ROLE_WORKER, "a b"}, .validity = tls_files_validity(-60, 60)};
    assert_error(tls_authority_issue(&place->ca, &request, &pair, &error), CADRE_INVALID_ARGUMENT,
        &error, "no name");
    request.identity = (struct tls_identity){TLS_ROLE_LOCAL, "a"};
    assert_int_equal(
        tls_authority_issue(&place->ca, &request, &pair, &error), CADRE_INVALID_ARGUMENT);
    const char *hosts[] = {"host-a.example", "10.0.0.1", "fe80::1", "not a host"};
    request.identity = (struct tls_identity){TLS_ROLE_WORKER, "a"};
    request.hosts = hosts;
    request.host_count = 4;
    assert_error(tls_authority_issue(&place->ca, &request, &pair, &error), CADRE_INVALID_ARGUMENT,
        &error, "not a host");
    request.host_count = 3;
    assert_ok(tls_authority_issue(&place->ca, &request, &pair, &error), &error);
    struct tls_key_pair further;
    assert_error(tls_authority_issue(&pair, &request, &further, &error), CADRE_INVALID_ARGUMENT,
        &error, "no certificate of an authority");
    tls_key_pair_free(&pair);
}

static void reports(void **state)
{
    struct place *place = *state;
    struct cadre_error error = {0};
    struct tls_report report;
    assert_ok(tls_report_file(place->cert, &report, &error), &error);
    assert_int_equal(report.count, 1);
    assert_string_equal(report.fault, "");
    assert_string_equal(report.certificates[0].identity.name, "host-a");
    assert_int_equal(strlen(report.certificates[0].fingerprint), 95);
    tls_report_free(&report);
    assert_ok(tls_report_file(place->ca_file, &report, &error), &error);
    assert_true(report.certificates[0].is_ca);
    assert_string_equal(report.fault, "");
    tls_report_free(&report);
    assert_ok(tls_report_file(place->key, &report, &error), &error);
    assert_true(report.has_key);
    assert_string_equal(report.fault, "");
    tls_report_free(&report);
    assert_int_equal(chmod(place->key, 0644), 0);
    assert_ok(tls_report_file(place->key, &report, &error), &error);
    assert_non_null(strstr(report.fault, "0644"));
    tls_report_free(&report);
    tls_files_issue_for(
        place->folder, &place->ca, TLS_ROLE_VIEWER, "v", tls_files_validity(-3600, -60));
    assert_ok(tls_report_file(place->cert, &report, &error), &error);
    assert_non_null(strstr(report.fault, "expired"));
    tls_report_free(&report);
    test_write(place->cert, "nothing");
    assert_error(
        tls_report_file(place->cert, &report, &error), CADRE_INVALID_ARGUMENT, &error, "no PEM");
    tls_report_free(&report);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(names_are_read), TEST(good_files_are_read),
        TEST(missing_and_unreadable_files), TEST(a_key_that_others_can_read),
        TEST(files_that_do_not_fit), TEST(files_out_of_their_time), TEST(what_an_authority_refuses),
        TEST(reports)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
