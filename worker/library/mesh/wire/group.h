/* SPDX-License-Identifier: Apache-2.0
 * A group: all replicas of one host, each with a slot on a control page that all of them map. A
 * replica posts its call and its data, or their addresses, then raises its stamp; a replica that
 * has seen the stamps of all slots needs no other message to continue. There is no lock and no
 * leader: the owner of a slot alone writes to it (but for the count of its sleepers).
 *
 *   page | head: whether and why the group is broken
 *        | slot 0: 2 posts (by the parity of the collective) | done | sleepers, text
 *        | slot 1: ...
 *        | staging: 2 chunks a slot, 3 chunks of results     (only where memory is not shared)
 *
 * Stamps and done words only grow, in steps of two; bit 0 is set when the group breaks or the slot
 * is left, so that every sleeper on a word wakes. All words start as zero, which is the content of
 * a new page.
 *
 * Within one task the page is private memory. Between tasks it is a sealed memfd, and other
 * processes may write anything there: sizes are never taken from it, addresses are checked. */
#ifndef CADRE_WORKER_MESH_WIRE_GROUP_H
#define CADRE_WORKER_MESH_WIRE_GROUP_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define GROUP_CACHE_LINE_BYTES 128 /* two cache lines: they are fetched in pairs */
#define GROUP_PAYLOAD_BYTES    4096
#define GROUP_SPANS_MAX        (GROUP_PAYLOAD_BYTES / 16)
#define GROUP_TEXT_BYTES       384
#define GROUP_STEP             UINT32_C(2) /* of stamps and done words */

/* The addresses of one buffer of a call: addresses in the task, or offsets into its arena. */
struct group_span {
    _Atomic uint64_t data;
    _Atomic uint64_t from;
};

/* The call of a replica. The payload begins in the same cache line: up to 16 bytes are sent with
 * the stamp. */
struct group_post {
    alignas(GROUP_CACHE_LINE_BYTES) _Atomic uint32_t stamp;
    uint8_t kind;
    uint8_t op;
    uint8_t dtype;
    uint8_t flags; /* enum group_flag */
    uint32_t root;
    uint32_t tag; /* of addresses: a hash, see spans.c */
    uint64_t count;
    uint64_t bytes;
    uint64_t layout;
    uint64_t key;
    union {
        uint8_t data[GROUP_PAYLOAD_BYTES];
        struct group_span spans[GROUP_SPANS_MAX];
    } payload;
};

enum group_flag {
    GROUP_PROBLEM = 1, /* the call is wrong by itself; the text has the reason */
    GROUP_PRIVATE = 2, /* a buffer is in no memory that the tasks share: addresses are posted */
    GROUP_APART = 4    /* its task cannot attach to all tasks of the host */
};

struct group_slot {
    struct group_post posts[2];
    alignas(GROUP_CACHE_LINE_BYTES) _Atomic uint32_t done;
    _Atomic uint64_t attached; /* the end of what was reduced of the own share, packed */
    alignas(GROUP_CACHE_LINE_BYTES) _Atomic uint32_t sleepers; /* on any word of this slot */
    alignas(GROUP_CACHE_LINE_BYTES) _Atomic uint32_t touching; /* may be in others' buffers */
    _Atomic uint32_t left;       /* its task closed the mesh in order */
    char text[GROUP_TEXT_BYTES]; /* written only when calls differ */
};

struct group_head {
    alignas(GROUP_CACHE_LINE_BYTES) _Atomic uint32_t broken; /* enum group_state */
    _Atomic uint32_t leaves;                                 /* how often a task has left */
    uint32_t code;                                           /* a cadre_status */
    uint32_t rank;                                           /* of the task that broke it */
    char text[GROUP_TEXT_BYTES];
    alignas(
        GROUP_CACHE_LINE_BYTES) _Atomic uint32_t verdict; /* between hosts: 1, the calls differ */
    char verdict_text[GROUP_TEXT_BYTES];
};

