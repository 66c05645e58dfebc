/* SPDX-License-Identifier: Apache-2.0
 * The inside of a coordinator with --ha, for the files of this folder. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_STATE_H
#define CADRE_COORDINATOR_DAEMON_SHARED_STATE_H

#include "common/model/ledger_position.h"
#include "coordinator/daemon/shared/contents_folder.h"
#include "coordinator/daemon/shared/ledger_copy.h"
#include "coordinator/daemon/shared/shared_etcd.h"
#include "coordinator/daemon/shared/shared_ledger.h"
#include "coordinator/daemon/shared/shared_members.h"
#include "coordinator/daemon/shared/snapshot_files.h"
#include "coordinator/daemon/shared/waiting_joins.h"
#include "coordinator/replication/resign.h"

/* Of a coordinator that does not lead: what calls read (shared_reader.c). */
struct shared_reader {
    struct engine *engine; /* NULL: no call has read lately */
    struct ledger_position at;
    uint64_t opened_us;   /* by clock_boot_us(), as all times here */
    uint64_t reopen_us;   /* not before */
    uint64_t complete_us; /* then the log had no more than this */
};

/* shared_contents.c */
struct shared_contents {
    bool is_read;                          /* etcd's key was: */
    char text[CONTENTS_FOLDER_TEXT_BYTES]; /* what it holds; "": there is none */
    bool is_named;                         /* it names a folder of this cluster */
    bool is_good;                          /* this coordinator's may be used */
    char due[CONTENTS_FOLDER_TEXT_BYTES];  /* what is to be written there; "": it is not known */
};

struct shared_ledger {
    struct daemon *daemon;
    struct shared_ledger_owner owner;
    struct ledger_copy copy;
    struct shared_reader reader;
    uint64_t complete_us; /* the newest time at which the copy was known to have all of the log */
    struct shared_etcd etcd;
    struct replica *replica;
    struct replica_known known;
    struct engine_log log;
    struct waiting_joins joins;
    struct shared_members *members;
    struct snapshot_files *snapshots;
    struct resign *resign; /* for the process before this one; NULL: it ended in order */
    uv_timer_t look;       /* at the head of the log: */
    struct log_head head;
    uint64_t moved_us;         /* when it was seen to have changed, by clock_monotonic_us() */
    struct wire_buffer packed; /* the entry that is made now */
    uint64_t logged;           /* entries of the engine that are in the log */
    uint64_t answered_us;      /* when etcd answered last, by clock_monotonic_us() */
    bool etcd_is_silent;       /* for longer than the lease, which is logged */
    uint32_t format;           /* of the newest entry that was appended; 0: none was */
    struct shared_contents contents;
    bool is_named; /* its name is its own */
    bool stands;   /* it may lead */
    bool is_ready; /* its owner knows it */
    bool suspended;
    bool left;
    bool no_room;   /* for entries in the copy, or for `known`, which is logged */
    bool known_due; /* it is stored before the next entries */
    char name[REPLICA_NAME_BYTES];
    char refused[CADRE_ERROR_TEXT_BYTES]; /* why it takes no part; "": it does */
    char own[REPLICA_ADDRESSES_BYTES];    /* where this one is reached: the first address */
    char leader[REPLICA_ADDRESSES_BYTES]; /* where the one that leads is reached; "": none is known
                                           */
};

/* shared_log.c: what the engine appends to, as of this leadership. */
void shared_log_begin(struct shared_ledger *shared, uint64_t term);
/* What threads look at before they change shared files. */
void shared_note_leading(struct shared_ledger *shared, bool may);

/* shared_calls.c: why this coordinator, which does not lead, shows no page of jobs: UNAVAILABLE,
 * with a sentence that names the one that leads, where it is known. */
cadre_status shared_refuse_page(const struct daemon *daemon, struct cadre_error *error);

/* shared_contents.c: etcd's key `contents` holds this now; NULL: there is none. */
void shared_contents_read(struct daemon *daemon, const void *text, size_t size);
/* What is to be written there; "": nothing. */
const char *shared_contents_due(struct daemon *daemon);
/* Whether the status of a look at the marks says that the object store of --contents is away. */
bool shared_contents_away(const struct daemon *daemon, cadre_status status);
/* The cluster is known, or another one: compares, and marks the folder. */
void shared_contents_look(struct shared_ledger *shared);
/* Its name is its own: it stands as soon as its folder may be used, too. */
void shared_contents_named(struct shared_ledger *shared);

/* shared_events.c: what the replica and the snapshots call. */
extern const struct replica_ops shared_replica_ops;
extern const struct shared_members_owner shared_members_table;
struct snapshot_files_owner shared_snapshot_owner(struct shared_ledger *shared);

/* shared_reader.c: closes what calls read: the copy is about to be another's. */
void shared_reader_close(struct shared_ledger *shared);
/* shared_reader.c: closes it if no call has read lately; called now and then. */
void shared_reader_look(struct shared_ledger *shared, const struct replica_view *view);
/* shared_reader.c: whether a coordinator that does not lead, or cannot know whether it does, may
 * answer this call: OK, and it has applied what its client has seen. */
bool shared_reader_admits(
    const struct shared_ledger *shared, const struct rpc_call *call, const char *method);
/* shared_reader.c: the newest that the client of the call was answered from; term 0: none. */
void shared_reader_seen(const struct rpc_call *call, struct ledger_position *ret_seen);
/* shared_reader.c: the newest that this coordinator has. */
void shared_reader_position(
    const struct shared_ledger *shared, struct ledger_position *ret_position);

/* shared_calls.c: looks at the head of the log by a timer, which the caller closes. */
void shared_calls_begin(struct shared_ledger *shared);

#endif
