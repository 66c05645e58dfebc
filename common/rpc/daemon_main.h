/* SPDX-License-Identifier: Apache-2.0
 * The common part of every daemon's main(): options from the one table, --help and its like,
 * logs, the settings of a process that serves. */
#ifndef CADRE_RPC_DAEMON_MAIN_H
#define CADRE_RPC_DAEMON_MAIN_H

#include "common/base/log.h"
#include "common/base/options.h"

/* Runs `run(user)` with `values` filled from the table and the log opened as `log` (a part of
 * `values`) specifies; returns main's exit status: 2 for wrong options (reported on standard
 * error), 0 for an answered --help, else what `run` returned. The values are freed in any case.
 * gRPC's own lines are logged as debug, because what matters of them comes back as the status of
 * a call. */
int daemon_main(const struct option_table *table, int argc, char **argv, void *values,
    const struct log_options *log, int (*run)(void *user), void *user);

#endif
