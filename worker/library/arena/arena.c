/* SPDX-License-Identifier: Apache-2.0
 * Two lists of free memory: one of whole pages over the file, and one for blocks under
 * ARENA_PAGED_BYTES inside chunks that come from the first and return to it. The system is never
 * called with the lock held, except to open. tensor_memory.c allocates from it, the mesh maps it in
 * other tasks. */
#include "worker/library/arena/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/base/poison.h"
#include "common/pure/assert.h"
#include "worker/library/arena/extents.h"

#define GIBIBYTE    (UINT64_C(1) << 30)
#define BYTES_LEAST ((uint64_t)64 << 20) /* a smaller arena is not useful */
#define CHUNK_BYTES ((uint64_t)1 << 20)  /* of small blocks; one free chunk is kept */

/* Since Linux 6.3; without it, these versions warn or refuse. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

enum state { UNOPENED, OPEN, REFUSED };

static struct {
    pthread_mutex_t lock;
    _Atomic enum state state;
    struct cadre_error refusal;
    _Atomic(char *) base; /* NULL unless open; set after bytes and fd */
    uint64_t bytes;
    int fd;
    struct extents pages;
    struct extents small;
    uint64_t paged_blocks; /* allocated, chunks of small ones included */
    uint64_t small_blocks;
    uint64_t chunks;
} arena = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* --- opening --- */

static uint64_t lesser_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* As large as the machine's memory: more can never be in use. A process whose address space is
 * limited needs the rest of it, and a file beyond its limit would be a signal. */
static uint64_t bytes_wanted(void)
{
    struct rlimit space = {.rlim_cur = RLIM_INFINITY};
    struct rlimit file = {.rlim_cur = RLIM_INFINITY};
    (void)getrlimit(RLIMIT_AS, &space);
    (void)getrlimit(RLIMIT_FSIZE, &file);
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = lesser_of(round_up(memory, GIBIBYTE), file.rlim_cur);
    bytes = lesser_of(bytes, space.rlim_cur == RLIM_INFINITY ? bytes : space.rlim_cur / 4);
    return bytes / CHUNK_BYTES * CHUNK_BYTES;
}

static int new_file(void)
{
    if (fault_point("arena.memfd")) {
        errno = ENOSYS;
        return -1;
    }
    int fd = memfd_create("cadre-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) {
        fd = memfd_create("cadre-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    }
    return fd;
}

static void *map_file(int fd, uint64_t bytes)
{
    if (fault_point("arena.map")) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
}

/* Only the thread that forked runs in a child, and the mapping of the arena is not inherited: see
 * arena.h. */
static void arena_on_fork(void)
{
    if (atomic_load(&arena.base) != NULL) {
        atomic_store(&arena.base, NULL);
        close(arena.fd);
        arena.fd = -1;
        cadre_error_set(&arena.refusal, CADRE_UNAVAILABLE,
            "a process that was forked has no memory to share; start it with exec");
        atomic_store(&arena.state, REFUSED);
    }
    pthread_mutex_init(&arena.lock, NULL);
}

/* Maps as much of what is wanted as there is room for. */
static char *map_most(int fd, uint64_t *ret_bytes)
{
    uint64_t bytes = bytes_wanted();
    while (bytes >= BYTES_LEAST) {
        void *base = map_file(fd, bytes);
        if (base != MAP_FAILED) {
            *ret_bytes = bytes;
            return base;
        }
        bytes = bytes / 2 / CHUNK_BYTES * CHUNK_BYTES;
    }
    return NULL;
}

/* A dump of the process would fill all holes. */
static bool arena_prepare_file(int fd, char *base, uint64_t bytes)
{
    return !fault_point("arena.settle") && ftruncate(fd, (off_t)bytes) == 0 &&
           fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0 &&
           madvise(base, bytes, MADV_DONTDUMP) == 0 && madvise(base, bytes, MADV_DONTFORK) == 0 &&
           extents_ready(&arena.pages, 1) && pthread_atfork(NULL, NULL, arena_on_fork) == 0;
}

static cadre_status open_once(struct cadre_error *error)
{
    uint64_t bytes = 0;
    errno = 0;
    int fd = new_file();
    char *base = fd < 0 ? NULL : map_most(fd, &bytes);
    if (base == NULL || !arena_prepare_file(fd, base, bytes)) {
        cadre_error_errno(error, errno != 0 ? errno : ENOMEM,
            "this process cannot share memory with others of its host (no %s)",
            fd < 0         ? "memory file"
            : base == NULL ? "address space for it"
                           : "sealed memory file");
        if (base != NULL) {
            munmap(base, bytes);
        }
        if (fd >= 0) {
            close(fd);
        }
        return error->code = CADRE_UNAVAILABLE;
    }
    uint64_t first = 0;
    uint64_t end = 0;
    extents_put(&arena.pages, 0, bytes, &first, &end);
    arena.fd = fd;
    arena.bytes = bytes;
    atomic_store(&arena.base, base);
    return CADRE_OK;
}

cadre_status arena_open(struct cadre_error *error)
{
    if (atomic_load_explicit(&arena.state, memory_order_acquire) == UNOPENED) {
        pthread_mutex_lock(&arena.lock);
        if (atomic_load(&arena.state) == UNOPENED) {
            cadre_status status = open_once(&arena.refusal);
            atomic_store(&arena.state, status == CADRE_OK ? OPEN : REFUSED);
        }
        pthread_mutex_unlock(&arena.lock);
    }
    if (atomic_load_explicit(&arena.state, memory_order_acquire) == REFUSED) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "%s", arena.refusal.text);
    }
    return CADRE_OK;
}

