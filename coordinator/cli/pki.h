/* SPDX-License-Identifier: Apache-2.0
 * The verbs of `cadre pki`. */
#ifndef CADRE_CLI_PKI_H
#define CADRE_CLI_PKI_H

#include "coordinator/cli/cli.h"

/* `cadre pki show`: prints what PEM files are. */
int pki_show(const struct cli *cli, int argc, char **argv);

#endif
