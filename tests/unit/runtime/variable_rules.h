/* SPDX-License-Identifier: Apache-2.0
 * The rules of variables as one table: every kind, aggregation, context and way to assign, each on
 * a variable of its own, with what the components and the cross-replica read are to be. It does not
 * matter how many tasks and replicas do it. */
#ifndef CADRE_TESTS_RUNTIME_VARIABLE_RULES_H
#define CADRE_TESTS_RUNTIME_VARIABLE_RULES_H

#include "cadre/cadre.h"

/* Goes through the whole table, before the first step and after it. cadre_fail names the row that
 * is not as it should be. `refusals`: rows too that must be refused (by hand such a step does no
 * harm). */
cadre_status variable_rules(cadre_strategy *strategy, bool refusals);

#endif
