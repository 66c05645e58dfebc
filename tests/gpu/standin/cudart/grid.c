/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: how a kernel runs. The blocks of a grid run one after the other on
 * their stream's thread. A fiber runs the threads of a block one after the other, until one of them
 * has to wait for others: then the next fiber runs those that have not begun. So a kernel whose
 * threads never synchronize costs a call for each of them, and the others two switches for each
 * synchronization. */
#include "tests/gpu/standin/cudart/cudart_internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "standin_device_code.h"
#include "tests/gpu/standin/cudart/fiber.h"

#define LANES              32
#define SIGNAL_STACK_BYTES ((size_t)64 << 10)

__thread uint3 threadIdx;
__thread uint3 blockIdx;
__thread dim3 blockDim;
__thread dim3 gridDim;

/* The lanes of a warp that synchronize under one mask. Their values alternate between two rows, so
 * that the fast may write the next value while the slow still read. */
struct meeting {
    struct meeting *next;
    unsigned int mask;
    unsigned int arrived;
    uint64_t round;
    uint64_t shown[2][LANES];
    unsigned int votes[2];
};

/* A thread of the block that waits; `round` is what it waits to go by. */
struct strand {
    struct fiber *fiber; /* NULL: not begun, or over */
    const uint64_t *waits_for;
    uint64_t round;
};

struct worker {
    struct fiber fiber;
    struct worker *next; /* among those with nothing to do */
};

struct runner {
    struct fiber scheduler;
    struct worker *running; /* NULL: the scheduler runs */
    struct worker *idle;
    struct worker *failed; /* in the middle of a thread that will never go on */
    void (*run)(void *packed);
    void *packed;
    unsigned int threads;
    unsigned int begun;
    unsigned int over;
    unsigned int at;                                /* the thread that runs */
    unsigned int gone[STANDIN_THREADS_MAX / LANES]; /* lanes that are over */
    uint64_t round;                                 /* of the block */
    unsigned int arrived;
    int votes[2];
    struct meeting *meetings[STANDIN_THREADS_MAX / LANES];
    struct meeting *spare;
    struct strand strands[STANDIN_THREADS_MAX];
    cudaError_t error;
    void *fault_address;
    void *signal_stack;
};

static __thread struct runner *now;

static uint3 place_of(unsigned int thread)
{
    return (uint3){.x = thread % blockDim.x,
        .y = thread / blockDim.x % blockDim.y,
        .z = thread / blockDim.x / blockDim.y};
}

static void to_scheduler(struct worker *self)
{
    now->running = NULL;
    fiber_switch(&self->fiber, &now->scheduler);
}

/* The thread that runs waits until *waits_for is another round. */
static void wait_for(const uint64_t *waits_for)
{
    struct runner *runner = now;
    struct worker *self = runner->running;
    unsigned int at = runner->at;
    struct strand *strand = &runner->strands[at];
    strand->fiber = &self->fiber;
    strand->waits_for = waits_for;
    strand->round = *waits_for;
    to_scheduler(self);
    runner->running = self;
    runner->at = at;
    strand->fiber = NULL;
    threadIdx = place_of(at);
}

/* --- meetings --- */

static void block_may_go_on(struct runner *runner)
{
    if (runner->arrived > 0 && runner->arrived == runner->threads - runner->over) {
        runner->arrived = 0;
        runner->round++;
        runner->votes[runner->round & 1] = 0;
    }
}

int standinBlockMeets(int predicate)
{
    struct runner *runner = now;
    uint64_t round = runner->round;
    runner->votes[round & 1] += predicate != 0;
    runner->arrived++;
    if (runner->arrived == runner->threads - runner->over) {
        block_may_go_on(runner);
    } else {
        wait_for(&runner->round);
    }
    return runner->votes[round & 1];
}

/* The lanes of a warp that there are and that are not over. */
static unsigned int lanes_alive(const struct runner *runner, unsigned int warp)
{
    unsigned int left = runner->threads - warp * LANES;
    unsigned int all = left >= LANES ? 0xffffffffu : (1u << left) - 1;
    return all & ~runner->gone[warp];
}

static void warp_may_go_on(struct runner *runner, unsigned int warp, struct meeting *meeting)
{
    unsigned int wanted = meeting->mask & lanes_alive(runner, warp);
    if (meeting->arrived != 0 && (meeting->arrived & wanted) == wanted) {
        meeting->arrived = 0;
        meeting->round++;
        meeting->votes[meeting->round & 1] = 0;
    }
}

static _Noreturn void fail_kernel(cudaError_t error)
{
    now->error = error;
    now->failed = now->running;
    to_scheduler(now->running);
    abort(); /* no fiber switches back to it */
}

