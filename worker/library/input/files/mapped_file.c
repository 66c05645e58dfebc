/* SPDX-License-Identifier: Apache-2.0
 * Mapped files and the handler of SIGBUS; see mapped_file.h. */
#include "worker/library/input/files/mapped_file.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"

#define CACHE_LINE         64
#define PREFETCH_BYTES_MAX 512

/* A row in the list that the handler reads. Rows are never freed, for a handler may be reading one
 * on another thread, but used again. `version` is odd while a row changes. */
struct mapping {
    atomic_uint version;
    atomic_uintptr_t start;
    atomic_size_t size; /* whole pages; 0: not in use */
    atomic_bool damaged;
    struct mapping *next; /* never changes once the row is in the list */
    struct mapping *next_free;
};

static _Atomic(struct mapping *) mappings;
static pthread_mutex_t mappings_lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by the lock. */
static struct mapping *free_rows;
static size_t mapped_count;
static bool installed;
static struct sigaction before;
static uintptr_t page_bytes;

/* The row whose mapping `address` lies in; no reader uses a row that is being changed. */
static struct mapping *find_mapping(uintptr_t address)
{
    for (struct mapping *row = atomic_load(&mappings); row != NULL; row = row->next) {
        unsigned version = atomic_load(&row->version);
        uintptr_t start = atomic_load(&row->start);
        size_t size = atomic_load(&row->size);
        if (version % 2 == 0 && version == atomic_load(&row->version) && address >= start &&
            address - start < size) {
            return row;
        }
    }
    return NULL;
}

/* As if ours had not been there. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    if ((before.sa_flags & SA_SIGINFO) != 0) {
        before.sa_sigaction(number, info, context);
        return;
    }
    bool by_program = info->si_code <= 0; /* sent with kill, not met while reading memory */
    if (before.sa_handler == SIG_IGN && by_program) {
        return;
    }
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
        return;
    }
    /* The default: the instruction is met again, or the signal sent again, and ends the process. */
    struct sigaction standard = {.sa_handler = SIG_DFL};
    sigaction(SIGBUS, &standard, NULL);
    if (by_program) {
        raise(SIGBUS);
    }
}

/* Only calls that a handler may make. */
static void handle_bus_error(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    uintptr_t address = (uintptr_t)info->si_addr;
    struct mapping *row = info->si_code > 0 ? find_mapping(address) : NULL;
    if (row == NULL) {
        pass_on(number, info, context);
        return;
    }
    /* The mark comes first: who sees the zeros sees it too. */
    atomic_store(&row->damaged, true);
    void *page = (void *)(address & ~(page_bytes - 1)); /* NOLINT(performance-no-int-to-ptr) */
    /* The bare call: what sanitizers put around mmap is not made for handlers. */
    if (syscall(SYS_mmap, page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
            0) == -1) {
        pass_on(number, info, context);
    }
    errno = kept;
}

/* Once. Where the program has put a handler of its own over ours, it may pass on what it does not
 * know or not: nothing more is mapped. */
static cadre_status mapped_file_install(struct cadre_error *error)
{
    struct sigaction now;
    struct sigaction ours = {
        .sa_sigaction = handle_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    if (sigaction(SIGBUS, NULL, &now) != 0) {
        return cadre_error_errno(error, errno, "cannot look at the handler of SIGBUS");
    }
    bool is_ours = (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == handle_bus_error;
    if (installed && !is_ours) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the program has replaced the handler of SIGBUS that guards mapped files");
    }
    if (installed) {
        return CADRE_OK;
    }
    before = now; /* known before it can be called */
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&ours.sa_mask);
    if (sigaction(SIGBUS, &ours, NULL) != 0) {
        return cadre_error_errno(error, errno, "cannot install a handler of SIGBUS");
    }
    installed = true;
    return CADRE_OK;
}

static void set_row(struct mapping *row, uintptr_t start, size_t size)
{
    atomic_fetch_add(&row->version, 1);
    atomic_store(&row->start, start);
    atomic_store(&row->size, size);
    atomic_store(&row->damaged, false);
    atomic_fetch_add(&row->version, 1);
}

/* A row that is not in use is at free_rows then; false without memory. With the lock. */
static bool have_row(void)
{
    struct mapping *row = free_rows == NULL ? calloc(1, sizeof *row) : NULL;
    if (row != NULL) {
        row->next = atomic_load(&mappings);
        atomic_store(&mappings, row);
        free_rows = row;
    }
    return free_rows != NULL;
}

static cadre_status mapped_file_map(
    struct mapped_file *file, int fd, uint64_t size, struct cadre_error *error)
{
    CADRE_TRY(mapped_file_install(error));
    void *start = MAP_FAILED;
    if (mapped_count == MAPPED_FILES_MAX) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%d files are mapped, which is as many as may be at a time", MAPPED_FILES_MAX);
    }
    if (!have_row() || size > SIZE_MAX - page_bytes || fault_point("input.map")) {
        errno = ENOMEM;
    } else {
        start = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    }
    if (start == MAP_FAILED) {
        return cadre_error_errno(
            error, errno, "cannot map a file of %llu bytes", (unsigned long long)size);
    }
    size_t whole = ((size_t)size + page_bytes - 1) / page_bytes * page_bytes;
    struct mapping *row = free_rows;
    free_rows = row->next_free;
    mapped_count++;
    set_row(row, (uintptr_t)start, whole);
    *file = (struct mapped_file){.bytes = start, .size = size, .mapping = row};
    return CADRE_OK;
}

cadre_status mapped_file_open(
    struct mapped_file *file, int fd, uint64_t size, struct cadre_error *error)
{
    CADRE_ASSERT(size >= 1);
    *file = (struct mapped_file){0};
    pthread_mutex_lock(&mappings_lock);
    cadre_status status = mapped_file_map(file, fd, size, error);
    pthread_mutex_unlock(&mappings_lock);
    return status;
}

bool mapped_file_copy(const struct mapped_file *file, uint64_t offset, void *to, size_t count)
{
    CADRE_ASSERT(offset <= file->size && count <= file->size - offset);
    if (atomic_load_explicit(&file->mapping->damaged, memory_order_relaxed)) {
        return false; /* each page that is met missing would cost the process a mapping */
    }
    memcpy(to, file->bytes + offset, count);
    /* The question whether it met a page that was not there is asked after the copy. (Another
     * thread may have met it first; processors that let loads overtake each other might then miss
     * the mark, and the check of the frame finds the zeros.) */
    atomic_signal_fence(memory_order_seq_cst);
    return !atomic_load_explicit(&file->mapping->damaged, memory_order_acquire);
}

void mapped_file_prefetch(const struct mapped_file *file, uint64_t offset, size_t count)
{
    const uint8_t *from = file->bytes + offset;
    const uint8_t *end = from + (count < PREFETCH_BYTES_MAX ? count : PREFETCH_BYTES_MAX);
    from -= offset % CACHE_LINE; /* the mapping begins with a page */
    for (; from < end; from += CACHE_LINE) {
        __builtin_prefetch(from, 0, 2);
    }
}

void mapped_file_close(struct mapped_file *file)
{
    if (file->mapping != NULL) {
        /* The row goes first: once unmapped, the addresses may be anybody's. */
        pthread_mutex_lock(&mappings_lock);
        set_row(file->mapping, 0, 0);
        munmap((void *)(uintptr_t)file->bytes, (size_t)file->size);
        file->mapping->next_free = free_rows;
        free_rows = file->mapping;
        mapped_count--;
        pthread_mutex_unlock(&mappings_lock);
        *file = (struct mapped_file){0};
    }
}
