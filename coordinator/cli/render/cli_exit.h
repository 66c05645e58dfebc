/* SPDX-License-Identifier: Apache-2.0
 * What the verbs of the `cadre` command exit with. */
#ifndef CADRE_CLI_RENDER_CLI_EXIT_H
#define CADRE_CLI_RENDER_CLI_EXIT_H

/* `submit` and `run` exit with the job's own code instead, once there is a job; `verify` says with
 * 3 also that nothing could be proved, and has a 4: exit_codes.c has the sentences. */
enum cli_exit {
    CLI_DONE = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_NO_COORDINATOR = 3,
    CLI_INTERRUPTED = 130
};

#endif
