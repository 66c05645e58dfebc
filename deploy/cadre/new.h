/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CADRE_DEPLOY_CADRE_NEW_H
#define CADRE_DEPLOY_CADRE_NEW_H

#include "coordinator/cli/cli.h"

/* `cadre new`: writes a folder with a program to begin with. Contacts no coordinator. */
int verb_new(const struct cli *cli, int argc, char **argv);

#endif
