/* SPDX-License-Identifier: Apache-2.0
 * Several coordinators, of which one leads (coordinator/leadership, production). Each has a copy of
 * the ledger, which is a log in one store; the one that leads has a coordinator core as well, and
 * its turns are entries of the log. See README.md.
 *
 * The fields of struct sim that describe the coordinator and the jobs as it knows them are those of
 * one coordinator between replica_enters() and replica_leaves(). Else they are those of the log:
 * job->stored is the ledger as all entries make it. */
#ifndef CADRE_SIM_REPLICAS_H
#define CADRE_SIM_REPLICAS_H

#include "coordinator/engine/lagging.h"
#include "coordinator/leadership/leadership.h"
#include "restored.h"
#include "tests/sim/leadership/store.h"
#include "tests/sim/sim.h"

#define TICKETS_MAX  256
#define READ_ENTRIES 16
#define ENTRY_BYTES  200

/* The records of one entry. */
struct offered_entry {
    uint32_t replica;
    uint32_t leadership; /* incarnation of its core */
    enum leadership_ticket_kind kind;
    uint32_t first; /* in `records` */
    uint32_t count;
    uint64_t index;      /* in the log; 0: it is not there */
    uint64_t decided_at; /* number of the event */
};

/* A message on its way to the store, or its answer. */
struct request {
    bool used;
    bool is_read;
    uint32_t replica;
    uint32_t incarnation;
    uint64_t number;
    uint32_t checks;
    struct log_transaction transaction;
    struct payload payload;
    struct snapshot_file snapshot; /* that it names */
    bool to_restored;              /* it was sent after the store had been restored */
    struct leadership_position after;
    uint32_t entries_max;
    struct leadership_answer answer;
    struct leadership_read read;
    struct log_entry entries[READ_ENTRIES];
};

enum delayed_kind { DELAYED_DOWN = 1, DELAYED_REFUSE, DELAYED_ANSWER };

/* What leaves a coordinator once its ticket is in the log. */
struct delayed_send {
    enum delayed_kind kind;
    uint64_t ticket; /* 0: it waits for none */
    uint32_t link;
    struct message *message; /* DOWN; one reference */
    cadre_status code;
    const char *text;
    uint32_t job; /* ANSWER */
    uint64_t call;
};

/* What is known of a job. */
struct replica_job {
    struct job_id id;
    struct stored *stored;
    struct stored *durable;
    struct newest_messages newest;
    struct members_sent members_sent;
    uint32_t mesh;
    uint64_t begun_us;
    uint64_t away_us;
    struct job_id copy_id; /* in its copy; 0: it has no such job */
    struct lagging_of_job lagging;
    uint64_t waited; /* newest ticket with a record of it that its messages wait for */
};

/* Of a worker. */
struct replica_worker {
    uint64_t last_seen_us;
    uint64_t silent_us;
    bool drain_stored;
    uint32_t culprit_stored;
    bool copy_drain; /* in its copy */
    uint32_t copy_culprit;
    uint64_t blocked_us; /* no link to this coordinator comes up before */
};

struct replica {
    /* Its process. */
    bool runs;
    uint32_t incarnation;
    struct pause pause;
    struct machine_clock boot_clock; /* CLOCK_BOOTTIME */
    uint64_t wake_at_us;
    uint64_t wakes;
    uint64_t cut_up_us; /* until then its requests to the store are lost */
    uint64_t cut_down_us;
    uint64_t slow_us; /* until then its disk is slow */
    uint64_t full_us; /* until then it is full */
    bool lacks;       /* entries that it appended: */
    bool leaves;      /* LEAVE follows */
    bool resigns;     /* its next process resigns for the dead one, which had: */
    struct log_nonce resigned;
    bool pauses_late; /* is paused behind its next look at the time to send */
    bool sends_late;  /* and goes on with what it was about to send */
    uint64_t widened_us;
    bool lapsed; /* its time to send is over, since by its core's clock: */
    uint64_t lapsed_us;
    /* Its copy. */
    bool has_cluster;
    struct log_nonce cluster_id;
    uint64_t etcd_id;
    uint64_t term_seen;
    struct leadership_position copy;
    uint64_t held; /* entries whose records are in it */
    uint64_t copy_job_max;
    uint64_t applying_from; /* entries from here on are being applied: */
    uint32_t applying;
    struct leadership_position applying_to;
    struct its_snapshots snapshots;
    /* Its leadership. */
    void *memory;
    struct leadership *core;
    uint64_t kept_number; /* of the transaction in flight */
    struct payload kept;
    uint64_t guarded_at; /* number of the newest event in which its guard held */
    bool leads;
    uint64_t term;
    uint32_t *tickets; /* [ticket]: its entry */
    uint32_t ticket_capacity;
    uint64_t ticket_next;
    uint64_t logged;
    struct lagging lagging;
    uint64_t lagging_us;
    bool lagging_armed;
    uint64_t welcomed; /* newest ticket that a welcome waits for */
    uint64_t waited;
    struct delayed_send *delayed;
    uint32_t delayed_first;
    uint32_t delayed_count;
    uint32_t delayed_capacity;
    /* Swapped with those of struct sim. */
    struct coordinator coordinator;
    struct disk disk;
    struct replica_job *jobs;
    struct replica_worker *workers;
};

