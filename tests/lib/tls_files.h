/* SPDX-License-Identifier: Apache-2.0
 * A certificate authority in memory, and folders with certificates of it. */
#ifndef CADRE_TESTS_LIB_TLS_FILES_H
#define CADRE_TESTS_LIB_TLS_FILES_H

#include "common/tls/authority.h"
#include "tests/lib/test.h"

/* A new authority, valid for a day; tls_key_pair_free() is the caller's. */
void tls_files_authority(struct tls_key_pair *ret_ca);

/* Valid from so many seconds before now to so many after. */
struct tls_validity tls_files_validity(int64_t from_s, int64_t until_s);

/* Writes cert.pem, key.pem and ca.pem of `role`/`name` into `folder`, valid for an hour. */
void tls_files_issue(
    const char *folder, const struct tls_key_pair *ca, enum tls_role role, const char *name);
void tls_files_issue_for(const char *folder, const struct tls_key_pair *ca, enum tls_role role,
    const char *name, struct tls_validity validity);

#endif
