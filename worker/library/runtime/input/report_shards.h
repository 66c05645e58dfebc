/* SPDX-License-Identifier: Apache-2.0
 * Reports to the coordinator which worker reads what of each distributed dataset, for people. */
#ifndef CADRE_RUNTIME_REPORT_SHARDS_H
#define CADRE_RUNTIME_REPORT_SHARDS_H

#include "cadre/strategy.h"

/* Sends the chief's report, in the program's thread. Of a dataset with many files some are named:
 * those that are not read yet come first. */
void report_shards(cadre_strategy *strategy);

#endif
