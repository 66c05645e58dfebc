/* SPDX-License-Identifier: Apache-2.0
 * The `cadre` command as a process, where no coordinator is. */
#ifndef CADRE_TESTS_UNIT_CLI_COMMAND_H
#define CADRE_TESTS_UNIT_CLI_COMMAND_H

#include "tests/lib/program.h"
#include "tests/lib/test.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

extern char command_nowhere[256]; /* "CADRE_COORDINATOR=unix:..." where no process listens */

/* Of a group of tests that uses the functions below. */
int command_set_up(void **state);

/* Runs it with these words, on a terminal of 80 columns. */
void command_run(const char *const *words, struct program_result *ret_result);

/* Fails unless it ends with `exit_code`, with these texts in what it prints. */
void assert_run(const char *const *words, int exit_code, const char *in_out, const char *in_err);

#endif
