/* SPDX-License-Identifier: Apache-2.0
 * A parameter server: serves a store to the tasks of its ps job, and keeps the copy of another
 * server's store when the ps job has backups.
 *
 *     client ── frame: pull, push, gather, ... ──▶ loop threads (epoll), one state machine for each
 *            ◀── answer ──────────────────────     connection: a slow one does not delay another
 *
 *     push, with a backup:   each block ─┬─ the same ──▶ ps (k + 1) mod n applies it ──┬──▶ answer
 *                                        └──▶ applied here ────────────────────────────┘
 *
 * A push is answered when it is applied, and with a backup when the backup has applied it too. A
 * server whose backup is lost answers nothing before the coordinator has recorded that it has no
 * backup; then it answers alone, until the backup is back and was given the whole store again. */
#ifndef CADRE_PS_SERVER_SERVER_H
#define CADRE_PS_SERVER_SERVER_H

#include "worker/library/ps/directory.h"
#include "worker/library/ps/link/link.h"

struct server_options {
    uint32_t index;
    int memory_fd; /* as in store_options */
    uint64_t limit_bytes;
    uint32_t threads;               /* 0: by the number of processors, 1 to 4 */
    struct link_listener *listener; /* owned by the server, also on error */
    struct directory *directory;    /* borrowed */
    /* With backups: sends the report to the coordinator and does not block. It is called again
     * until the directory has the report as recorded. */
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
