/* SPDX-License-Identifier: Apache-2.0
 * A strategy with parameter servers, for cases about variables that they hold. */
#ifndef CADRE_TESTS_CONFORMANCE_SERVERS_H
#define CADRE_TESTS_CONFORMANCE_SERVERS_H

#include "cadre/served.h"
#include "case.h"
#include "steps.h"

/* Variables are cut into so many shards. (case_servers of steps.h does the same for a case in the
 * common process.) In a process that is this case's own, which ends with it. */
cadre_strategy *process_servers(uint64_t shards);

/* Each shard's rows, a list of lists; of a variable that is on no server one list, all of them. A
 * new reference which the case releases. NULL: it has failed. */
json_t *case_shards(struct conformance_case *self, cadre_variable *variable);

#endif
