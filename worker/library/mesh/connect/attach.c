/* SPDX-License-Identifier: Apache-2.0
 * The sentinel's page, and the system calls. share.c opens it, reach.c and all_reduce_attached.c
 * copy. */
#include "worker/library/mesh/connect/attach.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"

#define PAGE_BYTES   ((size_t)4096)
#define ADDRESS_MASK (((UINT64_C(1) << 46) - 1) & ~(uint64_t)(PAGE_BYTES - 1))

void mesh_attach_open(struct attach_sentinel *sentinel)
{
    uint64_t drawn[2]; /* an address, which the system takes where it is free; the content */
    *sentinel = (struct attach_sentinel){.page = NULL};
    if (fault_point("mesh.attach_open") ||
        getrandom(drawn, sizeof drawn, 0) != (ssize_t)sizeof drawn) {
        return;
    }
    void *page = mmap((void *)(uintptr_t)(drawn[0] & ADDRESS_MASK), PAGE_BYTES,
        PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return;
    }
    (void)madvise(page, PAGE_BYTES, MADV_DONTFORK);
    memcpy(page, &drawn[1], sizeof drawn[1]);
    *sentinel = (struct attach_sentinel){.page = page, .value = drawn[1]};
}

void mesh_attach_revoke(const struct attach_sentinel *sentinel)
{
    if (sentinel->page != NULL) {
        (void)mprotect(sentinel->page, PAGE_BYTES, PROT_NONE);
    }
}

void mesh_attach_close(struct attach_sentinel *sentinel)
{
    if (sentinel->page != NULL) {
        munmap(sentinel->page, PAGE_BYTES);
    }
    *sentinel = (struct attach_sentinel){.page = NULL};
}

static struct iovec sentinel_piece(const struct attach_peer *peer)
{
    return (struct iovec){
        .iov_base = (void *)(uintptr_t)peer->sentinel, .iov_len = sizeof peer->value};
}

bool mesh_attach_probe(const struct attach_peer *peer)
{
    uint64_t value = 0;
    struct iovec into = {.iov_base = &value, .iov_len = sizeof value};
    struct iovec from = sentinel_piece(peer);
    return peer->pid > 0 && !fault_point("mesh.attach_probe") &&
           process_vm_readv(peer->pid, &into, 1, &from, 1, 0) == (ssize_t)sizeof value &&
           value == peer->value;
}

void mesh_attach_add(struct attach_list *list, uint64_t address, size_t bytes)
{
    CADRE_ASSERT(list->count < ATTACH_PIECES_MAX);
    list->pieces[1 + list->count++] =
        (struct iovec){.iov_base = (void *)(uintptr_t)address, .iov_len = bytes};
    list->bytes += bytes;
}

bool mesh_attach_read(const struct attach_peer *peer, struct attach_list *list, void *into)
{
    struct iovec all = {.iov_base = into, .iov_len = list->bytes};
    return !fault_point("mesh.attach_read") &&
           process_vm_readv(peer->pid, &all, 1, list->pieces + 1, list->count, 0) ==
               (ssize_t)list->bytes;
}

bool mesh_attach_write(
    const struct attach_peer *peer, struct attach_list *into, struct attach_list *from)
{
    uint64_t value = peer->value;
    CADRE_ASSERT(into->bytes == from->bytes);
    from->pieces[0] = (struct iovec){.iov_base = &value, .iov_len = sizeof value};
    into->pieces[0] = sentinel_piece(peer);
    return !fault_point("mesh.attach_write") &&
           process_vm_writev(peer->pid, from->pieces, 1 + from->count, into->pieces,
               1 + into->count, 0) == (ssize_t)(sizeof value + into->bytes);
}
