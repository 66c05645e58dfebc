/* SPDX-License-Identifier: Apache-2.0
 * `cadre __manual [PAGE]`: the manual pages of the command and of its verbs, for the build. */
#ifndef CADRE_DEPLOY_CADRE_MANUAL_H
#define CADRE_DEPLOY_CADRE_MANUAL_H

#include "coordinator/cli/cli.h"

/* Prints the names of all pages, or one of them; argv[0] is the verb itself. `verbs` ends with a
 * NULL name; `table` has the options before them. CLI_USAGE: there is no such page. */
int manual(const struct verb *verbs, const struct option_table *table, int argc, char **argv);

#endif
