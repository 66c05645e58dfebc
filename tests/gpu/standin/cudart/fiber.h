/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: fibers, several stacks of one thread that take turns. No system call
 * switches between them. AddressSanitizer is notified; code on fibers is compiled without
 * ThreadSanitizer, whose own fibers are slow to make. */
#ifndef CADRE_TESTS_GPU_STANDIN_FIBER_H
#define CADRE_TESTS_GPU_STANDIN_FIBER_H

#include <stdbool.h>
#include <stddef.h>

struct fiber {
    void *stack_pointer;
    char *stack; /* NULL: the thread's own stack */
    size_t stack_bytes;
    void *asan_saved;
    const void *asan_bottom;
    size_t asan_bytes;
};

/* The calling thread's own stack as a fiber. */
void fiber_of_thread(struct fiber *fiber);
/* False: no memory. `main` begins at the first switch to it, and never returns. */
bool fiber_open(struct fiber *fiber, void (*main)(void));
/* Not the one that runs. It may be in the middle of anything. */
void fiber_close(struct fiber *fiber);
/* Returns when another fiber switches to `from`. */
void fiber_switch(struct fiber *from, struct fiber *to);
/* The first call of a fiber's main. `from`: the fiber that switched to it. */
void fiber_entered(struct fiber *self, struct fiber *from);

/* Makes a signal's handler continue the thread in `function`, which never returns, on the stack of
 * `fiber`, whose own frames are given up. */
void fiber_divert(void *signal_context, struct fiber *fiber, void (*function)(void));

#endif