enum group_state { GROUP_WHOLE, GROUP_BREAKING, GROUP_BROKEN };

struct group {
    struct group_head *head;
    struct group_slot *slots;
    uint8_t *staging; /* NULL: none */
    size_t bytes;     /* of the mapping */
    size_t chunk_bytes;
    uint32_t slot_count;
    int fd;     /* -1: private memory */
    bool spins; /* the slots have a CPU each */
};

/* Makes a page for `slots` replicas. `shared`: a memfd, for other tasks to map. `chunk_bytes`: of
 * staging for data that the others cannot reach, a multiple of a page; 0: none. Close it with
 * group_close also after an error. */
cadre_status group_open(struct group *group, uint32_t slots, size_t chunk_bytes, bool shared,
    struct cadre_error *error);

/* Maps the page that another task of this host made with the same numbers. Takes the descriptor,
 * also on error. DATA_LOSS: it is no such page (size or seals differ). */
cadre_status group_map(
    struct group *group, uint32_t slots, size_t chunk_bytes, int fd, struct cadre_error *error);

/* Accepts a zeroed group. */
void group_close(struct group *group);

/* Any thread, any number of times: every call that waits in this group returns ABORTED, from now
 * on. The first reason is kept for the other tasks. */
void group_break(struct group *group, uint32_t rank, cadre_status code, const char *text);

static inline bool group_is_broken(const struct group *group)
{
    return atomic_load_explicit(&group->head->broken, memory_order_acquire) != GROUP_WHOLE;
}

/* The task that has these slots closed the mesh in order: a wait for a step that they will not
 * reach fails, from now on. */
void group_leave(struct group *group, uint32_t first_slot, uint32_t count);

/* Why the group is broken, as its breaker wrote it; false when it had no time to. */
bool group_reason(const struct group *group, uint32_t *ret_rank, cadre_status *ret_code,
    char ret_text[GROUP_TEXT_BYTES]);

/* A slot's chunk of staging for this parity. */
uint8_t *group_stage(const struct group *group, uint32_t slot, unsigned parity);
/* Chunk `index` of the three of results, which are twice as large as those of staging. */
uint8_t *group_result(const struct group *group, unsigned index);

/* How long, and for whom, a replica waits. */
struct group_wait_limits {
    uint64_t timeout_us; /* 0: for ever */
    /* Called after a second and after each further five that `slot` has not come; may be NULL. */
    void (*stalled)(void *user, uint32_t slot, uint64_t waited_us);
    void *user;
    uint64_t began_us; /* 0 until a slot is late */
    uint64_t report_at_us;
    uint32_t leaver; /* the slot that was left */
};

static inline bool group_reached(const _Atomic uint32_t *word, uint32_t value)
{
    return (int32_t)(atomic_load_explicit(word, memory_order_acquire) - value) >= 0;
}

/* Spins or yields for a short while, then sleeps, until `word` of `slot` has reached `value`.
 * ABORTED: the group is broken. UNAVAILABLE: a slot was left whose same word will never get there
 * (wait_limits->leaver). DEADLINE_EXCEEDED: it did not come in time. */
cadre_status group_wait(struct group *group, uint32_t slot, const _Atomic uint32_t *word,
    uint32_t value, struct group_wait_limits *wait_limits);

/* Raises a word of the own slot: a replica that sees it also sees all that was written before. */
void group_raise(struct group *group, uint32_t slot, _Atomic uint32_t *word, uint32_t value);

/* Begins access to other replicas' buffers. False when the group is broken: nothing of other
 * replicas may be touched then, and touch_end is not called. */
bool group_touch_begin(struct group *group, uint32_t slot);
/* Ends that access. */
void group_touch_end(struct group *group, uint32_t slot);
/* A replica that leaves a broken group waits here until no other one can be in its buffers any
 * more; a process that was killed in them is waited for in vain, and not for long. */
void group_touch_settle(struct group *group, uint32_t slot);

#endif
