/* SPDX-License-Identifier: Apache-2.0
 * The ledger of version 7. */
#ifndef CADRE_TESTS_UNIT_STORE_VERSION_7_H
#define CADRE_TESTS_UNIT_STORE_VERSION_7_H

/* What lies at `path`, which is ours, becomes a ledger of version 7 with all of it that version 7
 * knew. */
void version_7_make(const char *path);

#endif
