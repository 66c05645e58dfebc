/* SPDX-License-Identifier: Apache-2.0
 * The floor: two processes with memory in common. A message is one flag that the other waits for
 * busily, and one copy by the receiver. */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exchange.h"

struct side {
    _Alignas(64) _Atomic uint64_t sent;
    _Alignas(64) _Atomic uint64_t taken;
    _Alignas(64) char bytes[EXCHANGE_BYTES_MAX]; /* what is sent */
};

static struct side *sides;
static int rank;

static void await(_Atomic uint64_t *word, uint64_t value)
{
    for (unsigned turn = 1; atomic_load_explicit(word, memory_order_acquire) < value; turn++) {
        if (turn % 4096 == 0) {
            sched_yield();
        }
    }
}

static void post(struct side *side)
{
    atomic_fetch_add_explicit(&side->sent, 1, memory_order_release);
}

static void take(struct side *side, char *into, size_t bytes)
{
    uint64_t number = atomic_load_explicit(&side->taken, memory_order_relaxed) + 1;
    await(&side->sent, number);
    memcpy(into, side->bytes, bytes);
    atomic_store_explicit(&side->taken, number, memory_order_release);
}

static void settle(struct side *side)
{
    await(&side->taken, atomic_load_explicit(&side->sent, memory_order_relaxed));
}

static bool transfer(const char *from, size_t bytes)
{
    (void)from;
    (void)bytes;
    post(&sides[rank]);
    settle(&sides[rank]);
    return true;
}

static bool receive(char *into, size_t bytes)
{
    take(&sides[1 - rank], into, bytes);
    return true;
}

static bool both(const char *from, char *into, size_t bytes)
{
    (void)from;
    post(&sides[rank]);
    take(&sides[1 - rank], into, bytes);
    settle(&sides[rank]);
    return true;
}

int main(int argc, char **argv)
{
    sides =
        mmap(NULL, 2 * sizeof *sides, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sides == MAP_FAILED) {
        return 1;
    }
    pid_t child = fork();
    rank = child == 0;
    const struct exchange_subject subject = {.sent = sides[rank].bytes,
        .received = malloc(EXCHANGE_BYTES_MAX),
        .send = transfer,
        .receive = receive,
        .both = both};
    int status =
        subject.received == NULL || exchange_run(&subject, rank, argc > 1 ? argv[1] : NULL);
    int of_child = 0;
    return child == 0 ? status : waitpid(child, &of_child, 0) < 0 || of_child != 0 || status;
}
