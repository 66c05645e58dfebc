/* SPDX-License-Identifier: Apache-2.0
 * Internal to leadership: its state, and the functions that its files share.
 * Files call downwards in this order: step, elect, lead and follow, queue,
 * check, request, finish. */
#ifndef CADRE_COORDINATOR_LEADERSHIP_STATE_H
#define CADRE_COORDINATOR_LEADERSHIP_STATE_H

#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "coordinator/leadership/leadership.h"

#define NEVER UINT64_MAX

/* Part of lease_us: */
#define BEAT_PART     6  /* between guarded transactions; between reads of a follower */
#define DEADLINE_PART 4  /* an attempt without an answer is repeated */
#define PAUSE_PART    20 /* shortest time between two attempts */
#define JITTER_PART   10 /* of candidates: at most */
#define BEHIND_PART   2  /* a candidate so many entries behind waits longer: */
#define BEHIND_MANY   1000

/* Of leaderships that workers have seen and a restored store has lost, there are fewer. */
#define RESTORED_TERMS 1000

struct queued_ticket {
    enum leadership_ticket_kind kind;
    uint32_t bytes;
    uint32_t format;
    uint64_t offered_us;
};

/* The one read in flight. */
struct read_slot {
    bool in_flight;
    bool again; /* `head` changed since it was sent */
    bool with_entries;
    uint64_t request;
    uint64_t sent_us;
    uint64_t due_us; /* in flight: it is repeated; else: the next one is sent */
};

/* The one transaction in flight (HA7b). */
struct guarded_slot {
    bool in_flight;
    bool no_space;
    uint64_t request;
    uint32_t attempt;
    uint64_t first_sent_us; /* of the newest one, also after its answer */
    uint64_t sent_us;
    uint64_t again_us;
    struct log_transaction transaction;
};

struct leadership {
    struct leadership_options options; /* cluster and term_seen change with what is read */
    uint64_t term_above;               /* own terms are above it, whatever the store has */
    struct prng prng;
    enum leadership_state state;
    uint64_t now_us;
    uint64_t requests; /* so many were sent */
    char text[LIMIT_TEXT_BYTES];

    bool has_store;
    struct log_leader leader; /* as read or written last */
    struct log_head head;
    uint64_t head_read_us; /* of a follower: when the read that showed it was sent */
    uint64_t take_over_us; /* when the head was unchanged for long enough (HA2) */
    bool takes_over_now;   /* the leader has left */

    struct leadership_position applied;
    bool applying;
    struct leadership_position applying_to;
    bool no_room;            /* for the next entries in the SQLite file */
    uint64_t apply_again_us; /* then they are read again */
    bool fetching;           /* a snapshot */
    uint64_t fetch_us;       /* not fetching, and one is needed: when it is asked for */

    struct read_slot read;
    struct guarded_slot guarded;

    /* From TAKE_OVER on. */
    uint64_t term;
    struct log_nonce nonce;
    uint64_t takeovers; /* sent by this process: each has its own nonce */
    uint64_t may_send_until_us;
    bool doubted; /* a hello was ahead of this leader */
    bool leaving;
    uint64_t leave_until_us;
    struct log_nonce resign_nonce;

    bool snapshot_due, trim_due;
    struct leadership_snapshot snapshot;

    /* Tickets that are not logged, in a ring. */
    uint64_t queue_first; /* number of the oldest */
    uint32_t queue_count;
    uint32_t urgent;        /* of them are not LAGGING */
    uint32_t piece_written; /* pieces of the first entry of the queue that are in
                               the store */
    struct queued_ticket queue[];
};

/* finish.c */
/* Appends an action; the rest of it is zero. Valid until the next append. */
struct leadership_action *leadership_append(
    struct leadership_actions *out, enum leadership_action_type type);
/* Ends in STEPPING_DOWN, with this reason. Nothing follows. */
void leadership_step_down(
    struct leadership *leadership, const char *reason, struct leadership_actions *out);
/* Ends in REFUSED, with the sentence in `text`. Nothing follows. */
void leadership_refuse(struct leadership *leadership, struct leadership_actions *out);
/* Whether the state is one of the two final ones. */
bool leadership_has_ended(const struct leadership *leadership);

/* request.c */
/* Sends the transaction as a new request. None is in flight. */
void request_transact(struct leadership *leadership, const struct log_transaction *transaction,
    struct leadership_actions *out);
/* Sends the transaction in flight again, once its answer is overdue (HA7b). */
void request_transact_again(struct leadership *leadership, struct leadership_actions *out);
/* Sends a read. An older one is void. */
void request_read(struct leadership *leadership, bool with_entries, struct leadership_actions *out);
/* UNANSWERED of either. */
void request_unanswered(struct leadership *leadership, uint64_t request, bool no_space);
/* Whether an answer is that of the transaction in flight, which is then no
 * longer in flight. */
