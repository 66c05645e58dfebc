/* SPDX-License-Identifier: Apache-2.0
 * With --ha: this coordinator as one of several that share a ledger in etcd. It follows (entries of
 * the log go into its copy, calls are answered with the one that leads) until it leads: then
 * the engine's turns become entries of the log. It never goes back: a coordinator that is replaced
 * starts again by exec. All functions are called on the loop; main.c is the owner. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_SHARED_LEDGER_H
#define CADRE_COORDINATOR_DAEMON_SHARED_SHARED_LEDGER_H

#include "coordinator/daemon/base/daemon.h"
#include "common/model/coordinator_message.h"
#include "common/model/limits.h"
#include "coordinator/replication/replica.h"
#include "coordinator/store/store.h"

/* What the owner does; from the loop, outside of calls to the engine. */
struct shared_ledger_owner {
    /* Once: its name is its own, or etcd does not answer; before anything below. */
    void (*ready)(struct daemon *daemon);
    /* Opens the engine over the store, with the log, and begins. The store is the engine's then. */
    void (*lead)(struct daemon *daemon, struct store *store, const struct engine_log *log);
    /* Opens an engine over the store for readers; the store stays the caller's. */
    cadre_status (*read)(struct daemon *daemon, struct store *store, struct engine **ret_engine,
        struct cadre_error *error);
    /* Closes all and starts again by exec, or ends, if that was asked for. */
    void (*step_down)(struct daemon *daemon, const char *text);
};

/* Checks the options that --ha needs, without opening anything. INVALID_ARGUMENT: the sentence
 * names the option. */
cadre_status shared_ledger_check_options(
    const struct coordinator_options *options, struct cadre_error *error);

/* Begins as a follower, with a store that is the copy of the ledger: taken over on success. The
 * server listens already. */
cadre_status shared_ledger_open(struct daemon *daemon, struct store *store,
    const struct shared_ledger_owner *owner, struct cadre_error *error);
/* Before the engine and the loop are closed. NULL is fine. */
void shared_ledger_close(struct daemon *daemon);

/* At the end of a turn, before the engine's flush: whether it may send, and what is in the log. */
void shared_ledger_turn(struct daemon *daemon);
/* Whether messages and answers may leave now. True without --ha. */
bool shared_ledger_may_send(const struct daemon *daemon);

/* Whether this coordinator may take the call: OK; or UNAVAILABLE, with the address of the one that
 * leads as the call's trailer where it is known. A client that was answered from a newer ledger
 * than this one is answered by no other (rule HA15); one that takes old answers is answered by
 * each. A worker's join while it is not known who leads is taken, too: shared_ledger_wait(). */
cadre_status shared_ledger_admit(
    struct daemon *daemon, struct rpc_call *call, const char *method, struct cadre_error *error);
/* The engine that an admitted call of a client reads: that of this coordinator, or while it does
 * not lead one of its copy of the ledger, to be used until the loop has run again.
 * RESOURCE_EXHAUSTED, DATA_LOSS: the copy cannot be read. */
cadre_status shared_ledger_reader(
    struct daemon *daemon, struct engine **ret_engine, struct cadre_error *error);
/* The end of a call: adds from which ledger it was answered, and how old that is. */
void shared_ledger_mark(struct daemon *daemon, struct rpc_call *call, const char *method);
/* Keeps a join that came while this coordinator does not lead, until it is known who does, or for a
 * while. False: it leads, and the call is to be handled. */
bool shared_ledger_wait(struct daemon *daemon, struct rpc_call *call);
/* A call has ended. Whether it waited. */
bool shared_ledger_waited(struct daemon *daemon, const struct rpc_call *call);

/* A worker has seen more of the log than this leader: see replica_hello_ahead(). */
void shared_ledger_hello_ahead(struct daemon *daemon, uint64_t term, uint64_t index);

/* Ends its part in order: step_down() follows, after at most the lease. False: there is nothing to
 * end, without --ha or when it was refused. */
bool shared_ledger_leave(struct daemon *daemon);

/* What Coordinators.Leader answers, and what it knows of all. The texts are of the daemon, and in
 * daemon->arena, until the next turn. Only with --ha. */
void shared_ledger_describe(const struct daemon *daemon, struct leader_response *ret_response);
size_t shared_ledger_list(
    const struct daemon *daemon, struct coordinator_info ret_infos[LIMIT_COORDINATORS]);
/* Its state, for people and metrics. Only with --ha. */
void shared_ledger_show(const struct daemon *daemon, struct replica_view *ret_view);
/* A sentence about a coordinator that cannot lead or follow now; "": none. */
const char *shared_ledger_trouble(const struct daemon *daemon);

#endif
