/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: a loop that others poll. gRPC's queue has no descriptor, and its sockets
 * are only looked at while somebody waits in it; so a thread waits there, and hands over what comes
 * through a list with a descriptor. Handlers still run on the loop's own thread. */
#ifndef CADRE_RPC_PUMP_H
#define CADRE_RPC_PUMP_H

#include "common/base/error.h"

#include <stdbool.h>

#include <grpc/grpc.h>

struct rpc_pump;

/* From here on rpc_pump_next() takes the place of grpc_completion_queue_next(). */
cadre_status rpc_pump_open(
    grpc_completion_queue *queue, struct rpc_pump **ret_pump, struct cadre_error *error);

/* After GRPC_QUEUE_SHUTDOWN came out of it. */
void rpc_pump_close(struct rpc_pump *pump);

/* As grpc_completion_queue_next(). */
grpc_event rpc_pump_next(struct rpc_pump *pump, gpr_timespec until);

/* Readable from the first event, or rpc_pump_ring(), to rpc_pump_rest() with nothing left. */
int rpc_pump_fd(const struct rpc_pump *pump);
void rpc_pump_ring(struct rpc_pump *pump);

/* False: something is left, and it stays readable. */
bool rpc_pump_rest(struct rpc_pump *pump);

#endif
