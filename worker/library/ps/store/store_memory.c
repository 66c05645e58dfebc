/* SPDX-License-Identifier: Apache-2.0
 * See store_memory.h. Called by store.c. */
#include "worker/library/ps/store/store_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/library/ps/store/store_free_memory.h"

#define PAGE        ((uint64_t)4096)
#define GROWTH      ((uint64_t)64 << 10)
#define GROWTH_MANY ((uint64_t)2 << 20) /* once it has that much */
#define ADDRESSES   ((uint64_t)64 << 20)

static uint64_t up_to(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static uint64_t machine_bytes(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void *reserve_addresses(uint64_t bytes)
{
    return mmap(NULL, (size_t)bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static bool store_memory_reserve(struct store_memory *memory, uint64_t size)
{
    uint64_t least = up_to(size + ADDRESSES, PAGE);
    uint64_t wanted = memory->limit != 0 ? memory->limit : machine_bytes();
    wanted = up_to((wanted > size ? wanted : size) + ADDRESSES, PAGE);
    void *base = reserve_addresses(wanted);
    if (base == MAP_FAILED && errno == ENOMEM) {
        /* The process is limited (ulimit -v): takes half of what it can have, because other memory
         * has to fit too. */
        while (base == MAP_FAILED && wanted / 2 > least) {
            wanted = up_to(wanted / 2, PAGE);
            base = reserve_addresses(wanted);
        }
        uint64_t half = up_to(wanted / 2 > least ? wanted / 2 : least, PAGE);
        if (base != MAP_FAILED && half < wanted) {
            munmap((char *)base + half, (size_t)(wanted - half));
            wanted = half;
        }
    }
    if (base == MAP_FAILED) {
        return false;
    }
    memory->base = base;
    memory->reserved = wanted;
    return true;
}

/* Maps pages [from, to) of the file. */
static bool store_memory_map(struct store_memory *memory, uint64_t from, uint64_t to)
{
    if (from == to) {
        return true;
    }
    void *at = mmap(memory->base + from, (size_t)(to - from), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_FIXED | MAP_POPULATE, memory->fd, (off_t)from);
    if (at == MAP_FAILED) {
        return false;
    }
    memory->mapped = to;
    return true;
}

cadre_status memory_open(
    int fd, uint64_t limit, struct store_memory *ret_memory, struct cadre_error *error)
{
    *ret_memory = (struct store_memory){.fd = fd, .own = fd < 0, .limit = limit};
    if (fd < 0) {
        ret_memory->fd = memfd_create("cadre-ps", MFD_CLOEXEC);
        if (ret_memory->fd < 0) {
            return cadre_error_errno(error, errno, "ps: make memory for variables");
        }
    }
    cadre_status status = CADRE_OK;
    struct stat found = {0};
    if (fstat(ret_memory->fd, &found) != 0 || !S_ISREG(found.st_mode)) {
        status = cadre_error_set(error, CADRE_DATA_LOSS,
            "ps: descriptor %d is not a file in memory; a memfd is needed", ret_memory->fd);
    } else if (!store_memory_reserve(ret_memory, (uint64_t)found.st_size)) {
        status = cadre_error_errno(error, errno,
            "ps: reserve addresses for variables (raise the limit of this process, ulimit -v)");
    } else if (fallocate(ret_memory->fd, 0, 0, found.st_size) != 0 && found.st_size != 0) {
        status = cadre_error_errno(error, errno, "ps: get the memory of kept variables");
    } else if (!store_memory_map(ret_memory, 0, (uint64_t)found.st_size / PAGE * PAGE)) {
        status = cadre_error_errno(error, errno, "ps: map the memory of kept variables");
    }
    if (status != CADRE_OK) {
        memory_close(ret_memory);
        return status;
    }
    ret_memory->cut = found.st_size != 0 && ret_memory->mapped == 0;
    return CADRE_OK;
}

void memory_close(struct store_memory *memory)
{
    if (memory->base != NULL) {
        munmap(memory->base, (size_t)memory->reserved);
    }
    if (memory->own && memory->fd >= 0) {
        close(memory->fd);
    }
    *memory = (struct store_memory){.fd = -1};
}

static uint64_t left_of(const struct store_memory *memory)
{
    uint64_t left = memory->reserved - memory->mapped;
    if (memory->limit != 0) {
        uint64_t allowed =
            memory->limit > memory->mapped ? memory->limit - memory->mapped : (uint64_t)0;
        left = left < allowed ? left : allowed;
    }
    return left;
}

bool memory_grow(struct store_memory *memory, uint64_t bytes, uint64_t *ret_left)
{
    *ret_left = left_of(memory);
    if (bytes <= memory->mapped) {
        return true;
    }
    if (bytes - memory->mapped > *ret_left) {
        return false;
    }
    uint64_t to = up_to(bytes, memory->mapped >= GROWTH_MANY ? GROWTH_MANY : GROWTH);
    if (to - memory->mapped > *ret_left) {
        to = up_to(bytes, PAGE);
    }
    uint64_t room = store_free_memory();
    *ret_left = room < *ret_left ? room : *ret_left;
    uint64_t more = to - memory->mapped;
    return more <= *ret_left && fallocate(memory->fd, 0, (off_t)memory->mapped, (off_t)more) == 0 &&
           store_memory_map(memory, memory->mapped, to);
}

cadre_status memory_empty(struct store_memory *memory, struct cadre_error *error)
{
    if (memory->mapped != 0 &&
        mmap(memory->base, (size_t)memory->mapped, PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
        return cadre_error_errno(error, errno, "ps: give memory back");
    }
    memory->mapped = 0;
    memory->cut = false;
    if (ftruncate(memory->fd, 0) != 0) {
        return cadre_error_errno(error, errno, "ps: empty the memory of another generation");
    }
    return CADRE_OK;
}
