/* SPDX-License-Identifier: Apache-2.0
 * A parameter server: serves a store to the tasks of its crew, and keeps the copy of another one's
 * store when the crew has backups.
 *
 *     client ── frame: pull, push, gather, ... ──▶ loop threads (epoll), one state machine for each
 *            ◀── answer ──────────────────────     connection: nobody's slowness holds up another
 *
 *     push, with a backup:   applied here ── the same push ──▶ ps (k + 1) mod n ── ack ──▶ answer
 *
 * A push is answered when it is applied, and with a backup when that has applied it too. A server
 * whose backup is lost answers nothing before the coordinator has recorded that it goes on alone;
 * then it does, until that one is back and was given everything anew. */
#ifndef CADRE_PS_SERVER_SERVER_H
#define CADRE_PS_SERVER_SERVER_H

#include "worker/library/ps/directory.h"
#include "worker/library/ps/link/link.h"

struct server_options {
    uint32_t index;
    int memory_fd; /* as in store_options */
    uint64_t limit_bytes;
    uint32_t threads;               /* 0: by the machine, 1 to 4 */
    struct link_listener *listener; /* taken over, also on error */
    struct directory *directory;    /* borrowed */
    /* Of a crew with backups: passes the statement on to the coordinator, and does not block. It is
     * made again until the directory says that it is recorded. */
    void (*send_backed)(void *user, const struct task_backed *backed);
    void *user;
};

struct server;

/* Waits for the generation's key, opens the memory (or gets it from the backup, when it lost it)
 * and serves in threads of its own. */
cadre_status server_start(
    const struct server_options *options, struct server **ret_server, struct cadre_error *error);

/* Waits until the directory has ended, then stops. CADRE_OK in order. */
cadre_status server_wait(struct server *server, struct cadre_error *error);

/* Stops at once; NULL is allowed. */
void server_stop(struct server *server);

#endif