/* --- blocks --- */

/* Allocating the pages beforehand is cheaper than a fault for each, and missing memory is an error
 * and not a signal. A signal may interrupt it: then they come with the first touch. */
static bool arena_populate(uint64_t offset, uint64_t bytes)
{
    if (fault_point("arena.fill")) {
        return false;
    }
    return fallocate(arena.fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) == 0 ||
           errno == EINTR || errno == EOPNOTSUPP;
}

static void arena_punch_hole(uint64_t offset, uint64_t bytes)
{
    (void)fallocate(
        arena.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes);
}

static void give_pages(uint64_t offset, uint64_t bytes)
{
    uint64_t first = 0;
    uint64_t end = 0;
    arena_punch_hole(offset, bytes);
    pthread_mutex_lock(&arena.lock);
    extents_put(&arena.pages, offset, bytes, &first, &end);
    arena.paged_blocks--;
    pthread_mutex_unlock(&arena.lock);
}

/* `bytes` bytes of whole pages at a multiple of `align`. */
static bool get_pages(uint64_t bytes, uint64_t align, uint64_t *ret_offset)
{
    uint64_t taken = bytes + align - ARENA_PAGE;
    uint64_t from = 0;
    pthread_mutex_lock(&arena.lock);
    /* Between so many blocks, and around them, there are at most so many extents. */
    bool got = extents_ready(&arena.pages, arena.paged_blocks + 2) &&
               extents_take(&arena.pages, taken, &from);
    if (got) {
        uint64_t first = 0;
        uint64_t end = 0;
        uint64_t offset = round_up(from, align);
        if (offset > from) {
            extents_put(&arena.pages, from, offset - from, &first, &end);
        }
        if (offset + bytes < from + taken) {
            extents_put(&arena.pages, offset + bytes, from + taken - offset - bytes, &first, &end);
        }
        arena.paged_blocks++;
        *ret_offset = offset;
    }
    pthread_mutex_unlock(&arena.lock);
    if (got && !arena_populate(*ret_offset, bytes)) {
        give_pages(*ret_offset, bytes);
        got = false;
    }
    return got;
}

/* With the lock held. Two extents of small blocks have a block between them, or the end of a run of
 * chunks. */
static bool take_small(uint64_t bytes, uint64_t *ret_offset)
{
    bool got = extents_ready(&arena.small, arena.small_blocks + arena.chunks + 2) &&
               extents_take(&arena.small, bytes, ret_offset);
    arena.small_blocks += got;
    return got;
}

