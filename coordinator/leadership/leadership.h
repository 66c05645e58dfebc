/* SPDX-License-Identifier: Apache-2.0
 * Which of several coordinators leads, and the log of the ledger that they
 * share: a pure, deterministic state machine beside coordinator/core. One event
 * in, a bounded list of actions out; no I/O, no allocation, no clock. The store
 * is etcd or anything that has linearizable transactions (log_store.h);
 * README.md has the picture and the rules HA1 to HA25 by file.
 *
 * Safety rests on guarded transactions alone. Clocks (`now_us`) only prevent
 * that two coordinators send at the same time:
 *
 *   - now_us is CLOCK_BOOTTIME in microseconds, of this process, never less
 * than in an earlier event.
 *   - Of an event that carries an answer it was read after the answer had been
 * received (HA2): a time that the loop cached before is too early.
 *   - A request is sent after the step that asks for it has returned, so the
 * time of that step is before the sending (HA4).
 *   - Before each batch of frames and answers the caller reads the clock and
 * compares it with leadership_may_send_until_us().
 *
 * The caller is one thread. Events are borrowed for the call; actions hold
 * values and point nowhere, but for `text` of REFUSE and STEP_DOWN, which is in
 * the core and stays. */
#ifndef CADRE_COORDINATOR_LEADERSHIP_H
#define CADRE_COORDINATOR_LEADERSHIP_H

#include <stddef.h>

#include "coordinator/leadership/log_store.h"

enum leadership_state {
    LEADERSHIP_FOLLOWER,    /* reads the log as it grows; waits until the head stands
                               still */
    LEADERSHIP_CANDIDATE,   /* TAKE_OVER is sent, or CREATE */
    LEADERSHIP_CATCHING_UP, /* took over: reads to the end of the log, then
                               appends TERM */
    LEADERSHIP_LEADING,
    LEADERSHIP_SUSPENDED,     /* leads, but its time to send is over: nothing is sent,
                                 and the timers of coordinator/core stand still (HA4a)
                               */
    LEADERSHIP_LEAVING,       /* LEAVE is sent; nothing else is any more */
    LEADERSHIP_RESIGNING,     /* of a dead process, by its nonce */
    LEADERSHIP_STEPPING_DOWN, /* final: close all streams, start again by exec
                                 (HA13) */
    LEADERSHIP_REFUSED        /* final: takes no part until people have looked (HA19,
                                 HA20, HA24) */
};

/* How far a copy of the ledger is. */
struct leadership_position {
    uint64_t index;       /* of the newest entry that is applied to it; 0: none is */
    uint64_t term;        /* of that entry */
    struct log_hash hash; /* of that entry, over all before it; index 0: hash(0),
                             or zero if no cluster is known yet */
};

struct leadership_options {
    /* What the SQLite file of this coordinator holds. Without a cluster:
     * `applied` is zero. */
    bool has_cluster;
    struct log_nonce cluster_id;
    uint64_t etcd_id;
    struct leadership_position applied;
    uint64_t term_seen; /* highest that was stored, by
                           LEADERSHIP_ACTION_STORE_KNOWN or an entry */
    /* Without a cluster: that of the folder of contents, which none but its own may use; 0: it
     * names none. */
    struct log_nonce contents_id;
    bool waits;           /* it is no candidate until STAND */
    uint32_t format_max;  /* newest format of entries that this version knows */
    bool accept_restored; /* --accept-restored: an etcd that holds less than was
                             known is right */

    struct log_nonce nonce;          /* drawn for this process */
    struct log_nonce new_cluster_id; /* drawn, for CREATE */
    struct log_hash new_hash;        /* H(new_cluster_id) */
    uint64_t seed;                   /* of the jitter; differs between coordinators */

    uint64_t lease_us;  /* L: a head that was not changed for so long may be taken
                           over */
    uint32_t drift_ppm; /* that no clock exceeds; up to 400,000 (HA4) */
    uint64_t margin_us; /* less than lease_us x (1 - 2 x drift) */
    uint64_t lag_us;    /* longest time until a lagging ticket is sent to the log */
    /* Tickets that are offered and not logged; at least 1. */
    uint32_t tickets_max;
};

