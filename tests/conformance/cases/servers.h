/* SPDX-License-Identifier: Apache-2.0
 * A strategy with parameter servers, for cases about variables that they hold. */
#ifndef CADRE_TESTS_CONFORMANCE_SERVERS_H
#define CADRE_TESTS_CONFORMANCE_SERVERS_H

#include "cadre/parameter.h"
#include "case.h"

/* One whose parameters are cut into so many shards; until the end of the
 * case. NULL: the case has failed. */
cadre_strategy *case_servers_of(struct conformance_case *self, uint64_t shards);

/* The same in a process that is this case's own, which ends with it. */
cadre_strategy *process_servers(uint64_t shards);

/* Each shard's rows, a list of lists; a new reference which the case releases. NULL: it has failed.
 */
json_t *case_shards(struct conformance_case *self, cadre_parameter *parameter);

#endif
