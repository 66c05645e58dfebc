/* SPDX-License-Identifier: Apache-2.0
 * The keys of the log beneath the prefix. Numbers are 16 hexadecimal digits, so that etcd's order
 * of keys is that of the numbers. */
#ifndef CADRE_COORDINATOR_REPLICATION_KEYS_H
#define CADRE_COORDINATOR_REPLICATION_KEYS_H

#include "common/etcd/etcd.h"

#define KEY_CLUSTER "cluster"
#define KEY_LEADER  "leader"
#define KEY_HEAD    "head"
/* Before all keys log/INDEX, part/INDEX/N, snap/INDEX, and behind them. */
#define KEY_ENTRIES       "log/"
#define KEY_ENTRIES_END   "log0"
#define KEY_PIECES        "part/"
#define KEY_PIECES_END    "part0"
#define KEY_SNAPSHOTS     "snap/"
#define KEY_SNAPSHOTS_END "snap0"

struct log_key {
    char text[ETCD_KEY_BYTES];
};

/* log/INDEX: an entry. */
struct log_key key_entry(uint64_t index);
/* part/INDEX/N: a piece of an entry. */
struct log_key key_piece(uint64_t index, uint32_t piece);
/* What is before all pieces of this entry, and behind those of the entry before it. */
struct log_key key_pieces(uint64_t index);
/* snap/INDEX: a snapshot. */
struct log_key key_snapshot(uint64_t index);

#endif
