/* SPDX-License-Identifier: Apache-2.0
 * The ledger of version 5. */
#ifndef CADRE_TESTS_UNIT_STORE_VERSION_5_H
#define CADRE_TESTS_UNIT_STORE_VERSION_5_H

/* What lies at `path`, which is ours, becomes a ledger of version 5 with all of it that version 5
 * knew. */
void version_5_make(const char *path);

#endif