bool request_take_answer(struct leadership *leadership, const struct leadership_answer *answer);
/* Whether the transaction was applied, by this or an earlier attempt; then with
 * the head that it wrote, else with the one that was found. */
bool request_was_applied(const struct leadership *leadership,
    const struct leadership_answer *answer, struct log_head *ret_head);

/* queue.c */
/* OFFER. */
void queue_offer(struct leadership *leadership, const struct leadership_ticket *ticket);
/* When the next transaction of the queue is due: 0 now, NEVER. */
uint64_t queue_due_us(const struct leadership *leadership);
/* Fills in the kind and the content of the transaction that carries the oldest
 * tickets; its `head` is that of now, and is advanced. The queue is not empty.
 */
void queue_fill(const struct leadership *leadership, struct log_transaction *transaction);
/* The transaction was applied: removes its tickets. */
void queue_logged(struct leadership *leadership, const struct log_transaction *transaction,
    struct leadership_actions *out);

/* check.c: what is read must fit what is known (HA19, HA20, HA24). False: it
 * was refused. */
bool check_store(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out);
/* Whether there is no cluster, neither in the store nor here nor of these contents. */
bool check_may_create(const struct leadership *leadership, const struct leadership_read *read);
/* How many of the entries may be applied: the first ones, up to one that is
 * refused. */
uint32_t check_entries(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out);

/* Refuses what a leader in doubt has found: etcd was put back (HA12). */
void check_restored(struct leadership *leadership, struct leadership_actions *out);

/* lead.c */
/* TAKE_OVER was applied: from now on this is the head. */
void lead_begin(struct leadership *leadership, const struct log_transaction *transaction,
    const struct log_head *head);
/* What a leader sends next, if nothing is in flight. */
void lead_send(struct leadership *leadership, struct leadership_actions *out);
/* The answer of a guarded transaction. */
void lead_answered(struct leadership *leadership, const struct leadership_answer *answer,
    struct leadership_actions *out);
/* LEADING to SUSPENDED and back, by the time. */
void lead_suspend_or_resume(struct leadership *leadership, struct leadership_actions *out);
/* HELLO_AHEAD. */
void lead_doubt(
    struct leadership *leadership, uint64_t term, uint64_t index, struct leadership_actions *out);
/* The read of a leader in doubt: it was replaced, or etcd was put back (HA12).
 */
void lead_doubt_answered(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out);
/* LEAVE of one that has taken over. */
void lead_leave(struct leadership *leadership);
/* SNAPSHOT_HELD. */
void lead_snapshot(struct leadership *leadership, const struct leadership_snapshot *snapshot);
/* When lead_send would send something. */
uint64_t lead_wake_us(const struct leadership *leadership);

/* follow.c */
/* Cluster, leader, head and entries were read. */
void follow_read(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out);
/* Leader and head as found: their change begins the wait for a takeover again.
 */
void follow_head(
    struct leadership *leadership, const struct log_leader *leader, const struct log_head *head);
/* APPLIED. */
void follow_applied(struct leadership *leadership, const struct leadership_position *position);
/* NO_ROOM. */
void follow_no_room(struct leadership *leadership, const struct leadership_position *position);
/* SNAPSHOT_INSTALLED. */
void follow_installed(struct leadership *leadership, const struct leadership_position *position);
/* Reads and fetches that are due. */
void follow_send(struct leadership *leadership, struct leadership_actions *out);
/* When follow_send would send something. */
uint64_t follow_wake_us(const struct leadership *leadership);
/* Whether the entry after the applied one is trimmed. */
bool follow_lacks_snapshot(const struct leadership *leadership);

/* elect.c */
/* CREATE: the store has no cluster, and neither has this coordinator. */
void elect_create(struct leadership *leadership, uint64_t etcd_id, struct leadership_actions *out);
/* TAKE_OVER, if it is time. */
void elect_send(struct leadership *leadership, struct leadership_actions *out);
/* The answer of CREATE or TAKE_OVER. */
void elect_answered(struct leadership *leadership, const struct leadership_answer *answer);
/* When elect_send would send something. */
uint64_t elect_wake_us(const struct leadership *leadership);
/* The read, then the answer, of who resigns for a dead process. */
void elect_resign(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out);
/* The answer of that LEAVE. */
void elect_resigned(struct leadership *leadership, const struct leadership_answer *answer,
    struct leadership_actions *out);

#endif
