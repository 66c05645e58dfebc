/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/tls_files.h"

#include <stdio.h>
#include <sys/stat.h>

#include "common/base/clock.h"

struct tls_validity tls_files_validity(int64_t from_s, int64_t until_s)
{
    int64_t now_s = (int64_t)(clock_wall_us() / CADRE_US_PER_S);
    return (struct tls_validity){(uint64_t)(now_s + from_s), (uint64_t)(now_s + until_s)};
}

void tls_files_authority(struct tls_key_pair *ret_ca)
{
    struct cadre_error error = {0};
    struct tls_validity day = tls_files_validity(-7200, 86400);
    assert_ok(tls_authority_make(&day, ret_ca, &error), &error);
}

void tls_files_issue_for(const char *folder, const struct tls_key_pair *ca, enum tls_role role,
    const char *name, struct tls_validity validity)
{
    struct cadre_error error = {0};
    struct tls_request request = {.identity.role = role, .validity = validity};
    struct tls_key_pair pair;
    char path[TEST_PATH_BYTES];
    snprintf(request.identity.name, sizeof request.identity.name, "%s", name);
    assert_ok(tls_authority_issue(ca, &request, &pair, &error), &error);
    test_write(test_path(path, folder, "cert.pem"), pair.cert_pem);
    test_write(test_path(path, folder, "ca.pem"), ca->cert_pem);
    test_write(test_path(path, folder, "key.pem"), pair.key_pem);
    assert_int_equal(chmod(path, 0600), 0);
    tls_key_pair_free(&pair);
}

void tls_files_issue(
    const char *folder, const struct tls_key_pair *ca, enum tls_role role, const char *name)
{
    tls_files_issue_for(folder, ca, role, name, tls_files_validity(-60, 3600));
}
