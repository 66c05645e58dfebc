/* SPDX-License-Identifier: Apache-2.0
 * Cross-memory attach: system calls that copy between the own memory and that of another task of
 * the host, wherever its program allocated it (process_vm_readv(2), process_vm_writev(2)). The
 * system permits them between processes of one user that are not hidden from each other
 * (ptrace(2), PTRACE_MODE_ATTACH_REALCREDS), and not in every container.
 *
 * The calls name a process by its number, which another process may have by the time of the call.
 * So each task maps a page at a random address, its *sentinel*, which it sends to the other tasks
 * over the links. Every write begins with the sentinel, in the same system call: it fails, and
 * changes nothing, in a process that has none there, and in a task that has revoked its own.
 *
 *     attach_write to a task:   sentinel, piece, piece, ...      in this order, until one fails */
#ifndef CADRE_WORKER_MESH_CONNECT_ATTACH_H
#define CADRE_WORKER_MESH_CONNECT_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define ATTACH_PIECES_MAX 63

/* This task's, for the others to write through. */
struct attach_sentinel {
    void *page;     /* NULL: none */
    uint64_t value; /* its content, which never changes */
};

/* How this task reaches another one, or itself. */
struct attach_peer {
    pid_t pid;         /* as this process has it; 0: not at all */
    uint64_t sentinel; /* its address there */
    uint64_t value;
};

/* Pieces of memory of one task, packed one after the other in what is copied. */
struct attach_list {
    struct iovec pieces[1 + ATTACH_PIECES_MAX]; /* the first is the sentinel's */
    size_t count;
    size_t bytes;
};

/* Where it fails there is no page, and no task can attach to this one. */
void mesh_attach_open(struct attach_sentinel *sentinel);
/* Any thread, any number of times: no write to this task's memory begins from now on. One that has
 * begun may still be in it. */
void mesh_attach_revoke(const struct attach_sentinel *sentinel);
/* Accepts what a failed open left, and a zeroed one. */
void mesh_attach_close(struct attach_sentinel *sentinel);

/* Whether the system lets this task attach to that one. */
bool mesh_attach_probe(const struct attach_peer *peer);

/* An empty list. */
static inline void mesh_attach_clear(struct attach_list *list)
{
    list->count = 0;
    list->bytes = 0;
}

/* Adds a piece; the list has room. */
void mesh_attach_add(struct attach_list *list, uint64_t address, size_t bytes);

/* Copies all pieces of that task to `into`, list->bytes. False: not all of them could be read. */
bool mesh_attach_read(const struct attach_peer *peer, struct attach_list *list, void *into);

/* Copies `from`, pieces of the own memory, to `into`, as many bytes of that task's. False: not all
 * of them could be written. */
bool mesh_attach_write(
    const struct attach_peer *peer, struct attach_list *into, struct attach_list *from);

#endif
