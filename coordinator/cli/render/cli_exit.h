/* SPDX-License-Identifier: Apache-2.0
 * What the verbs of the `cadre` command exit with. */
#ifndef CADRE_CLI_RENDER_CLI_EXIT_H
#define CADRE_CLI_RENDER_CLI_EXIT_H

/* `submit` and `run` exit with the job's own code instead, once there is a job; with `verify` 3 is
 * also that nothing could be proved, and there is a 4: see exit_codes.c. */
enum cli_exit {
    CLI_DONE = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_NO_COORDINATOR = 3,
    CLI_INTERRUPTED = 130
};

#endif
