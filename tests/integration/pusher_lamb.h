/* SPDX-License-Identifier: Apache-2.0
 * A variable of the pusher that is cut into shards and updated by LAMB, so that each update halves
 * it, exactly: its direction is half of the variable, whatever the shards have had of others. */
#ifndef CADRE_TESTS_INTEGRATION_PUSHER_LAMB_H
#define CADRE_TESTS_INTEGRATION_PUSHER_LAMB_H

#include <cadre/cadre.h>

/* For up to 800 updates: their squares are numbers, too. */
void pusher_create_halved(cadre_strategy *strategy);
/* In a closure: one update, or its part of one. */
cadre_status pusher_halve(const cadre_push_options *options);
/* Before a step is taken again. */
void pusher_begin_halving(uint64_t step);
/* How many elements are not what so many updates make of them. */
int64_t pusher_wrong_halves(int64_t updates);

#endif
