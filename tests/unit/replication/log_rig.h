/* SPDX-License-Identifier: Apache-2.0
 * An etcd_log on a fake etcd, transactions of a leader on it, and what came back. */
#ifndef CADRE_TESTS_REPLICATION_LOG_RIG_H
#define CADRE_TESTS_REPLICATION_LOG_RIG_H

#include "coordinator/replication/etcd_log.h"
#include "coordinator/replication/keys.h"
#include "fake_etcd.h"

#define RIG_TICKETS 200

/* Of the cluster that the rig creates. */
extern const uint8_t rig_secret[REPLICA_SECRET_BYTES];

struct log_rig {
    struct rpc_loop *loop;
    struct etcd *etcd;
    struct tickets tickets;
    struct etcd_log *log;
    uint64_t request;
    /* The newest answer. */
    unsigned handled;
    bool was_read, was_answered, no_space;
    struct leadership_read read;
    struct log_entry entries[LOG_READ_ENTRIES_MAX];
    struct entry_value contents[LOG_READ_ENTRIES_MAX];
    char *joined; /* the bytes of all contents, one after the other */
    size_t joined_size;
    struct leadership_answer answer;
    struct replica_snapshot snapshot; /* that the next LOG_SNAPSHOT names; then as it was found */
    cadre_status found;
    /* As the leader knows it. */
    struct log_leader leader;
    struct log_head head;
};

/* cmocka's setup and teardown. */
int log_rig_open(void **state);
int log_rig_close(void **state);

/* Runs the loop until the request is answered or not. */
void rig_wait(struct log_rig *rig);
/* A read of up to so many entries behind `after`, and its answer. */
void rig_read(struct log_rig *rig, const struct leadership_position *after, uint32_t entries_max);
/* Reads which snapshot is the newest, and its answer. */
void rig_find_snapshot(struct log_rig *rig);
/* A new transaction, or the same once more, and its answer. */
void rig_transact(struct log_rig *rig, const struct log_transaction *transaction);
void rig_again(struct log_rig *rig, const struct log_transaction *transaction);

/* The transactions of a core that begins. */
struct log_transaction rig_create(void);
struct log_transaction rig_take_over(const struct log_rig *rig);
/* A beat of the leader; the head is one beat on. */
struct log_transaction rig_guarded(const struct log_rig *rig, enum log_transaction_kind kind);
/* Of a snapshot at this index; the rig's one. */
struct log_transaction rig_snapshot(struct log_rig *rig, uint64_t index);
struct log_transaction rig_term(const struct log_rig *rig);
/* An append of the tickets from `first` to the newest one. */
struct log_transaction rig_append(const struct log_rig *rig, uint64_t first);

/* Sends it; it must be applied, and the leader then knows what it wrote. */
void rig_apply(struct log_rig *rig, const struct log_transaction *transaction);
/* Creates, takes over, appends the TERM entry. */
void rig_lead(struct log_rig *rig);
/* Keeps a ticket of `size` bytes that its number fills. */
uint64_t rig_ticket(struct log_rig *rig, size_t size);
/* Appends one entry of so many bytes, in pieces if it is long. */
void rig_write(struct log_rig *rig, size_t size);
/* hash(0). */
struct leadership_position rig_begin(void);

#endif
