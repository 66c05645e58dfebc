/* SPDX-License-Identifier: Apache-2.0
 * One coordinator that leads, in virtual time: the production's engine, entries, leadership,
 * transactions of etcd and store, and an etcd that applies each transaction after a fixed time. */
#ifndef CADRE_SIM_LEDGER_LEADER_H
#define CADRE_SIM_LEDGER_LEADER_H

#include "common/wire/wire.h"
#include "coordinator/engine/engine.h"
#include "coordinator/entries/entry_batch.h"
#include "coordinator/replication/build.h"

#define SECOND_US UINT64_C(1000000)

struct leader_counts {
    uint64_t transactions; /* guarded ones, those without entries among them */
    uint64_t entries;
    uint64_t entry_bytes; /* of their records */
    uint64_t bytes;       /* of the requests to etcd */
    uint64_t stored;      /* bytes of keys and values that they write */
    uint64_t largest;     /* bytes of one entry */
    double apply_s;       /* CPU: into the store */
};

struct scale_leader {
    uint64_t now_us;
    struct engine *engine; /* NULL: none is open */
    struct engine_log of_engine;
    struct store *store; /* the engine's, once that is open */
    struct store_position at;
    struct leader_counts counts;
    /* The shell of the leadership core. */
    struct leadership *core;
    struct leadership_actions actions;
    struct tickets tickets;
    struct wire_buffer packed;
    struct wire_arena *arena, *scratch;
    struct built built;
    struct entry_batch batch;
    uint64_t term;   /* 0: it does not lead yet */
    uint64_t logged; /* newest ticket that is in the log */
    uint64_t before; /* tickets of the engine before this one */
    /* What is in etcd, and on the way. */
    struct log_cluster cluster;
    struct log_leader leader;
    struct log_head head;
    uint64_t revision;
    struct leadership_answer answer;
    uint64_t answer_us, read_us; /* when; UINT64_MAX: none is asked for */
    uint64_t read;               /* number of the read */
};

/* CPU time of this thread. */
double leader_cpu_s(void);
/* Leads, with the store in this file. */
void leader_open(struct scale_leader *log, const char *path);
void leader_close(struct scale_leader *log);
/* An engine on the store. It takes over the store; engine_close() gives back nothing. */
void leader_begin_engine(
    struct scale_leader *log, const struct core_limits *limits, const struct engine_sink *sink);
/* The end of a turn. */
void leader_flush(struct scale_leader *log);
/* Time passes. */
void leader_advance(struct scale_leader *log, uint64_t by_us);

#endif