/* Bytes that leadership_init needs for so many tickets; alignment of
 * max_align_t. */
size_t leadership_bytes(uint32_t tickets_max);

struct leadership;
/* A follower in `memory` of leadership_bytes(), which the caller owns and
 * keeps; nothing to close. The memory holds no pointers into itself. Its first
 * TICK sends a read. */
struct leadership *leadership_init(void *memory, const struct leadership_options *options);

/* ---- events ---- */

enum leadership_event_type {
    LEADERSHIP_EVENT_TICK = 1,
    /* A watch reports that `head` or `leader` changed. It only says that it is
     * time to read; a follower also reads every lease_us / 6. */
    LEADERSHIP_EVENT_CHANGED,
    /* The answer of READ. One that is not of the newest read is dropped. */
    LEADERSHIP_EVENT_READ,
    /* The answer of TRANSACT: of any attempt of it. */
    LEADERSHIP_EVENT_ANSWERED,
    /* An attempt of READ or TRANSACT will get no answer: its connection broke,
     * its member has no quorum, or etcd is out of space. Whether the transaction
     * was applied is not known, also if etcd answered with an error. The same
     * transaction is sent again, a little later. */
    LEADERSHIP_EVENT_UNANSWERED,
    /* The entries of APPLY are in the SQLite file, with the index, in one
       transaction of it. */
    LEADERSHIP_EVENT_APPLIED,
    /* There is no room for the entries of APPLY: the SQLite file is at `position`, which is less. A
     * follower asks for them again after lease_us, and does not take over until they are applied;
     * one that has taken over leaves. */
    LEADERSHIP_EVENT_NO_ROOM,
    /* The snapshot of FETCH_SNAPSHOT is installed, or could not be had: then
     * `position.index` is 0, and it is asked for again after lease_us. */
    LEADERSHIP_EVENT_SNAPSHOT_INSTALLED,
    /* Of a leader that is LEADING, SUSPENDED, or whose LEAVE is not sent yet: a
       ticket. */
    LEADERSHIP_EVENT_OFFER,
    /* Two or more coordinators have this snapshot on disk, by its SHA-256 (HA19).
     * A leader writes its key, then SNAPSHOT_STORED follows, then it trims; others
     * ignore it. A newer one replaces one that still waits. */
    LEADERSHIP_EVENT_SNAPSHOT_HELD,
    /* A worker's hello named a higher term, or this term and a higher index, than
     * this leader has (HA12); likewise a task's generation above the ledger's:
     * then term = own, index = UINT64_MAX. The leader sends nothing more and
     * reads: it was replaced, or etcd was put back. Of a coordinator that does
     * not lead, and of no such hello, it changes nothing. */
    LEADERSHIP_EVENT_HELLO_AHEAD,
    /* SIGTERM, or a hand-over: offered tickets are logged, then LEAVE is sent,
     * and after its answer, or lease_us from now, STEP_DOWN follows. Of one that
     * does not lead: at once. */
    LEADERSHIP_EVENT_LEAVE,
    /* Of a coordinator that waits: from now on it may lead. */
    LEADERSHIP_EVENT_STAND,
    /* First event of a core that does nothing else: --resign of a process that is
     * dead, by its nonce. Ends in STEP_DOWN. */
    LEADERSHIP_EVENT_RESIGN
};

/* Cluster, leader, head and entries of one linearizable read. */
struct leadership_read {
    uint64_t request;
    uint64_t etcd_id;             /* of the answer's header */
    bool has_cluster;             /* else all that follows is not looked at */
    struct log_cluster cluster;   /* id 0: the key cannot be decoded */
    struct log_hash cluster_hash; /* H(cluster.id) */
    bool has_leader, has_head;    /* false: the key is missing or cannot be decoded */
    struct log_leader leader;
    struct log_head head;
    /* From the entry after `after` on, in the order of their keys. */
    const struct log_entry *entries;
    uint32_t entry_count;
};

