/* SPDX-License-Identifier: Apache-2.0
 * The control page: making and mapping it, breaking the group, and waiting on its words with a
 * futex. share.c opens it; the collectives wait and post through it. */
#include "worker/library/mesh/wire/group.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

#define ODD_BIT        UINT32_C(1)
#define AWAKE_US       UINT64_C(100)  /* then a waiter sleeps */
#define REASON_US      UINT64_C(5000) /* for the breaker of the group to write the reason */
#define SPINS_A_TURN   64
#define SPIN_TURNS     8
#define YIELDS_A_TURN  4
#define SETTLE_US      UINT64_C(100000)
#define STALL_FIRST_US UINT64_C(1000000)
#define STALL_AGAIN_US UINT64_C(5000000)
#define SLEEP_US_MAX   UINT64_C(1000000) /* another process may have spoilt the count of sleepers */
#define PAGE_BYTES     ((size_t)4096)
#define SEALS          (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

_Static_assert(sizeof(struct group_head) <= PAGE_BYTES, "the head is one page");
_Static_assert(offsetof(struct group_post, payload) == 48, "16 bytes are share the stamp's line");

/* Spinning pays only while every slot can have a CPU. */
static bool choose_spin(uint32_t slots)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    bool known = sched_getaffinity(0, sizeof set, &set) == 0;
    return known && slots <= (uint32_t)CPU_COUNT(&set);
}

static size_t staging_bytes(uint32_t slots, size_t chunk_bytes)
{
    return ((size_t)2 * slots + 6) * chunk_bytes;
}

static void group_measure(struct group *group, uint32_t slots, size_t chunk_bytes)
{
    *group = (struct group){
        .slot_count = slots, .chunk_bytes = chunk_bytes, .fd = -1, .spins = choose_spin(slots)};
    size_t page = PAGE_BYTES + slots * sizeof(struct group_slot);
    page = (page + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    group->bytes = page + staging_bytes(slots, chunk_bytes);
}

static cadre_status wire_group_map(struct group *group, struct cadre_error *error)
{
    int flags = group->fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    uint8_t *memory =
        mmap(NULL, group->bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, group->fd, 0);
    if (memory == MAP_FAILED) {
        return cadre_error_errno(
            error, errno, "map the control page of %" PRIu32 " replicas", group->slot_count);
    }
    group->head = (struct group_head *)(void *)memory;
    group->slots = (struct group_slot *)(void *)(memory + PAGE_BYTES);
    if (group->chunk_bytes > 0) {
        group->staging =
            memory + group->bytes - staging_bytes(group->slot_count, group->chunk_bytes);
    }
    return CADRE_OK;
}

cadre_status group_open(
    struct group *group, uint32_t slots, size_t chunk_bytes, bool shared, struct cadre_error *error)
{
    group_measure(group, slots, chunk_bytes);
    if (shared) {
        group->fd = memfd_create("cadre-mesh", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (group->fd < 0 || ftruncate(group->fd, (off_t)group->bytes) != 0 ||
            fcntl(group->fd, F_ADD_SEALS, SEALS) != 0) {
            return cadre_error_errno(
                error, errno, "make a control page of %zu bytes", group->bytes);
        }
    }
    return wire_group_map(group, error);
}

cadre_status group_map(
    struct group *group, uint32_t slots, size_t chunk_bytes, int fd, struct cadre_error *error)
{
    group_measure(group, slots, chunk_bytes);
    group->fd = fd;
    struct stat stat;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &stat) != 0 ||
        (uint64_t)stat.st_size != group->bytes) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "what the first task of this host sent is no control page of %" PRIu32 " replicas",
            slots);
    }
    return wire_group_map(group, error);
}

void group_close(struct group *group)
{
    if (group->head != NULL) {
        munmap(group->head, group->bytes);
    }
    if (group->bytes > 0 && group->fd >= 0) {
        close(group->fd);
    }
    *group = (struct group){.fd = -1};
}

static void group_wake(const struct group *group, const _Atomic uint32_t *word)
{
    int verb = group->fd >= 0 ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE;
    syscall(SYS_futex, word, verb, INT_MAX, NULL, NULL, 0);
}

