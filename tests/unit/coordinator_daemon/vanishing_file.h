/* SPDX-License-Identifier: Apache-2.0
 * A file that is removed between two steps of the code under test: with this in a test's program,
 * open() is the one here. */
#ifndef CADRE_TESTS_UNIT_COORDINATOR_DAEMON_VANISHING_FILE_H
#define CADRE_TESTS_UNIT_COORDINATOR_DAEMON_VANISHING_FILE_H

/* The file is removed before it is opened for the nth time from now on, by whatever thread. The
 * path outlives that. */
void vanish_at_open(const char *path, unsigned nth);

#endif
