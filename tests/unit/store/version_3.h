/* SPDX-License-Identifier: Apache-2.0
 * The ledger of version 3. */
#ifndef CADRE_TESTS_UNIT_STORE_VERSION_3_H
#define CADRE_TESTS_UNIT_STORE_VERSION_3_H

/* A ledger of version 3 at `path` with all that the one at `newer` holds and that version 3 knew.
 */
void version_3_make(const char *path, const char *newer);

#endif
