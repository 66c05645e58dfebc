/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: see fiber.h. */
#include "tests/gpu/standin/cudart/fiber.h"

#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif

#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define STACK_BYTES ((size_t)256 << 10)
#else
#define STACK_BYTES ((size_t)128 << 10)
#endif
#define GUARD_BYTES ((size_t)4096)

/* Keeps what a called function must keep, on the old stack; takes it from the new one. */
void standin_fiber_jump(void **ret_old_stack_pointer, void *new_stack_pointer);

#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl standin_fiber_jump\n"
        ".hidden standin_fiber_jump\n"
        ".type standin_fiber_jump, @function\n"
        "standin_fiber_jump:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size standin_fiber_jump, . - standin_fiber_jump\n");
#define SAVED_WORDS 6

static void *first_stack_pointer(char *top, void (*function)(void))
{
    void **place = (void **)(void *)top;
    *--place = NULL; /* as if it had been called: the stack is 8 off a multiple of 16 */
    *--place = (void *)(uintptr_t)function;
    for (int i = 0; i < SAVED_WORDS; i++) {
        *--place = NULL;
    }
    return place;
}

static void set_registers(ucontext_t *context, char *top, void (*function)(void))
{
    context->uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)(top - sizeof(void *));
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)function;
}
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl standin_fiber_jump\n"
        ".hidden standin_fiber_jump\n"
        ".type standin_fiber_jump, %function\n"
        "standin_fiber_jump:\n"
        "    stp x29, x30, [sp, #-160]!\n"
        "    stp x19, x20, [sp, #16]\n"
        "    stp x21, x22, [sp, #32]\n"
        "    stp x23, x24, [sp, #48]\n"
        "    stp x25, x26, [sp, #64]\n"
        "    stp x27, x28, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp, #16]\n"
        "    ldp x21, x22, [sp, #32]\n"
        "    ldp x23, x24, [sp, #48]\n"
        "    ldp x25, x26, [sp, #64]\n"
        "    ldp x27, x28, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    ldp x29, x30, [sp], #160\n"
        "    ret\n"
        ".size standin_fiber_jump, . - standin_fiber_jump\n");
#define SAVED_WORDS 20

static void *first_stack_pointer(char *top, void (*function)(void))
{
    void **place = (void **)(void *)top - SAVED_WORDS;
    for (int i = 0; i < SAVED_WORDS; i++) {
        place[i] = NULL;
    }
    place[1] = (void *)(uintptr_t)function;
    return place;
}

static void set_registers(ucontext_t *context, char *top, void (*function)(void))
{
    context->uc_mcontext.sp = (uint64_t)(uintptr_t)top;
    context->uc_mcontext.pc = (uint64_t)(uintptr_t)function;
}
#else
#error "the stand-in's fibers are written for x86-64 and AArch64"
#endif

static char *stack_top(const struct fiber *fiber)
{
    return fiber->stack + fiber->stack_bytes;
}

void fiber_of_thread(struct fiber *fiber)
{
    *fiber = (struct fiber){.stack = NULL};
}

bool fiber_open(struct fiber *fiber, void (*main)(void))
{
    *fiber = (struct fiber){.stack_bytes = STACK_BYTES};
    char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        return false;
    }
    (void)mprotect(stack, GUARD_BYTES, PROT_NONE);
    fiber->stack = stack;
    fiber->asan_bottom = stack;
    fiber->asan_bytes = STACK_BYTES;
    fiber->stack_pointer = first_stack_pointer(stack_top(fiber), main);
    return true;
}

void fiber_close(struct fiber *fiber)
{
    if (fiber->stack == NULL) {
        return;
    }
#ifdef WITH_ASAN
    ASAN_UNPOISON_MEMORY_REGION(fiber->stack, fiber->stack_bytes);
#endif
    (void)munmap(fiber->stack, fiber->stack_bytes);
    *fiber = (struct fiber){.stack = NULL};
}

void fiber_entered(struct fiber *self, struct fiber *from)
{
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(self->asan_saved, &from->asan_bottom, &from->asan_bytes);
#else
    (void)self;
    (void)from;
#endif
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(&from->asan_saved, to->asan_bottom, to->asan_bytes);
#endif
    standin_fiber_jump(&from->stack_pointer, to->stack_pointer);
#ifdef WITH_ASAN
    const void *bottom;
    size_t bytes;
    __sanitizer_finish_switch_fiber(from->asan_saved, &bottom, &bytes);
#endif
}

void fiber_divert(void *signal_context, struct fiber *fiber, void (*function)(void))
{
#ifdef WITH_ASAN
    ASAN_UNPOISON_MEMORY_REGION(fiber->stack, fiber->stack_bytes);
#endif
    char *top = (char *)((uintptr_t)stack_top(fiber) & ~(uintptr_t)15);
    set_registers(signal_context, top, function);
}