struct leadership_answer {
    uint64_t request;
    bool applied; /* the guard held, and it is written */
    /* Of an append: the hash of its last entry, as the shell computed it when it
     * built it. */
    struct log_hash hash;
    uint64_t revision; /* applied: of this transaction */
    /* Not applied: as found by the else-branch. */
    bool found; /* both keys are there */
    struct log_leader leader;
    struct log_head head;
};

enum leadership_ticket_kind {
    LEADERSHIP_SYNC = 1, /* an entry whose messages wait for it (HA5): sent to the
                            log at once */
    LEADERSHIP_LAGGING,  /* an entry whose messages were sent: in the log after
                            lag_us, or with the  first ticket of another kind behind
                            it (HA7a) */
    LEADERSHIP_CONFIRM   /* no entry: messages wait until a guarded transaction that
                            was sent after this offer is answered (HA6) */
};

/* Tickets are numbered from 1 by the caller, in the order in which they are to
 * be in the log, and have one entry each, whose bytes the caller keeps until
 * LOGGED or STEP_DOWN. The newest ticket may be offered again with more bytes
 * while it is LAGGING and in no transaction. */
struct leadership_ticket {
    uint64_t ticket;
    enum leadership_ticket_kind kind;
    uint32_t bytes;  /* of the entry's value; 1 to LOG_ENTRY_BYTES_MAX. CONFIRM: 0 */
    uint32_t format; /* that the entry brings into force; 0: none */
};

struct leadership_snapshot {
    uint64_t index;
    struct log_hash hash;
    uint32_t holders;
    uint64_t trim_to; /* newest entry that may be deleted; at most `index`. The
                         caller keeps what is younger than 10 minutes */
};

struct leadership_event {
    enum leadership_event_type type;
    uint64_t now_us;
    union {
        struct leadership_read read;
        struct leadership_answer answer;
        struct {
            uint64_t request;
            bool no_space; /* etcd's alarm NOSPACE */
        } unanswered;
        struct leadership_position position; /* APPLIED, NO_ROOM, SNAPSHOT_INSTALLED */
        struct leadership_ticket ticket;
        struct leadership_snapshot snapshot;
        struct {
            uint64_t term, index;
        } hello;
        struct log_nonce nonce; /* RESIGN */
    };
};

/* ---- actions ---- */

enum leadership_action_type {
    /* Reads cluster, leader, head, and up to `entries_max` entries behind
     * `after`, in one linearizable transaction. An older read is void. */
    LEADERSHIP_ACTION_READ = 1,
    /* Sends the transaction, at `attempt` 1; another attempt is the very same
     * bytes, if possible to another member of etcd. Attempts before it may still
     * be on their way: their answers count. The shell keeps the bytes until the
     * next TRANSACT of another request. */
    LEADERSHIP_ACTION_TRANSACT,
    /* Applies the first `count` entries of the read of this step to the SQLite
     * file; then APPLIED.
     */
    LEADERSHIP_ACTION_APPLY,
    /* The entries behind `after` are trimmed: installs the newest snapshot of
     * etcd's keys snap/ that a holder still has, in place of the SQLite file;
     * then SNAPSHOT_INSTALLED. */
    LEADERSHIP_ACTION_FETCH_SNAPSHOT,
    /* The SQLite file is no prefix of the log, and --accept-restored was given:
     * moves it away and begins with an empty one, before it carries out what
     * follows. */
    LEADERSHIP_ACTION_DISCARD,
    /* Stores cluster and highest term in the SQLite file; nothing waits for it.
     */
    LEADERSHIP_ACTION_STORE_KNOWN,
    /* LEADING: TERM is in the log as the entry `logged`. Applies it to the SQLite
     * file, restores coordinator/core from that, and begins (HA8, HA9). */
    LEADERSHIP_ACTION_LEAD,
    /* All tickets up to `logged.ticket` are in the log, or confirmed: their
     * messages may be sent, within the time to send. The shell applies their
     * entries to its SQLite file. */
    LEADERSHIP_ACTION_LOGGED,
    /* The key of the snapshot `stored` is in etcd, and those of older ones are
     * not. */
    LEADERSHIP_ACTION_SNAPSHOT_STORED,
    LEADERSHIP_ACTION_SUSPEND, /* LEADING -> SUSPENDED */
    LEADERSHIP_ACTION_RESUME,  /* SUSPENDED -> LEADING */
    LEADERSHIP_ACTION_STEP_DOWN,
    LEADERSHIP_ACTION_REFUSE
};

