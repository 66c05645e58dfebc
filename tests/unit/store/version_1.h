/* SPDX-License-Identifier: Apache-2.0
 * The ledger of version 1: its tables as it made them, and what one held after a cluster of that
 * version had worked with it. */
#ifndef CADRE_TESTS_UNIT_STORE_VERSION_1_H
#define CADRE_TESTS_UNIT_STORE_VERSION_1_H

/* Job 1 took 20 steps over an epoch of data, left a checkpoint and succeeded; job 2 failed; job 3
 * was cancelled in step 5; job 4 ran, and job 5 waited, when the coordinator was killed. */
extern const char version_1_ledger[];

/* A ledger of version 1 with these rows, and then with these changes. */
void version_1_make(const char *path, const char *rows, const char *changes);

#endif
