/* SPDX-License-Identifier: Apache-2.0
 * A leadership core on a stage: a store that the test fills and answers from, short functions that
 * feed one event each, and a transcript of what the core does. After every step its invariants are
 * checked. The lease is 6 s, so a beat is due after 1 s and another attempt after 1.5 s. */
#ifndef CADRE_TESTS_LEADERSHIP_FIXTURE_H
#define CADRE_TESTS_LEADERSHIP_FIXTURE_H

#include "coordinator/leadership/leadership.h"
#include "tests/lib/test.h"

#define LEASE_US    6000000
#define FIXTURE_LOG 300
#define TICKETS     200

struct fixture {
    struct leadership_options options;
    _Alignas(max_align_t) unsigned char memory[16384];
    struct leadership *core;
    uint64_t now_us;
    /* The store: entry i at log[i]; its hash has the byte i at front. */
    bool has_cluster;
    uint64_t etcd_id, revision;
    struct log_cluster cluster;
    struct log_leader leader;
    struct log_head head;
    struct log_entry log[FIXTURE_LOG];
    /* The newest of each that the core asked for. */
    uint64_t read_request;
    struct leadership_position read_after;
    uint32_t read_entries;
    uint64_t request;
    struct log_transaction transaction;
    struct leadership_position applying;
    const char *text;
    char transcript[8192];
};

/* The hash of entry `index`; 0: of the cluster. */
struct log_hash hash_at(uint64_t index);
/* A store with a cluster whose leader, of term 1, is another; its log ends at `entries`. */
void fixture_begin(struct fixture *fixture, uint64_t entries);
/* Starts the core with the options. */
void fixture_start(struct fixture *fixture);
/* This coordinator leads in term 2 of a log whose newest entry is its TERM, number 4. */
void fixture_lead(struct fixture *fixture);

void step(struct fixture *fixture, struct leadership_event *event);
/* Time passes; TICK. */
void pass(struct fixture *fixture, uint64_t us);
/* Answers the newest read. */
void answer_read(struct fixture *fixture);
/* The newest read and what it leads to, up to the end of the log. */
void follow(struct fixture *fixture);
/* The store applies the newest transaction; without and with the answer. */
void apply(struct fixture *fixture);
void answer(struct fixture *fixture);
/* The else-branch: what the store has. */
void answer_refused(struct fixture *fixture);
void unanswered(struct fixture *fixture, uint64_t request, bool no_space);
void applied(struct fixture *fixture);
void offer(
    struct fixture *fixture, uint64_t ticket, enum leadership_ticket_kind kind, uint32_t bytes);
/* Another coordinator writes the head: a beat. */
void other_beats(struct fixture *fixture);

/* The transcript since the last call. */
void expect(struct fixture *fixture, const char *transcript);
enum leadership_state state_of(const struct fixture *fixture);

#endif
