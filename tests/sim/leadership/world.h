/* SPDX-License-Identifier: Apache-2.0
 * The virtual world of the leadership simulator: coordinators with clocks of
 * their own, one store, what is on its way between them, clients, and faults.
 * One seed draws everything. */
#ifndef CADRE_SIM_LEADERSHIP_WORLD_H
#define CADRE_SIM_LEADERSHIP_WORLD_H

#include <setjmp.h>
#include <stdalign.h>

#include "common/pure/prng.h"
#include "store.h"

#define NODES_MAX     4
#define CLIENTS_MAX   3
#define REQUESTS_MAX  256
#define MESSAGES_MAX  128
#define EVENTS_MAX    512
#define ENTRIES_MAX   640
#define TICKETS_MAX   24
#define READ_ENTRIES  8
#define SNAPSHOTS_MAX 32
#define CORE_BYTES    4096
#define TRACE_ROWS    4000
#define TRACE_BYTES   160

enum mutant {
    MUTANT_NONE = 0,
    MUTANT_NO_GUARD,
    MUTANT_LOOK_THEN_PUT,
    MUTANT_REVISION_ONLY,
    MUTANT_ANSWERED_BEFORE_LOG,
    MUTANT_CONFIRM_NOT_AWAITED,
    MUTANT_LEADS_FROM_OWN_COPY,
    MUTANT_UNKNOWN_SENT_AS_NEW,
    MUTANT_NO_REQUEST_ID,
    MUTANT_TIME_FROM_ANSWER,
    MUTANT_TIME_NOT_CHECKED,
    MUTANT_CLOCK_STOPS_IN_SLEEP,
    MUTANT_SUSPENDED_TIMERS_RUN,
    MUTANT_TRIMMED_AT_OWN_SNAPSHOT,
    MUTANT_GAP_APPLIED,
    MUTANT_NEWER_FORMAT_SKIPPED,
    MUTANT_TWO_IN_FLIGHT,
    MUTANT_PIECES_LEFT_OUT,
    MUTANT_COUNT
};

struct mutant_case {
    const char *name;
    const char *caught_by; /* names of invariants */
};
extern const struct mutant_case mutant_cases[MUTANT_COUNT];

enum fault_kind {
    FAULT_CRASH = 1,
    FAULT_PAUSE,
    FAULT_LATE, /* paused between the look at the time to send and the sending */
    FAULT_CUT,  /* a coordinator from etcd, one way or both */
    FAULT_NO_QUORUM,
    FAULT_NO_SPACE,
    FAULT_SLOW_COPY, /* its SQLite file is slow */
    FAULT_LEAVE,
    FAULT_ADD,
    FAULT_REMOVE,
    FAULT_BACKUP, /* then RESTORE */
    FAULT_RESTORE,
    FAULT_KINDS
};

enum event_kind {
    EVENT_START = 1, /* of a coordinator's process */
    EVENT_WAKE,
    EVENT_STAND, /* its name is its own */
    EVENT_REQUEST, /* arrives at the store */
    EVENT_PUT,     /* the second half of look-then-put */
    EVENT_ANSWER,
    EVENT_WATCH,
    EVENT_APPLIED,
    EVENT_INSTALLED,
    EVENT_LOOP,   /* the leader's loop: offers and sends */
    EVENT_RESUME, /* after a pause, the loop comes before what waited */
    EVENT_LATE,   /* it goes on behind the look */
    EVENT_REPLY,  /* of a worker, which has received `term` and `index` */
    EVENT_HELD,   /* another coordinator holds a snapshot */
    EVENT_CLIENT,
    EVENT_FAULT,
    EVENT_HEAL
};

struct event {
    uint64_t due_us;
    uint64_t serial;
    enum event_kind kind;
    uint32_t node; /* or the client, or the kind of fault */
    uint32_t incarnation;
    uint32_t message;
    uint64_t term, index;
};

struct message {
    bool used;
    bool is_read;
    uint32_t node, incarnation;
    uint32_t lineage; /* of the store that answered */
    uint64_t request;
    struct log_transaction transaction;
    struct payload payload;
    struct leadership_position after;
    uint32_t entries_max;
    uint32_t checks;
    struct leadership_answer answer;
    struct leadership_read read;
    struct log_entry entries[READ_ENTRIES];
};

struct ticket {
    enum leadership_ticket_kind kind;
    struct content content;
    uint32_t client;     /* who waits */
    uint64_t decided_at; /* serial of the event */
    bool logged;
};

struct node {
    bool exists, runs, removed, refused, resigns;
    uint32_t incarnation;
    uint32_t format_max;
    uint64_t seed;
    int64_t rate_ppm;
    uint64_t offset_us;
    uint64_t slept_us; /* by which a wrong clock is late */
    uint64_t paused_until_us;
    uint64_t slow_until_us;
    uint64_t cut_up_until_us, cut_down_until_us;
    uint64_t wake_at_us; /* real time of the newest WAKE in the queue; UINT64_MAX:
                            none */
    uint64_t wakes;      /* its number: older ones are dropped */
    bool watches;
    /* The SQLite file. */
    bool has_cluster;
    struct log_nonce cluster_id;
    uint64_t etcd_id, term_seen;
    struct leadership_position copy;
    uint64_t held;                      /* entries whose records are really in it */
    uint64_t durable;                   /* what a crash leaves of it at least */
    bool forked;                        /* it holds entries that a restored etcd does not */
    struct leadership_position fetched; /* or being applied, with so many entries: */
    uint32_t applying_count;
    const struct message *reading;             /* while its answer is handled */
    uint32_t answer_lineage, applying_lineage; /* of the newest answer; of what is applied */
    uint64_t guarded_at; /* serial of the newest event in which its guard held */
    uint64_t snapshots[SNAPSHOTS_MAX];
    uint32_t snapshot_count;
    /* The shell. */
    uint64_t kept_request;
    struct payload kept;
    uint64_t widened_until_us; /* of a mutant */
    /* The engine of a leader. */
    bool leads, suspended, pauses_late;
    uint64_t ticket_next, said_next; /* number of the next one that is offered; whose messages go */
    struct ticket tickets[TICKETS_MAX];
    uint64_t snapshot_at;
    uint64_t active_us, replied_us, counted_us; /* the clock of coordinator/core */
    alignas(max_align_t) unsigned char memory[CORE_BYTES];
    struct leadership *core;
};

