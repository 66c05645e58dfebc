/* SPDX-License-Identifier: Apache-2.0
 * The ledger of version 6. */
#ifndef CADRE_TESTS_UNIT_STORE_VERSION_6_H
#define CADRE_TESTS_UNIT_STORE_VERSION_6_H

/* What lies at `path`, which is ours, becomes a ledger of version 6 with all of it that version 6
 * knew. */
void version_6_make(const char *path);

#endif
