/* SPDX-License-Identifier: Apache-2.0
 * The frames of a crashed thread. */
#include <execinfo.h>
#include <ucontext.h>

#include "worker/library/crash/crash_internal.h"

/* Frames of the handler itself, which come before those of the program. */
#define OWN_FRAMES_MAX 8

/* A function's frame may jump over the page that guards a stack. */
#define OVERFLOW_BYTES ((uintptr_t)64 * 1024)

struct registers {
    uintptr_t pc;
    uintptr_t stack;
    uintptr_t caller; /* where a function that just began returns to */
};

/* Zero on a processor that is not supported here. */
static struct registers registers_of(const void *context)
{
    struct registers registers = {0};
    const ucontext_t *state = context;
#if defined(__x86_64__)
    registers.pc = (uintptr_t)state->uc_mcontext.gregs[REG_RIP];
    registers.stack = (uintptr_t)state->uc_mcontext.gregs[REG_RSP];
    if (registers.pc < 4096 && registers.stack % sizeof(uintptr_t) == 0 && registers.stack != 0) {
        registers.caller = *(const uintptr_t *)registers.stack;
    }
#elif defined(__aarch64__)
    registers.pc = (uintptr_t)state->uc_mcontext.pc;
    registers.stack = (uintptr_t)state->uc_mcontext.sp;
    registers.caller = (uintptr_t)state->uc_mcontext.regs[30];
#else
    (void)state;
#endif
    return registers;
}

void crash_frames_prepare(void)
{
    void *frame[1];
    (void)backtrace(frame, 1); /* opens the library that unwinds */
}

void crash_frames_take(const void *context, struct crash_frames *ret_frames)
{
    void *found[CRASH_FRAMES_MAX + OWN_FRAMES_MAX];
    const struct registers registers = registers_of(context);
    int count = backtrace(found, CRASH_FRAMES_MAX + OWN_FRAMES_MAX);
    int first = 0;
    while (first < count && (uintptr_t)found[first] != registers.pc) {
        first++;
    }
    ret_frames->count = 0;
    if (first == count || registers.pc < 4096) { /* a call of an address that is no function */
        ret_frames->at[ret_frames->count++] = registers.pc;
        if (registers.caller != 0) {
            ret_frames->at[ret_frames->count++] = registers.caller;
        }
        return;
    }
    while (first < count && ret_frames->count < CRASH_FRAMES_MAX) {
        ret_frames->at[ret_frames->count++] = (uintptr_t)found[first++];
    }
}

bool crash_is_overflow(const void *context, uintptr_t address)
{
    const struct registers registers = registers_of(context);
    return registers.stack != 0 && address < registers.stack + 4096 &&
           address + OVERFLOW_BYTES >= registers.stack;
}
