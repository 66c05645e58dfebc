/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SPINS_MAX 2000

_Static_assert(sizeof(struct board) <= BOARD_BYTES, "a board is one page");

struct board *board_open(const char *path)
{
    int flags = path != NULL ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS;
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (path != NULL && fd < 0) {
        return NULL;
    }
    void *memory = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (fd >= 0) {
        close(fd);
    }
    return memory == MAP_FAILED ? NULL : memory;
}

bool board_barrier(struct board *board, int ranks)
{
    uint32_t turn = atomic_load(&board->turn);
    if (atomic_fetch_add(&board->arrived, 1) + 1 == (uint32_t)ranks) {
        atomic_store(&board->arrived, 0);
        atomic_store(&board->turn, turn + 1);
    }
    for (int spins = 0; atomic_load(&board->turn) == turn; spins++) {
        if (atomic_load(&board->failed)) {
            return false;
        }
        if (spins >= SPINS_MAX) {
            sched_yield();
        }
    }
    return !atomic_load(&board->failed);
}

double board_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double board_took_s(const struct board *board, int ranks)
{
    double began_s = board->seats[0].began_s;
    double ended_s = board->seats[0].ended_s;
    for (int i = 1; i < ranks; i++) {
        const struct board_seat *seat = &board->seats[i];
        began_s = seat->began_s < began_s ? seat->began_s : began_s;
        ended_s = seat->ended_s > ended_s ? seat->ended_s : ended_s;
    }
    return ended_s - began_s;
}

void board_pin(int rank)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)(rank % (int)sysconf(_SC_NPROCESSORS_ONLN)), &set);
    sched_setaffinity(0, sizeof set, &set);
}