static bool get_small(uint64_t bytes, uint64_t *ret_offset)
{
    uint64_t chunk = 0;
    uint64_t first = 0;
    uint64_t end = 0;
    pthread_mutex_lock(&arena.lock);
    bool got = take_small(bytes, ret_offset);
    pthread_mutex_unlock(&arena.lock);
    if (got || !get_pages(CHUNK_BYTES, CHUNK_BYTES, &chunk)) {
        return got;
    }
    pthread_mutex_lock(&arena.lock);
    bool added = extents_ready(&arena.small, arena.small_blocks + arena.chunks + 2);
    if (added) {
        extents_put(&arena.small, chunk, CHUNK_BYTES, &first, &end);
        arena.chunks++;
        got = take_small(bytes, ret_offset);
    }
    pthread_mutex_unlock(&arena.lock);
    if (!added) {
        give_pages(chunk, CHUNK_BYTES);
    }
    return got;
}

/* Frees chunks that became empty, but for one, so that the next block does not allocate one
 * again. */
static void give_small(uint64_t offset, uint64_t bytes)
{
    uint64_t first = 0;
    uint64_t end = 0;
    uint64_t chunks = 0;
    pthread_mutex_lock(&arena.lock);
    extents_put(&arena.small, offset, bytes, &first, &end);
    arena.small_blocks--;
    first = round_up(first, CHUNK_BYTES);
    end = end / CHUNK_BYTES * CHUNK_BYTES;
    if (first < end && arena.small.bytes >= 2 * CHUNK_BYTES) {
        chunks = lesser_of(end - first, arena.small.bytes - CHUNK_BYTES) / CHUNK_BYTES;
        extents_cut(&arena.small, first, chunks * CHUNK_BYTES);
        arena.chunks -= chunks;
    }
    pthread_mutex_unlock(&arena.lock);
    for (uint64_t i = 0; i < chunks; i++) {
        give_pages(first + i * CHUNK_BYTES, CHUNK_BYTES);
    }
}

static uint64_t block_bytes(size_t bytes)
{
    return round_up(bytes, bytes < ARENA_PAGED_BYTES ? ARENA_ALIGN : ARENA_PAGE);
}

void *arena_get(size_t bytes)
{
    char *base = atomic_load_explicit(&arena.base, memory_order_acquire);
    CADRE_ASSERT(bytes > 0);
    if (base == NULL || bytes > arena.bytes || fault_point("arena.get")) {
        return NULL;
    }
    uint64_t offset = 0;
    bool got = bytes < ARENA_PAGED_BYTES ? get_small(block_bytes(bytes), &offset)
                                         : get_pages(block_bytes(bytes), ARENA_PAGE, &offset);
    if (!got) {
        return NULL;
    }
    UNPOISON(base + offset, block_bytes(bytes));
    return base + offset;
}

void arena_give(void *memory, size_t bytes)
{
    uint64_t offset = 0;
    bool ours = arena_locate(memory, bytes, &offset);
    CADRE_ASSERT(ours);
    POISON(memory, block_bytes(bytes));
    if (bytes < ARENA_PAGED_BYTES) {
        give_small(offset, block_bytes(bytes));
    } else {
        give_pages(offset, block_bytes(bytes));
    }
}

/* --- for other processes --- */

bool arena_locate(const void *memory, size_t bytes, uint64_t *ret_offset)
{
    const char *base = atomic_load_explicit(&arena.base, memory_order_acquire);
    uintptr_t offset = (uintptr_t)memory - (uintptr_t)base;
    if (base == NULL || offset >= arena.bytes || bytes > arena.bytes - offset) {
        return false;
    }
    *ret_offset = offset;
    return true;
}

int arena_fd(void)
{
    return atomic_load_explicit(&arena.base, memory_order_acquire) == NULL ? -1 : arena.fd;
}

uint64_t arena_bytes(void)
{
    return atomic_load_explicit(&arena.base, memory_order_acquire) == NULL ? 0 : arena.bytes;
}

void *arena_base(void)
{
    return atomic_load(&arena.base);
}