static struct meeting *find_meeting(struct runner *runner, unsigned int warp, unsigned int mask)
{
    struct meeting *meeting = runner->meetings[warp];
    while (meeting != NULL && meeting->mask != mask) {
        meeting = meeting->next;
    }
    if (meeting == NULL) {
        meeting = runner->spare != NULL ? runner->spare : malloc(sizeof(*meeting));
        if (meeting == NULL) {
            fail_kernel(cudaErrorLaunchOutOfResources);
        }
        runner->spare = meeting == runner->spare ? meeting->next : runner->spare;
        memset(meeting, 0, sizeof(*meeting));
        meeting->mask = mask;
        meeting->next = runner->meetings[warp];
        runner->meetings[warp] = meeting;
    }
    return meeting;
}

/* Returns the row that the lanes of this round showed their values in. */
static unsigned int meet_warp(
    unsigned int mask, uint64_t value, bool vote, struct meeting **ret_meeting)
{
    struct runner *runner = now;
    unsigned int warp = runner->at / LANES;
    unsigned int lane = runner->at % LANES;
    if ((mask >> lane & 1) == 0) {
        fprintf(stderr, "stand-in: lane %u is not in the mask %08x that it gave\n", lane, mask);
        fail_kernel(cudaErrorLaunchFailure);
    }
    struct meeting *meeting = find_meeting(runner, warp, mask);
    uint64_t round = meeting->round;
    meeting->shown[round & 1][lane] = value;
    meeting->votes[round & 1] |= vote ? 1u << lane : 0;
    meeting->arrived |= 1u << lane;
    warp_may_go_on(runner, warp, meeting);
    if (meeting->round == round) {
        wait_for(&meeting->round);
    }
    *ret_meeting = meeting;
    return round & 1;
}

uint64_t standinWarpMeets(unsigned int mask, uint64_t value, unsigned int lane)
{
    struct meeting *meeting;
    unsigned int row = meet_warp(mask, value, false, &meeting);
    return lane < LANES && (mask >> lane & 1) != 0 ? meeting->shown[row][lane] : value;
}

unsigned int standinWarpBallot(unsigned int mask, int predicate)
{
    struct meeting *meeting;
    unsigned int row = meet_warp(mask, 0, predicate != 0, &meeting);
    return meeting->votes[row];
}

unsigned int standinLane(void)
{
    return now->at % LANES;
}

unsigned int standinActiveMask(void)
{
    return lanes_alive(now, now->at / LANES);
}

long long standinClock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (long long)time.tv_sec * 1000000000 + time.tv_nsec;
}

void standinTrap(void)
{
    fail_kernel(cudaErrorLaunchFailure);
}

/* --- threads --- */

static void thread_is_over(struct runner *runner, unsigned int thread)
{
    unsigned int warp = thread / LANES;
    runner->over++;
    runner->gone[warp] |= 1u << thread % LANES;
    block_may_go_on(runner);
    for (struct meeting *meeting = runner->meetings[warp]; meeting != NULL;
         meeting = meeting->next) {
        warp_may_go_on(runner, warp, meeting);
    }
}

static void worker_main(void)
{
    struct runner *runner = now;
    struct worker *self = runner->running;
    fiber_entered(&self->fiber, &runner->scheduler);
    for (;;) {
        while (runner->begun < runner->threads) {
            unsigned int thread = runner->begun++;
            runner->at = thread;
            threadIdx = place_of(thread);
            runner->run(runner->packed);
            thread_is_over(runner, thread);
        }
        self->next = runner->idle;
        runner->idle = self;
        to_scheduler(self);
    }
}

static void resume(struct runner *runner, struct fiber *fiber)
{
    runner->running = (struct worker *)(void *)fiber; /* its first member */
    fiber_switch(&runner->scheduler, fiber);
}

static bool begin_more(struct runner *runner)
{
    struct worker *worker = runner->idle;
    if (worker != NULL) {
        runner->idle = worker->next;
    } else {
        worker = malloc(sizeof(*worker));
        if (worker == NULL || !fiber_open(&worker->fiber, worker_main)) {
            free(worker);
            runner->error = cudaErrorLaunchOutOfResources;
            return false;
        }
    }
    resume(runner, &worker->fiber);
    return true;
}

/* The stacks of a block that was given up. */
static void give_up_block(struct runner *runner)
{
    if (runner->failed != NULL) {
        fiber_close(&runner->failed->fiber);
        free(runner->failed);
        runner->failed = NULL;
    }
    for (unsigned int i = 0; i < runner->threads; i++) {
        struct fiber *fiber = runner->strands[i].fiber;
        if (fiber != NULL) {
            runner->strands[i].fiber = NULL;
            fiber_close(fiber);
            free(fiber);
        }
    }
}

