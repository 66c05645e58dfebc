/* SPDX-License-Identifier: Apache-2.0
 * The Unix sockets between the tasks of one host. They carry no data of collectives, which go
 * through shared memory. At forming, right after the handshake, each task sends its handover to
 * each other one: descriptors of memory, over SCM_RIGHTS. After that the watcher (watch.h) receives
 * there that a mesh was closed in order, that it ended and why, or, from the end of the connection
 * alone, that its process has exited.
 *
 *     lead task                                    other task of the host
 *       handover: page, arena, sentinel  ------->    both descriptors, checked: memory that cannot
 *                              <-------              shrink; handover: arena, sentinel */
#ifndef CADRE_WORKER_MESH_CONNECT_LINKS_H
#define CADRE_WORKER_MESH_CONNECT_LINKS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/mesh/connect/attach.h"

#define LINK_HANDOVER_BYTES 40

/* Memory of one task for the others of its host. fd -1, bytes 0: none. */
struct link_memory {
    int fd;
    uint64_t bytes;
};

/* What a task gives to the others of its host. The memory files must be sealed against shrinking,
 * so that the tasks that map them do not fault because of the giver. */
struct link_handover {
    struct link_memory page;  /* of the lead task only: the group's control page */
    struct link_memory arena; /* of every task that has one open */
    /* To attach to its memory; its process is the one that sent it, as the system says. */
    struct attach_peer attach; /* sentinel 0: none */
};

struct link {
    uint32_t rank;  /* of the task at the other end */
    int fd;         /* -1: not connected yet */
    bool given;     /* our handover was sent */
    bool got;       /* theirs is in `handover` */
    bool left;      /* it sent that it closed its mesh: no message of it follows */
    bool announced; /* the other hosts have received that */
    uint8_t bytes[LINK_HANDOVER_BYTES];
    struct link_handover handover;
};

/* The own host's tasks, ascending, without this one. */
struct links {
    uint32_t count;
    struct link *items;            /* [count] */
    struct link_handover handover; /* what this task gives; the descriptors stay their owners' */
};

/* `tasks` are the ranks of the own host, `rank` among them. */
cadre_status mesh_links_open(struct links *links, const uint32_t *tasks, uint32_t task_count,
    uint32_t rank, struct cadre_error *error);

/* Closes the sockets and every descriptor of a handover that was not taken; accepts a zeroed
 * value. */
void mesh_links_close(struct links *links);

/* NULL when `rank` is not another task of the own host. */
struct link *mesh_links_find(const struct links *links, uint32_t rank);

/* Takes a connection; a second one of a rank replaces the first, because its task closed that
 * one. */
void mesh_link_connect(struct link *link, int fd);

/* Exchanges the handovers of a link that is connected, without waiting: OK when both ways are done,
 * PENDING, UNAVAILABLE when the connection ended (it is closed then, and may be made again), or
 * DATA_LOSS: what came is not a handover, or a page that does not come from the lead task, or a
 * descriptor that is no memory file, is smaller than claimed or may shrink. */
cadre_status mesh_link_exchange(
    struct links *links, struct link *link, bool from_lead, struct cadre_error *error);

/* The caller takes the descriptor over: links_close does not close it any more. */
struct link_memory mesh_link_take(struct link_memory *memory);

#endif
