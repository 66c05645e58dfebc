/* SPDX-License-Identifier: Apache-2.0
 * A small world of which all interleavings are explored: two or three
 * coordinators with the production core, one store, one request of a client.
 * Everything is held by value, so that a world is copied by assignment. */
#ifndef CADRE_SIM_LEADERSHIP_EXPLORE_WORLD_H
#define CADRE_SIM_LEADERSHIP_EXPLORE_WORLD_H

#include <stdalign.h>

#include "coordinator/leadership/state.h"
#include "store.h"

#define SMALL_NODES   3
#define SMALL_ENTRIES 12
#define SMALL_TICKETS 2
#define SMALL_READ    4
#define SMALL_BYTES   1728
#define LABEL_BYTES   32

struct small_space {
    const char *name;
    bool timed; /* clocks count, and BOTH is asserted; else each timer fires at
                   any time */
    uint32_t nodes, terms, submissions, crashes;
    enum small_mutant {
        SMALL_NONE = 0,
        SMALL_NO_GUARD,
        SMALL_SENT_AS_NEW,
        SMALL_NO_REQUEST_ID,
        SMALL_ANSWERED_BEFORE_LOG,
        SMALL_LEADS_FROM_OWN_COPY,
        SMALL_TIME_FROM_ANSWER,
        SMALL_SLOW_CLOCK
    } mutant;
    const char *caught_by; /* of a mutant */
};

/* A transaction on its way to the store. */
struct small_request {
    bool used;
    bool current; /* of the process that runs */
    uint64_t request;
    struct log_transaction transaction;
    bool has_entry; /* of an append, which has one */
    struct content content;
};

struct small_node {
    uint32_t incarnation;
    struct leadership_position copy;
    bool has_cluster, applying;
    struct leadership_position applying_to;
    struct small_request up[2]; /* of this process; of one that died */
    bool has_answer;
    struct leadership_answer answer;
    uint64_t read_request; /* the newest read; its entries: */
    struct leadership_position read_after;
    uint32_t read_entries;
    /* The engine. */
    bool leads, submitted, logged;
    uint64_t ticket;
    uint64_t widened_until_us;
    alignas(max_align_t) unsigned char memory[SMALL_BYTES];
};

struct small_world {
    const struct small_space *space;
    struct etcd store;
    struct stored_entry entries[SMALL_ENTRIES];
    struct small_node nodes[SMALL_NODES];
    uint64_t time_us;
    uint32_t submissions, crashes, nonces;
    bool answered;          /* the client has its answer */
    uint64_t request_index; /* of the entry with its request; 0: none */
    bool pruned;            /* beyond the bounds of the space: not followed */
    const char *broken;
    const char *why;
    char label[LABEL_BYTES];
};

#define LEASE_US 6000
#define BASE_US  1000000000
#define FAR_US   UINT64_C(1000000000000000)

/* explore_world.c */
void small_break(struct small_world *world, const char *invariant, const char *why);
/* One event for a coordinator's core, and its actions. */
void small_step(struct small_world *world, uint32_t n, struct leadership_event *event);
/* Starts its process, with what its SQLite file holds. */
void small_start(struct small_world *world, uint32_t n);
void small_check_copy(struct small_world *world, const struct small_node *node);
void small_answer_client(struct small_world *world);
/* The first state of the space. */
void small_begin(struct small_world *world, const struct small_space *space);
/* explore_choices.c */
/* Whether choice number `choice` is possible. */
bool small_may(const struct small_world *world, uint32_t choice);
/* Takes a choice that is possible. */
void small_take(struct small_world *world, uint32_t choice);
/* Choices are numbered below this. */
uint32_t small_choices(const struct small_space *space);
/* What the clock of a coordinator shows now. */
uint64_t small_local_us(const struct small_world *world, uint32_t n);
/* Equal for states that behave alike. */
uint64_t small_fingerprint(struct small_world *world);

static inline struct leadership *small_core(struct small_node *node)
{
    return (struct leadership *)(void *)node->memory;
}

static inline const struct leadership *small_const_core(const struct small_node *node)
{
    return (const struct leadership *)(const void *)node->memory;
}

#endif