struct replicas {
    uint32_t count;
    uint32_t entered; /* SIM_NONE: none */
    uint32_t leaderships;
    struct replica replicas[SCENARIO_REPLICAS_MAX];
    struct etcd store;
    struct folder folder; /* of snapshots */
    struct backup backup;
    bool restored; /* the store is that of the backup */
    bool was_restored;
    bool accepted; /* people have accepted it: each start of a coordinator does */
    uint32_t entries_capacity;
    struct offered_entry *ledger; /* number in a content, less one */
    uint32_t ledger_count;
    uint32_t ledger_capacity;
    struct entry *records;
    uint32_t record_count;
    uint32_t record_capacity;
    struct request *requests;
    uint32_t request_count;
    uint32_t request_capacity;
    uint64_t no_quorum_us; /* until then */
    uint64_t no_space_us;
    uint64_t term_newest; /* highest in which one has taken over, in any store */
    uint64_t term_sent;   /* highest in which anything was sent */
    uint64_t led_us;      /* a leader could last send */
    uint64_t awaited;     /* ticket that the message being made waits for; 0: none */
    uint64_t sent;        /* counted */
    uint64_t terms;
};

static inline struct replica *replica_of(struct sim *sim, uint32_t r)
{
    return &sim->replicas->replicas[r];
}

/* The one that is entered. */
static inline struct replica *replica_entered(struct sim *sim)
{
    return replica_of(sim, sim->replicas->entered);
}

/* ---- context.c ---- */

/* Whose the fields of struct sim are from now on. */
void replica_enters(struct sim *sim, uint32_t r);
/* Those of the log again; none may be entered. */
void replica_leaves(struct sim *sim);
/* The job's ledger as the log has it. */
const struct stored *replicas_stored(const struct sim *sim, uint32_t job);
/* Whether the log has a drain of this worker. */
bool replicas_drained(const struct sim *sim, uint32_t agent);
/* The newest mesh of the job whose plan is in the log. */
void replicas_set_mesh(struct sim *sim, uint32_t job, uint32_t mesh);
/* What the newest leader has sent to the tasks of a ps job; NULL: there is no such leader. None may
 * be entered. */
const struct members_sent *replicas_members_sent(const struct sim *sim, uint32_t job);
/* Whether it has the highest term, and no coordinator has taken over. */
bool replica_is_newest(const struct sim *sim, uint32_t r);

/* ---- replica_process.c ---- */

/* Its process starts, as a follower. */
void replica_starts(struct sim *sim, uint32_t r);
/* It ends: `tail`: what its disk has of the copy may be lost from some entry on; it starts again
 * after `back_us`. */
void replica_stops(struct sim *sim, uint32_t r, bool tail, uint64_t back_us);

/* ---- shell.c ---- */

/* One event of its leadership. */
void replica_event(struct sim *sim, uint32_t r, struct leadership_event *event);
/* By the clock of the events. */
uint64_t replica_boot_us(const struct sim *sim, const struct replica *replica);
/* It leads, and its time to send is not over. */
bool replica_may_send(const struct sim *sim, const struct replica *replica);
/* A wake, an answer, a watch, or an end of applying. */
void replica_happens(struct sim *sim, const struct happening *happening);

/* ---- etcd.c ---- */

/* A new request of it. */
uint32_t request_new(struct sim *sim, uint32_t r, uint64_t number, bool is_read);
/* On the way to the store, or back. */
uint64_t request_delay_us(struct sim *sim);
/* It is sent; it may be lost. */
void request_send(struct sim *sim, uint32_t request);
/* It arrives at the store; `put`: the second half of look-then-put. */
void request_arrives(struct sim *sim, uint32_t request, bool put);

