/* SPDX-License-Identifier: Apache-2.0
 * The command line as others see it (/proc/PID/cmdline, `ps`). */
#ifndef CADRE_CLI_PRIVATE_WORDS_H
#define CADRE_CLI_PRIVATE_WORDS_H

/* A copy of argv to go on with, NULL-terminated; in argv itself the values of --env NAME=VALUE are
 * wiped. NULL: no memory. */
char **private_words(int argc, char **argv);
void private_words_free(char **words);

#endif
