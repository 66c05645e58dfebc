/* SPDX-License-Identifier: Apache-2.0
 * `cadre __complete -- WORD...`: what the scripts of deploy/completion ask. */
#ifndef CADRE_DEPLOY_CADRE_COMPLETE_H
#define CADRE_DEPLOY_CADRE_COMPLETE_H

#include "coordinator/cli/cli.h"

/* Answers on standard output; argv[0] is the verb itself. `verbs` ends with a NULL name; `table`
 * has the options before them. Always CLI_DONE: a shell that completes shows no error. */
int complete(const struct verb *verbs, const struct option_table *table, int argc, char **argv);

/* What the verb takes. */
struct verb_shape verb_shape_of(const struct verb *verb);

#endif
