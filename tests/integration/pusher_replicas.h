/* SPDX-License-Identifier: Apache-2.0
 * What a closure of the pusher does on the replicas of its worker. */
#ifndef CADRE_TESTS_INTEGRATION_PUSHER_REPLICAS_H
#define CADRE_TESTS_INTEGRATION_PUSHER_REPLICAS_H

#include <cadre/cadre.h>

/* Takes so long at least. */
void pusher_work(int64_t us);

/* A step of the worker's replicas, who are several: their sums are right, each works half as long,
 * and together they add 1 to the variable "together". */
cadre_status pusher_meet(int64_t work_us);

#endif
