/* SPDX-License-Identifier: Apache-2.0
 * Hides the values of --env in the command line that /proc/PID/cmdline and `ps` show. */
#ifndef CADRE_CLI_ARGV_SCRUB_H
#define CADRE_CLI_ARGV_SCRUB_H

/* A copy of argv to go on with, NULL-terminated; in argv itself the values of --env NAME=VALUE are
 * wiped. NULL: no memory. */
char **argv_scrub(int argc, char **argv);
/* Frees the copy; NULL is allowed. */
void argv_scrub_free(char **argv_copy);

#endif
