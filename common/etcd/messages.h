/* SPDX-License-Identifier: Apache-2.0
 * etcd's messages: from the structs of etcd.h to bytes, and back. The only file pair that knows
 * protobuf-c's structs of proto/etcd. Private to common/etcd.
 *
 * What is unpacked lies in the caller's arena, whose budget bounds it, and is valid until the arena
 * is reset. Whatever a server sends is accepted or refused with INTERNAL and a sentence. */
#ifndef CADRE_ETCD_MESSAGES_H
#define CADRE_ETCD_MESSAGES_H

#include "common/etcd/etcd.h"
#include "common/rpc/call.h"
#include "common/wire/wire.h"

#define ETCD_ARENA_BYTES (2 * ETCD_ANSWER_BYTES_MAX) /* for an answer */

#define ETCD_PATH_RANGE        "/etcdserverpb.KV/Range"
#define ETCD_PATH_TXN          "/etcdserverpb.KV/Txn"
#define ETCD_PATH_STATUS       "/etcdserverpb.Maintenance/Status"
#define ETCD_PATH_AUTHENTICATE "/etcdserverpb.Auth/Authenticate"
#define ETCD_PATH_WATCH        "/etcdserverpb.Watch/Watch"

/* ---- packing: the buffer is the caller's on OK ---- */

/* `scratch` is reset. INVALID_ARGUMENT as etcd_transact() says; RESOURCE_EXHAUSTED: no memory. */
cadre_status etcd_pack_transaction(const struct etcd_transaction *transaction, const char *prefix,
    struct wire_arena *scratch, struct rpc_buffer *ret_buffer, struct cadre_error *error);
/* The same for a read. */
cadre_status etcd_pack_range(const char *key, const char *end, uint32_t limit, const char *prefix,
    struct rpc_buffer *ret_buffer, struct cadre_error *error);
/* The same for a watch of one key. */
cadre_status etcd_pack_watch(
    const char *key, const char *prefix, struct rpc_buffer *ret_buffer, struct cadre_error *error);
/* A request of no content. */
void etcd_pack_status(struct rpc_buffer *ret_buffer);
/* A login. */
void etcd_pack_login(const char *user, const char *password, struct rpc_buffer *ret_buffer);

/* ---- unpacking: `arena` is reset ---- */

/* What the answer to a transaction must consist of: the kinds of its two lists. */
struct etcd_shape {
    uint8_t counts[2];                     /* otherwise, then */
    uint8_t kinds[2][ETCD_OPERATIONS_MAX]; /* enum etcd_operation_kind */
};

/* The shape of the answers to this one, which was packed before. */
void etcd_shape_of(const struct etcd_transaction *transaction, struct etcd_shape *ret_shape);

struct etcd_message {
    const void *data;
    size_t size;
    const char *prefix;
    struct wire_arena *arena;
};

/* Fills the ids, `succeeded` and the results. */
cadre_status etcd_unpack_transaction(const struct etcd_message *message,
    const struct etcd_shape *shape, struct etcd_answer *answer, struct cadre_error *error);
/* Fills the ids and one result. */
cadre_status etcd_unpack_range(
    const struct etcd_message *message, struct etcd_answer *answer, struct cadre_error *error);
/* Fills the ids and `member`, which lies in the arena. */
cadre_status etcd_unpack_status(
    const struct etcd_message *message, struct etcd_answer *answer, struct cadre_error *error);
/* The token of a login, in the arena. */
cadre_status etcd_unpack_login(
    const struct etcd_message *message, const char **ret_token, struct cadre_error *error);

struct etcd_notice {
    bool created;  /* the key is watched from here on */
    bool changed;  /* it has changed */
    bool canceled; /* it is not watched any more, because of `reason` */
    const char *reason;
    uint64_t cluster_id;
};
/* One message of a watch. */
cadre_status etcd_unpack_watch(
    const struct etcd_message *message, struct etcd_notice *ret_notice, struct cadre_error *error);

#endif
