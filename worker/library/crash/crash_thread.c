/* SPDX-License-Identifier: Apache-2.0
 * The alternate stack of a thread that has used up its own: allocated when the thread begins, freed
 * when it ends. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "worker/library/crash/crash.h"
#include "worker/library/crash/crash_internal.h"

/* Beside the kernel's part: unwinding, and a few lines of text. */
#define ROOM_BYTES ((size_t)64 * 1024)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t stacks;
static bool has_key;
static size_t stack_bytes;

static void take_back(void *stack)
{
    const stack_t none = {.ss_flags = SS_DISABLE};
    stack_t present;
    if (sigaltstack(NULL, &present) == 0 && present.ss_sp == stack) {
        (void)sigaltstack(&none, NULL);
    }
    munmap(stack, stack_bytes);
}

static void make_key(void)
{
    long least = sysconf(_SC_MINSIGSTKSZ);
    stack_bytes = ROOM_BYTES + (least > 0 ? ((size_t)least + 4095) / 4096 * 4096 : 0);
    has_key = pthread_key_create(&stacks, take_back) == 0;
}

void crash_stack_release(void)
{
    stack_t present;
    pthread_once(&once, make_key);
    if (!has_key || sigaltstack(NULL, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) {
        return;
    }
    void *stack = mmap(
        NULL, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        return; /* all but an overflow is reported all the same */
    }
    const stack_t own = {.ss_sp = stack, .ss_size = stack_bytes};
    if (pthread_setspecific(stacks, stack) != 0 || sigaltstack(&own, NULL) != 0) {
        (void)pthread_setspecific(stacks, NULL);
        munmap(stack, stack_bytes);
    }
}

void crash_thread(const char *name, uint32_t number)
{
    sigset_t signals;
    struct crash_text text = {0};
    crash_text_add(&text, name);
    if (number > 0) {
        crash_text_add(&text, " ");
        crash_text_decimal(&text, number);
    }
    text.bytes[text.size] = '\0';
    (void)prctl(PR_SET_NAME, text.bytes, 0, 0, 0); /* cut at 15 bytes */
    if (!crash_prepared()) {
        return;
    }
    crash_stack_release();
    crash_signals(&signals);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL); /* blocked, a fault would end it without a
                                                   * message */
}