struct client {
    uint64_t request; /* that waits for its answer; 0: none */
    uint64_t seen_index;
};

struct scenario {
    uint64_t lease_us, margin_us, lag_us;
    uint64_t faults_end_us, end_us;
    uint64_t delay_us; /* typical, one way */
    uint32_t long_delay_of_1000;
    uint32_t lost_of_1000;
    uint32_t late_of_1000; /* timers of a busy process */
    uint32_t nodes, clients;
    uint32_t snapshot_entries; /* 0: never */
    uint64_t loop_us;
    bool clocks_in_bound;
    bool versions;
    bool big_entries;
    bool lies; /* a restored etcd has another cluster id */
};

struct world {
    struct scenario scenario;
    struct prng prng;
    enum mutant mutant;
    uint64_t seed;
    uint64_t now_us, serial, events;
    uint64_t digest;
    struct etcd store;
    struct stored_entry entries[ENTRIES_MAX];
    struct node nodes[NODES_MAX];
    struct client clients[CLIENTS_MAX];
    struct message messages[MESSAGES_MAX];
    struct event queue[EVENTS_MAX];
    uint32_t queued;
    bool no_quorum, no_space, healed;
    /* Restoring. */
    bool restored, accepting;
    uint32_t lineage;
    bool has_backup;
    struct etcd backup;
    struct stored_entry backup_entries[ENTRIES_MAX];
    struct stored_entry old_entries[ENTRIES_MAX];
    uint64_t backup_index;
    /* What is checked. */
    uint64_t request_count;
    uint64_t request_index[REQUESTS_MAX]; /* of the entry that has it; 0: none */
    bool request_answered[REQUESTS_MAX];
    uint64_t answered_index;            /* highest that an answer showed */
    uint64_t term_sent;                 /* highest with which something was sent */
    uint64_t worker_term, worker_index; /* that the worker received */
    uint64_t leaderships, suspensions, appended, trims, installs, refusals;
    const char *broken;
    char why[240];
    jmp_buf *panic;
    bool tracing;
    char (*trace)[TRACE_BYTES];
    uint64_t trace_count;
};

/* world.c: time, the queue, messages. */
void world_break(struct world *world, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void world_trace(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void world_push(struct world *world, struct event event);
bool world_pop(struct world *world, struct event *ret_event);
uint64_t world_local_us(const struct world *world, const struct node *node);
/* The real time at which its clock shows `local_us`. */
uint64_t world_real_us(const struct world *world, const struct node *node, uint64_t local_us);
uint64_t world_delay_us(struct world *world);
uint32_t world_take_message(struct world *world);
bool world_chance(struct world *world, uint64_t of_1000);

/* node.c: a coordinator's process. */
void node_start(struct world *world, uint32_t n);
void node_resign(struct world *world, uint32_t n);
void node_stop(struct world *world, uint32_t n, bool loses_tail);
void node_event(struct world *world, uint32_t n, struct leadership_event *event);
bool node_may_send(const struct world *world, const struct node *node);

/* shell.c: requests, answers, and what else the core orders. */
void shell_carry_out(struct world *world, uint32_t n, struct leadership_actions *actions);
void shell_answer(struct world *world, struct message *message);
void shell_installed(struct world *world, uint32_t n);

/* engine.c: what a leader does, and clients. */
void engine_begin(struct world *world, uint32_t n, uint64_t index);
void engine_logged(struct world *world, uint32_t n, const struct leadership_logged *logged);
void engine_say(struct world *world, uint32_t n);
void engine_loop(struct world *world, uint32_t n);
void engine_late(struct world *world, uint32_t n);
void engine_client(struct world *world, uint32_t c);
void engine_count(struct world *world, struct node *node);

/* etcd.c: requests at the store. */
void etcd_request(struct world *world, uint32_t m);
void etcd_put(struct world *world, uint32_t m);

/* scenario.c */
void scenario_draw(struct world *world);
/* Uniform in [from, to]. */
uint64_t scenario_between(struct world *world, uint64_t from, uint64_t to);

/* fault.c */
void fault_strike(struct world *world, uint32_t kind);
void fault_heal(struct world *world);

/* check.c */
void check_copy(struct world *world, uint32_t n, uint32_t lineage);
void check_sending(struct world *world, uint32_t n, uint64_t term, bool late);
void check_transaction(struct world *world, const struct message *message);
void check_refused(struct world *world, uint32_t n, const char *text);
void check_end(struct world *world);

/* run.c */
void world_run(struct world *world, uint64_t seed);

#endif
