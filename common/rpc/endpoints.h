/* SPDX-License-Identifier: Apache-2.0
 * The addresses of one service, of which one is used at a time: with a channel to each. Which one
 * that is changes when a call there fails; the program that made the call makes it again. */
#ifndef CADRE_RPC_ENDPOINTS_H
#define CADRE_RPC_ENDPOINTS_H

#include "common/rpc/address.h"
#include "common/rpc/channel.h"

#define RPC_ENDPOINTS_MAX 16

/* With several addresses: how long a call waits for a connection before the next one is tried. */
#define RPC_ENDPOINT_WAIT_US UINT64_C(2000000)

/* The key under which a server that is not the one to ask names, with UNAVAILABLE, the address of
 * the one that is; an empty value: it is not known yet which one that will be. */
#define RPC_LEADER_KEY "cadre-leader"

struct rpc_endpoints;

/* The attempts to get one answer. Zeroed before the first, and after each answer. */
struct rpc_attempt {
    uint32_t failed;    /* by index in the list */
    uint32_t undecided; /* who knew no leader, and was not tried again when it was named */
    bool again;         /* the one that answered before was tried once more */
    bool itself;        /* one that named itself was tried once more */
    bool awaited;       /* some server said that another one is to be asked, which may not be there
                         * yet */
};

/* Reads "ADDRESS" or "ADDRESS,ADDRESS,...", each as rpc_channel_open() takes it, at most
 * RPC_ENDPOINTS_MAX, either all of Unix sockets or none; the first one is used first.
 * INVALID_ARGUMENT: the sentence names the address and its fault. `options` are those of each
 * channel; may be NULL. */
cadre_status rpc_endpoints_open(struct rpc_loop *loop, const char *addresses,
    const struct rpc_channel_options *options, struct rpc_endpoints **ret_endpoints,
    struct cadre_error *error);

/* Closes the channels, with the calls on them. NULL is fine. */
void rpc_endpoints_close(struct rpc_endpoints *endpoints);

/* The channel to the one that is used now, for new calls; valid until rpc_endpoints_close(). */
struct rpc_channel *rpc_endpoints_channel(const struct rpc_endpoints *endpoints);

/* Its address, as it was given. */
const char *rpc_endpoints_address(const struct rpc_endpoints *endpoints);

/* All of them, by index below the count, which may grow, for a program that asks each. */
size_t rpc_endpoints_count(const struct rpc_endpoints *endpoints);
struct rpc_channel *rpc_endpoints_channel_at(const struct rpc_endpoints *endpoints, size_t at);
/* This one is used from now on. */
void rpc_endpoints_use(struct rpc_endpoints *endpoints, size_t at);

/* The server behind `channel` answered: it stays the one that is used, or becomes it, and is the
 * first to be tried when a connection breaks. */
void rpc_endpoints_answered(struct rpc_endpoints *endpoints, const struct rpc_channel *channel);

/* To be called in on_status when a call on `channel` failed for want of a server: UNAVAILABLE.
 * True: an address is used now that has not failed in this attempt (another one, or the same once
 * more, because it answered before, or leads by now: it names itself, or another one names it and
 * it knew no leader when it was asked), and the call is to be made again at once. False: all
 * failed; try again after a pause, or give up; attempt->awaited is as these attempts found it, and
 * all else of it is zeroed. A leader that the server named is the next, and is added to the list
 * when it is not in it, unless its address is of another kind or the list is full. */
bool rpc_endpoints_failed(struct rpc_endpoints *endpoints, struct rpc_attempt *attempt,
    const struct rpc_channel *channel, const struct rpc_call *call);

#endif
