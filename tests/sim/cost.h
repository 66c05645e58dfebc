/* SPDX-License-Identifier: Apache-2.0
 * What a run costs the coordinator, by what it is for: messages and their bytes as the production
 * encodes them, and the CPU time of its core, of making and of encoding them. Without the network,
 * TLS and the ledger. */
#ifndef CADRE_SIM_COST_H
#define CADRE_SIM_COST_H

#include "common/wire/wire.h"
#include "coordinator/engine/messages.h"

enum cost_kind {
    COST_JOIN,       /* workers, starts, hellos of tasks, joiners */
    COST_PLAN,       /* generations: plans, aborts, reports */
    COST_STEP,       /* arrivals and releases */
    COST_CHECKPOINT, /* asked for by a client, written, published */
    COST_DRAIN,      /* asked for by a client */
    COST_END,        /* tasks that end, and byes */
    COST_OTHER,      /* heartbeats, datasets, time */
    COST_KINDS
};

struct cost_row {
    uint64_t up, down; /* messages */
    uint64_t up_bytes, down_bytes;
    uint64_t largest; /* bytes of one */
    double seconds;
};

struct cost {
    struct cost_row rows[COST_KINDS];
    struct wire_buffer buffer;
    struct wire_arena *arena;
    struct roster_entry *roster; /* of the plan that is encoded: with addresses */
};

/* For a run of sim --scale; its run may be repeated. */
void cost_open(struct cost *cost);
void cost_close(struct cost *cost);
/* A line for each kind. */
void cost_print(const struct cost *cost, uint32_t tasks);

/* CPU time of this thread. */
double cost_now(void);
/* What an event of the core is for. */
enum cost_kind cost_of_event(const struct core_event *event);
/* The core took so long with it. A message of a daemon is encoded, and its decoding timed. */
void cost_event(struct cost *cost, const struct core_event *event, double seconds);
/* The action's messages, made, encoded and dropped. */
void cost_action(struct cost *cost, const struct sender *sender, const struct core_action *action);

#endif
