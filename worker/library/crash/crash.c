/* SPDX-License-Identifier: Apache-2.0
 * The handler of crash signals: writes the cause, the frames and the function to standard error,
 * then dies by the signal. cadre_init calls crash_prepare. */
#include "worker/library/crash/crash.h"

#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "worker/library/crash/crash_internal.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

static const struct {
    int number;
    const char *name;
} kinds[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"}, {SIGFPE, "SIGFPE"}, {SIGILL, "SIGILL"},
    {SIGABRT, "SIGABRT"}};

#define KINDS (sizeof kinds / sizeof kinds[0])

/* Signals are the process's, so this is, too. Written before the handler is installed, but
 * `reporter`. */
static struct {
    atomic_bool prepared;
    char task[64];
    char path[PATH_MAX];
    const char *program; /* in path */
    atomic_int reporter; /* the thread that reports; 0: none */
} crash;

bool crash_prepared(void)
{
    return atomic_load(&crash.prepared);
}

void crash_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    for (size_t i = 0; i < KINDS; i++) {
        sigaddset(ret_set, kinds[i].number);
    }
}

static const char *name_of(int signal)
{
    for (size_t i = 0; i < KINDS; i++) {
        if (kinds[i].number == signal) {
            return kinds[i].name;
        }
    }
    return "a signal";
}

/* "SIGSEGV at address 0x0", "SIGABRT", "SIGBUS, sent by process 12". */
static void add_cause(struct crash_text *text, const siginfo_t *info, const void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr;
    crash_text_add(text, name_of(info->si_signo));
    if (info->si_code <= 0) { /* another process sent it */
        if (info->si_pid != getpid()) {
            crash_text_add(text, ", sent by process ");
            crash_text_decimal(text, (uint64_t)info->si_pid);
        }
    } else if (info->si_code == SI_KERNEL) {
        crash_text_add(text, " at an address that is not valid");
    } else if (info->si_signo == SIGSEGV && crash_is_overflow(context, address)) {
        crash_text_add(text, " (stack overflow) at address ");
        crash_text_hex(text, address);
    } else {
        crash_text_add(text, " at address ");
        crash_text_hex(text, address);
    }
}

/* "train_step (digits+0x1234)", "digits+0x1234", "0x0". */
static void add_location(struct crash_text *text, const struct crash_location *location)
{
    bool named = location->function[0] != '\0';
    crash_text_add(text, location->function);
    crash_text_add(text, named ? " (" : "");
    if (location->module != NULL) {
        crash_text_add(text, location->module);
        crash_text_add(text, "+");
    }
    crash_text_hex(text, location->offset);
    crash_text_add(text, named ? ")" : "");
}

static void print_signal(const siginfo_t *info, const void *context)
{
    struct crash_text text = {0};
    char thread[17] = "";
    (void)prctl(PR_GET_NAME, thread, 0, 0, 0);
    crash_text_add(&text, "cadre: ");
    add_cause(&text, info, context);
    crash_text_add(&text, " in thread ");
    crash_text_decimal(&text, (uint64_t)syscall(SYS_gettid));
    crash_text_add(&text, " (");
    crash_text_add(&text, thread);
    crash_text_add(&text, ")");
    if (crash.task[0] != '\0') {
        crash_text_add(&text, " of ");
        crash_text_add(&text, crash.task);
    }
    crash_text_end(&text);
}

/* The frames, one line of text each; the first that is not the C library's is the culprit. An
 * address that was returned to is behind the call. */
static void print_address(const struct crash_frames *frames, struct crash_location *ret_culprit)
{
    struct crash_text text = {0};
    struct crash_text wanted = {0};
    bool blamed = false;
    for (int i = 0; i < frames->count; i++) {
        struct crash_location location;
        crash_location_find(frames->at[i] - (i > 0 ? 1 : 0), crash.program, &location);
        crash_text_add(&text, "cadre:   #");
        crash_text_decimal(&text, (uint64_t)i);
        crash_text_add(&text, i < 10 ? "  " : " ");
        add_location(&text, &location);
        crash_text_end(&text);
        if (location.in_program) {
            crash_text_add(&wanted, " ");
            crash_text_hex(&wanted, location.offset);
        }
        if (i == 0 || (!blamed && location.module != NULL && !location.in_libc)) {
            *ret_culprit = location;
            blamed = location.module != NULL && !location.in_libc;
        }
    }
    if (frames->count == CRASH_FRAMES_MAX) {
        crash_text_add(&text, "cadre:   and so on");
        crash_text_end(&text);
    }
    if (wanted.size > 0) {
        wanted.bytes[wanted.size] = '\0';
        crash_text_add(&text, "cadre: for file and line: addr2line -Cfe ");
        crash_text_add(&text, crash.program);
        crash_text_add(&text, wanted.bytes);
        crash_text_end(&text);
    }
}

static void report_crash(const siginfo_t *info, const void *context)
{
    struct crash_text text = {0};
    struct crash_frames frames;
    struct crash_location culprit = {0};
    print_signal(info, context);
    crash_frames_take(context, &frames);
    print_address(&frames, &culprit);
    crash_text_add(&text, "cadre: ");
    add_cause(&text, info, context);
    crash_text_add(&text, " in ");
    add_location(&text, &culprit);
    crash_text_end(&text); /* the last line of text is what a daemon reports as the task's end */
}

/* One thread reports; others that crash meanwhile wait for the end of the process. A child of vfork
 * may have written its number into our memory as the reporter: it is none of our threads. */
static void wait_for_turn(void)
{
    int self = (int)syscall(SYS_gettid);
    int reporter = 0;
    while (!atomic_compare_exchange_strong(&crash.reporter, &reporter, self)) {
        if (syscall(SYS_tgkill, getpid(), reporter, 0) != 0) {
            atomic_compare_exchange_strong(&crash.reporter, &reporter, 0);
        } else {
            (void)poll(NULL, 0, 10);
        }
        reporter = 0;
    }
}

/* A fault happens again when this returns, now with the default action and with all that a core
 * dump should hold; a sent signal is sent again. */
static void on_crash(int signal, siginfo_t *info, void *context)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    wait_for_turn();
    report_crash(info, context);
    sigemptyset(&standard.sa_mask);
    sigaction(signal, &standard, NULL);
    if (info->si_code <= 0 || (signal == SIGBUS && info->si_code == BUS_MCEERR_AO)) {
        raise(signal);
    }
}

static void find_program(void)
{
    ssize_t length = readlink("/proc/self/exe", crash.path, sizeof crash.path - 1);
    crash.path[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(crash.path, '/');
    crash.program = slash != NULL ? slash + 1 : "PROGRAM";
}

void crash_prepare(const char *task)
{
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    bool installed = false;
    if (SANITIZED || crash_prepared()) {
        return;
    }
    size_t length = strnlen(task, sizeof crash.task - 1);
    memcpy(crash.task, task, length);
    find_program();
    crash_frames_prepare();
    crash_signals(&action.sa_mask); /* a fault in here ends the process */
    for (size_t i = 0; i < KINDS; i++) {
        struct sigaction present;
        if (sigaction(kinds[i].number, NULL, &present) == 0 &&
            (present.sa_flags & SA_SIGINFO) == 0 && present.sa_handler == SIG_DFL) {
            sigaction(kinds[i].number, &action, NULL);
            installed = true;
        }
    }
    if (installed) {
        atomic_store(&crash.prepared, true);
        crash_stack_release();
    }
}