/* What is newly in the log: `entries` entries from first_index on. */
struct leadership_logged {
    uint64_t ticket; /* LOGGED: the newest */
    uint64_t first_index;
    uint32_t entries;              /* 0: tickets were confirmed only */
    struct leadership_position at; /* of the newest entry of the log */
};

struct leadership_action {
    enum leadership_action_type type;
    union {
        struct {
            uint64_t request;
            struct leadership_position after;
            uint32_t entries_max; /* 0: none */
        } read;
        struct {
            uint64_t request;
            uint32_t attempt;
            struct log_transaction transaction;
        } transact;
        struct {
            uint32_t count;
            struct leadership_position to; /* comes back in APPLIED */
        } apply;
        struct leadership_position after; /* FETCH_SNAPSHOT */
        struct {
            struct log_nonce cluster_id;
            uint64_t etcd_id;
            uint64_t term;
            struct log_hash hash; /* hash(0) of the cluster */
        } known;
        struct {
            uint64_t term;
            struct leadership_logged logged;
        } lead;
        struct leadership_logged logged;
        uint64_t stored;  /* its index */
        const char *text; /* STEP_DOWN, REFUSE: a sentence for people */
    };
};

/* A step appends at most this many actions. */
#define LEADERSHIP_ACTIONS_PER_STEP_MAX 8

struct leadership_actions {
    struct leadership_action *items; /* the caller's array */
    size_t capacity;                 /* LEADERSHIP_ACTIONS_PER_STEP_MAX free before each step */
    size_t count;
};

/* Handles one event and appends its actions. Asserts on what only a bug of the
 * caller can be (a ticket out of order, an APPLIED that was not asked for);
 * what comes from the store is checked. */
void leadership_step(struct leadership *leadership, const struct leadership_event *event,
    struct leadership_actions *out);

/* When the core is to get the next TICK: a time that has passed means now,
 * UINT64_MAX never. */
uint64_t leadership_wake_us(const struct leadership *leadership);

/* ---- what the caller reads ---- */

/* Until when messages may leave, by the clock of the events: they may while the
 * clock is less. 0: not at all. (HA4) */
uint64_t leadership_may_send_until_us(const struct leadership *leadership);

/* How many more tickets may be offered now. */
uint32_t leadership_tickets_free(const struct leadership *leadership);

struct leadership_view {
    enum leadership_state state;
    uint64_t term;            /* own, from TAKE_OVER on; else 0 */
    struct log_nonce nonce;   /* of that term */
    bool has_store;           /* the store was read: */
    struct log_leader leader; /* as read or written last */
    struct log_head head;
    struct leadership_position
        applied;            /* through the log; of a leader: at the end of CATCHING_UP */
    uint64_t complete_us;   /* of a follower: at this time nothing was in the log that `applied`
                               lacks;   0: not known */
    bool no_space;          /* the last attempt of a transaction failed by etcd's alarm
                               NOSPACE */
    uint64_t unanswered_us; /* since when the transaction in flight has no answer;
                               UINT64_MAX: none is in flight */
    const char *text;       /* of STEPPING_DOWN, REFUSED; else "" */
};

/* The state for showing, and for who asks which coordinator leads. */
void leadership_show(const struct leadership *leadership, struct leadership_view *ret_view);

/* ---- for tests and the simulator ---- */

/* NULL when all invariants hold, else a sentence about the broken one. */
const char *leadership_invariant(const struct leadership *leadership);

/* A hash of the state: equal for equal options and events, on every machine and
 * compiler. */
uint64_t leadership_digest(const struct leadership *leadership);

#endif