/* ---- ledger.c ---- */

/* Its core begins to lead in this term: it is restored from the copy. */
void replica_leads(struct sim *sim, uint32_t r, uint64_t term);
/* These entries of the log are in its copy. */
void replica_copies(struct sim *sim, uint32_t r, uint64_t from, uint32_t count);
/* The copy is that of the entries up to this one. */
void replica_rewinds(struct sim *sim, uint32_t r, uint64_t index);
/* The log ends with this entry: it is that of a store that was restored, and accepted. */
void ledger_rewinds(struct sim *sim, uint64_t index);
/* Whether no job was submitted or has ended behind this entry, nor a worker drained. */
bool ledger_may_rewind(struct sim *sim, uint64_t index);
/* An append was applied in the store. */
void ledger_appended(struct sim *sim, const struct request *request);

/* ---- turn.c ---- */

/* The entered coordinator's turn is over: it is offered to the log, and what may be sent is. */
void replica_turn_ends(struct sim *sim);
/* It does not know whether it leads: its turn is held. */
void replica_suspends(struct sim *sim, uint32_t r);
/* The ticket that the action waits for; 0: none. */
uint64_t replica_awaits(struct sim *sim, const struct core_action *action);

/* ---- delayed.c ---- */

/* All tickets up to this one are in the log. */
void replica_logged(struct sim *sim, uint32_t r, uint64_t ticket);
/* Sends what waits for nothing any more. */
void replica_sends_logged(struct sim *sim, uint32_t r);
/* Sends, or keeps until the ticket of the message being made is in the log. Takes over no
 * reference. */
void replica_sends_down(struct sim *sim, uint32_t link, struct message *message);
void replica_sends_refused(struct sim *sim, uint32_t link, cadre_status code, const char *text);
void replica_sends_answer(struct sim *sim, uint32_t job, uint64_t call, cadre_status code);
/* Frees what it keeps of its leadership. */
void replica_forgets(struct sim *sim, struct replica *replica);

/* ---- replicas.c ---- */

/* Before a run, after store_open. */
void replicas_open(struct sim *sim);
void replicas_close(struct sim *sim);
/* Frees all of it. */
void replicas_free(struct sim *sim);
/* Handles it, or enters whose event it is. false: nothing more is to be done with it. */
bool replicas_take(struct sim *sim, const struct happening *happening);
/* After a run: the fields of struct sim are those of the one that leads. */
void replicas_end(struct sim *sim);
/* Whether nothing is left to do. */
bool replicas_settled(struct sim *sim);
/* The pause of the process that the event is for; NULL: it is not one of theirs. */
const struct pause *replicas_pause_of(const struct sim *sim, const struct happening *happening);

/* ---- chosen.c ---- */

/* Enters the one that leads, if it may send; false: there is none. */
bool replicas_enter_leader(struct sim *sim);
/* The coordinator that a daemon connects to; SIM_NONE: it has found none that leads. */
uint32_t replicas_choose(struct sim *sim, uint32_t agent);
/* A daemon that receives nothing asks who leads. */
void replicas_asked(struct sim *sim, uint32_t agent);
/* As coordinator/daemon: false: the link is refused, or is not of its present leadership. */
bool replica_may_serve(struct sim *sim, uint32_t link, const struct agent_up *up);

/* ---- fault_replicas.c ---- */

/* false: it is no fault of theirs. */
bool replicas_fault(struct sim *sim, enum fault_kind kind, uint32_t which);

/* ---- check_replicas.c ---- */

/* ONE_LINE: its copy is a prefix of the log. */
void check_copy(struct sim *sim, uint32_t r);
/* ONE_LINE: a copy of the whole log has what the log has. */
void check_leads(struct sim *sim, uint32_t r);
/* GIVEN_UP, when the entered one decides something. */
void check_gives_up(struct sim *sim, const struct core_action *action);
/* SAID, BOTH, when a sent leaves. */
void check_said(struct sim *sim, uint32_t r, const struct delayed_send *sent);
/* KEEP, when a daemon gets a message. */
void check_kept(struct sim *sim, uint32_t agent, const struct message *message);
/* TERM_DOWN, when a task gets one. */
void check_term(struct sim *sim, uint32_t process, const struct message *message);
/* What is left at the end: PROGRESS. */
void check_replicas_end(struct sim *sim);

#endif
