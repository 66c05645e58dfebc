/* SPDX-License-Identifier: Apache-2.0
 * Tells the coordinator who reads what of each distributed dataset, for people to see. */
#ifndef CADRE_RUNTIME_REPORT_SHARDS_H
#define CADRE_RUNTIME_REPORT_SHARDS_H

#include "cadre/strategy.h"

/* The chief's, in the program's thread. Of a dataset with many files some are named: those that are
 * not read yet come first. */
void report_shards(cadre_strategy *strategy);

#endif