/* Changes all words of a slot without raising them, so that every sleeper wakes. */
static void group_disturb(struct group *group, uint32_t index)
{
    struct group_slot *slot = &group->slots[index];
    _Atomic uint32_t *counters[] = {&slot->posts[0].stamp, &slot->posts[1].stamp, &slot->done};
    for (unsigned word = 0; word < 3; word++) {
        atomic_fetch_or(counters[word], ODD_BIT);
        group_wake(group, counters[word]); /* whatever the count of sleepers is */
    }
}

void group_break(struct group *group, uint32_t rank, cadre_status code, const char *text)
{
    if (group->head == NULL) {
        return;
    }
    struct group_head *head = group->head;
    uint32_t whole = GROUP_WHOLE;
    if (atomic_compare_exchange_strong(&head->broken, &whole, GROUP_BREAKING)) {
        head->rank = rank;
        head->code = (uint32_t)code;
        snprintf(head->text, sizeof head->text, "%s", text);
        atomic_store(&head->broken, GROUP_BROKEN);
    }
    /* The thread that broke it first may have died before it got here. */
    for (uint32_t i = 0; i < group->slot_count; i++) {
        group_disturb(group, i);
    }
}

void group_leave(struct group *group, uint32_t first_slot, uint32_t count)
{
    for (uint32_t i = first_slot; i < first_slot + count; i++) {
        atomic_store(&group->slots[i].left, 1);
    }
    atomic_fetch_add(&group->head->leaves, 1);
    for (uint32_t i = 0; i < group->slot_count; i++) {
        group_disturb(group, i);
    }
}

bool group_reason(const struct group *group, uint32_t *ret_rank, cadre_status *ret_code,
    char ret_text[GROUP_TEXT_BYTES])
{
    const struct group_head *head = group->head;
    uint64_t end_us = clock_monotonic_us() + REASON_US;
    while (atomic_load(&head->broken) != GROUP_BROKEN) {
        if (clock_monotonic_us() >= end_us) {
            return false;
        }
        sched_yield();
    }
    *ret_rank = head->rank;
    *ret_code =
        head->code == (uint32_t)CADRE_DEADLINE_EXCEEDED ? CADRE_DEADLINE_EXCEEDED : CADRE_ABORTED;
    memcpy(ret_text, head->text, GROUP_TEXT_BYTES);
    ret_text[GROUP_TEXT_BYTES - 1] = '\0';
    return true;
}

uint8_t *group_stage(const struct group *group, uint32_t slot, unsigned parity)
{
    return group->staging + ((size_t)2 * slot + parity) * group->chunk_bytes;
}

uint8_t *group_result(const struct group *group, unsigned index)
{
    return group->staging + ((size_t)2 * group->slot_count + 2 * index) * group->chunk_bytes;
}

static void group_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Whether some slot was left with this word under `value`; that one is the leaver. */
static bool has_leaver(struct group *group, uint32_t slot, const _Atomic uint32_t *word,
    uint32_t value, struct group_wait_limits *wait_limits)
{
    ptrdiff_t at = (const char *)word - (const char *)&group->slots[slot];
    for (uint32_t i = 0; i < group->slot_count; i++) {
        const char *same = (const char *)&group->slots[i] + at;
        if (atomic_load(&group->slots[i].left) != 0 &&
            !group_reached((const _Atomic uint32_t *)(const void *)same, value)) {
            wait_limits->leaver = i;
            return true;
        }
    }
    return false;
}

/* Sleeps once, until the word changes or the time is over. The word is read before the rest: a
 * breaker or leaver changes the word after that. `leaves` is the count that was checked. */
static void sleep_once(struct group *group, uint32_t slot, const _Atomic uint32_t *word,
    uint32_t value, uint32_t leaves, uint64_t left_us)
{
    _Atomic uint32_t *sleepers = &group->slots[slot].sleepers;
    struct timespec span = {
        .tv_sec = (time_t)(left_us / CADRE_US_PER_S),
        .tv_nsec = (long)(left_us % CADRE_US_PER_S) * 1000,
    };
    atomic_fetch_add(sleepers, 1);
    uint32_t seen = atomic_load(word);
    bool over = atomic_load(&group->head->broken) != GROUP_WHOLE ||
                atomic_load(&group->head->leaves) != leaves;
    if ((int32_t)(seen - value) < 0 && !over) {
        int verb = group->fd >= 0 ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE;
        syscall(SYS_futex, word, verb, seen, &span, NULL, 0);
    }
    atomic_fetch_sub(sleepers, 1);
}

