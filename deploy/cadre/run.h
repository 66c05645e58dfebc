/* SPDX-License-Identifier: Apache-2.0
 * `cadre run`: a job on this machine with a coordinator of its own, for as long as it lasts. */
#ifndef CADRE_DEPLOY_RUN_H
#define CADRE_DEPLOY_RUN_H

#include "coordinator/cli/cli.h"

/* A struct verb's function (cli.h). */
int verb_run(const struct cli *cli, int argc, char **argv);

#endif
