/* SPDX-License-Identifier: Apache-2.0
 * Workers that exist only as streams to a coordinator: one slot each, and a task of which there are
 * only the answers. */
#ifndef CADRE_BENCH_FAKE_AGENT_H
#define CADRE_BENCH_FAKE_AGENT_H

#include "common/rpc/channel.h"
#include "common/wire/wire.h"

struct fleet;

/* What the fleet calls its owner for. */
struct fleet_ops {
    void (*welcomed)(void *user);     /* all have joined */
    void (*planned)(void *user);      /* all tasks know the generation */
    void (*acknowledged)(void *user); /* one of fleet_arrive's */
    void (*released)(void *user);     /* one release came */
};

/* Streams end without a message, from worker `first` on. The rest of the job regroups: `planned` is
 * called again when all of the others have the new generation. */
void fleet_vanish(struct fleet *fleet, uint32_t first);

/* The process is done: ends of streams are no failures any more. */
void fleet_done(struct fleet *fleet);

/* Joins `count` workers over as many connections as they need; ends the process when a stream ends.
 */
struct fleet *fleet_open(struct rpc_loop *loop, const char *address, uint32_t count,
    const struct fleet_ops *ops, void *user);

/* As real workers: each has a connection of its own, joins again when its stream ends (then
 * `welcomed` is called again once all are back), and with `certificates`, a folder of folders w0,
 * w1, ... as `cadre pki issue` makes them, uses TLS. */
struct fleet *fleet_open_each(struct rpc_loop *loop, const char *address, uint32_t count,
    const char *certificates, const struct fleet_ops *ops, void *user);

/* From here on the end of a stream ends the process. */
void fleet_stay(struct fleet *fleet);

/* Streams that were opened since the last call of this. */
uint32_t fleet_attempts(struct fleet *fleet);

/* Heartbeats of all workers that are connected. */
void fleet_beat(struct fleet *fleet);

/* The task of worker `index` arrives for position `up_to`. With `acknowledge` the coordinator
 * answers once it has handled it. */
void fleet_arrive(struct fleet *fleet, uint32_t index, uint64_t up_to, bool acknowledge);

#endif