/* Reports the slot that this replica waits for when that is due. Returns how long to sleep at
 * most. */
static uint64_t group_look(struct group_wait_limits *wait_limits, uint32_t slot, uint64_t now_us)
{
    uint64_t waited_us = now_us - wait_limits->began_us;
    uint64_t left_us = SLEEP_US_MAX;
    if (wait_limits->stalled != NULL) {
        if (waited_us >= wait_limits->report_at_us) {
            wait_limits->report_at_us = waited_us + STALL_AGAIN_US;
            wait_limits->stalled(wait_limits->user, slot, waited_us);
        }
        uint64_t report_at_us = wait_limits->report_at_us - waited_us;
        left_us = report_at_us < left_us ? report_at_us : left_us;
    }
    if (wait_limits->timeout_us > 0) {
        uint64_t due_us =
            wait_limits->timeout_us > waited_us ? wait_limits->timeout_us - waited_us : 0;
        left_us = due_us < left_us ? due_us : left_us;
    }
    return left_us;
}

/* One turn of waiting that does not sleep: spinning first, if every slot has a CPU; then the CPU is
 * yielded, because the thread that is waited for may need it. */
static bool try_once(const _Atomic uint32_t *word, uint32_t value, bool spins)
{
    for (unsigned i = 0; i < (spins ? SPINS_A_TURN : YIELDS_A_TURN); i++) {
        if (group_reached(word, value)) {
            return true;
        }
        if (spins) {
            group_relax();
        } else {
            sched_yield();
        }
    }
    return group_reached(word, value);
}

cadre_status group_wait(struct group *group, uint32_t slot, const _Atomic uint32_t *word,
    uint32_t value, struct group_wait_limits *wait_limits)
{
    uint64_t sleep_at_us = 0;
    for (unsigned turn = 0;; turn++) {
        if (try_once(word, value, group->spins && turn < SPIN_TURNS)) {
            return CADRE_OK;
        }
        if (group_is_broken(group)) {
            return group_reached(word, value) ? CADRE_OK : CADRE_ABORTED;
        }
        uint32_t leaves = atomic_load(&group->head->leaves);
        if (leaves != 0 && has_leaver(group, slot, word, value, wait_limits)) {
            return CADRE_UNAVAILABLE;
        }
        uint64_t now_us = clock_monotonic_us();
        if (wait_limits->began_us == 0) {
            wait_limits->began_us = now_us;
            wait_limits->report_at_us = STALL_FIRST_US;
        }
        sleep_at_us = sleep_at_us == 0 ? now_us + AWAKE_US : sleep_at_us;
        uint64_t left_us = group_look(wait_limits, slot, now_us);
        if (left_us == 0) {
            return CADRE_DEADLINE_EXCEEDED;
        }
        if (now_us >= sleep_at_us) {
            sleep_once(group, slot, word, value, leaves, left_us);
        }
    }
}

void group_raise(struct group *group, uint32_t slot, _Atomic uint32_t *word, uint32_t value)
{
    /* A full fence, before the sleepers are counted. */
    atomic_exchange(word, value);
    if (atomic_load(&group->slots[slot].sleepers) > 0) {
        group_wake(group, word);
    }
}

bool group_touch_begin(struct group *group, uint32_t slot)
{
    atomic_store(&group->slots[slot].touching, 1);
    if (atomic_load(&group->head->broken) != GROUP_WHOLE) {
        atomic_store(&group->slots[slot].touching, 0);
        return false;
    }
    return true;
}

void group_touch_end(struct group *group, uint32_t slot)
{
    atomic_store_explicit(&group->slots[slot].touching, 0, memory_order_release);
}

void group_touch_settle(struct group *group, uint32_t slot)
{
    uint64_t end_us = 0;
    for (uint32_t i = 0; i < group->slot_count; i++) {
        while (i != slot && atomic_load(&group->slots[i].touching) != 0) {
            uint64_t now_us = clock_monotonic_us();
            end_us = end_us == 0 ? now_us + SETTLE_US : end_us;
            if (group->fd >= 0 && now_us >= end_us) {
                return;
            }
            sched_yield();
        }
    }
}