static void run_block(struct runner *runner)
{
    runner->begun = 0;
    runner->over = 0;
    runner->arrived = 0;
    runner->votes[0] = runner->votes[1] = 0;
    memset(runner->gone, 0, sizeof(runner->gone));
    while (runner->error == cudaSuccess && runner->begun < runner->threads) {
        (void)begin_more(runner);
    }
    while (runner->error == cudaSuccess && runner->over < runner->threads) {
        bool any = false;
        for (unsigned int i = 0; i < runner->threads && runner->error == cudaSuccess; i++) {
            const struct strand *strand = &runner->strands[i];
            if (strand->fiber != NULL && *strand->waits_for != strand->round) {
                any = true;
                resume(runner, strand->fiber);
            }
        }
        if (!any && runner->error == cudaSuccess) {
            fprintf(stderr,
                "stand-in: the threads of block %u,%u,%u wait for each other at "
                "different places\n",
                blockIdx.x, blockIdx.y, blockIdx.z);
            runner->error = cudaErrorLaunchTimeout;
        }
    }
    for (unsigned int warp = 0; warp < STANDIN_THREADS_MAX / LANES; warp++) {
        while (runner->meetings[warp] != NULL) {
            struct meeting *meeting = runner->meetings[warp];
            runner->meetings[warp] = meeting->next;
            meeting->next = runner->spare;
            runner->spare = meeting;
        }
    }
}

/* --- kernels that go where there is no memory --- */

static struct sigaction old_segv;
static struct sigaction old_bus;

static void after_fault(void)
{
    fprintf(stderr,
        "stand-in: thread %u,%u,%u of block %u,%u,%u reached for %p, where the device "
        "has no block of memory\n",
        threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z,
        now->fault_address);
    fail_kernel(cudaErrorIllegalAddress);
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    struct runner *runner = now;
    if (runner != NULL && runner->running != NULL) {
        runner->fault_address = info->si_addr;
        fiber_divert(context, &runner->running->fiber, after_fault);
        return;
    }
    const struct sigaction *old = signal_number == SIGSEGV ? &old_segv : &old_bus;
    if ((old->sa_flags & SA_SIGINFO) != 0) {
        old->sa_sigaction(signal_number, info, context);
    } else if (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN) {
        (void)sigaction(signal_number, old, NULL); /* and it happens again */
    } else {
        old->sa_handler(signal_number);
    }
}

/* The program, its tests above all, may have installed another one. */
static void install_handler_locked(int signal_number, struct sigaction *old)
{
    struct sigaction present;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (sigaction(signal_number, NULL, &present) == 0 &&
        ((present.sa_flags & SA_SIGINFO) == 0 || present.sa_sigaction != on_fault)) {
        *old = present;
        (void)sigaction(signal_number, &action, NULL);
    }
}

/* The calling thread's, with a stack for signals in case a kernel's stack is too small. */
static struct runner *find_runner(void)
{
    if (now == NULL) {
        now = calloc(1, sizeof(*now));
        stack_t present;
        if (now != NULL && sigaltstack(NULL, &present) == 0 &&
            (present.ss_flags & SS_DISABLE) != 0) {
            now->signal_stack = malloc(SIGNAL_STACK_BYTES);
            stack_t own = {.ss_sp = now->signal_stack, .ss_size = SIGNAL_STACK_BYTES};
            (void)(now->signal_stack != NULL && sigaltstack(&own, NULL) == 0);
        }
    }
    return now;
}

void standin_runner_end(void)
{
    struct runner *runner = now;
    if (runner == NULL) {
        return;
    }
    while (runner->idle != NULL) {
        struct worker *worker = runner->idle;
        runner->idle = worker->next;
        fiber_close(&worker->fiber);
        free(worker);
    }
    while (runner->spare != NULL) {
        struct meeting *meeting = runner->spare;
        runner->spare = meeting->next;
        free(meeting);
    }
    if (runner->signal_stack != NULL) {
        stack_t none = {.ss_flags = SS_DISABLE};
        (void)sigaltstack(&none, NULL);
        free(runner->signal_stack);
    }
    free(runner);
    now = NULL;
}

/* --- grids --- */

cudaError_t standin_grid_run(dim3 grid, dim3 block, void (*run)(void *packed), void *packed)
{
    struct runner *runner = find_runner();
    if (runner == NULL) {
        return cudaErrorLaunchOutOfResources;
    }
    pthread_mutex_lock(&standin_mutex);
    install_handler_locked(SIGSEGV, &old_segv);
    install_handler_locked(SIGBUS, &old_bus);
    standin_window_open_locked(standin_stream_running());
    pthread_mutex_unlock(&standin_mutex);
    fiber_of_thread(&runner->scheduler);
    runner->run = run;
    runner->packed = packed;
    runner->threads = block.x * block.y * block.z;
    runner->error = cudaSuccess;
    gridDim = grid;
    blockDim = block;
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    for (uint64_t i = 0; i < blocks && runner->error == cudaSuccess; i++) {
        blockIdx = (uint3){.x = (unsigned int)(i % grid.x),
            .y = (unsigned int)(i / grid.x % grid.y),
            .z = (unsigned int)(i / grid.x / grid.y)};
        run_block(runner);
    }
    if (runner->error != cudaSuccess) {
        give_up_block(runner);
    }
    return runner->error;
}
