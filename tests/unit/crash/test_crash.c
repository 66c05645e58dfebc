/* SPDX-License-Identifier: Apache-2.0
 * The last message of a program that crashes, and that it dies as it would have without. Each case
 * is a child whose standard error is a file. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cadre/cadre.h"
#include "common/base/clock.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/library/crash/crash.h"
#include "worker/library/crash/crash_internal.h"
#include "worker/library/runtime/replica/replica_pool.h"

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

#define PRINTED_BYTES 16384

#ifdef __clang__ /* which makes no clones, and does not know that attribute */
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

struct end {
    int status;
    char said[PRINTED_BYTES];
    char last[512]; /* line */
};

static int *volatile nowhere; /* NULL */
static volatile int depth_max = 1 << 30;

static APART void touch_null(void)
{
    *nowhere = 1;
    __asm__ volatile("");
}

static APART void give_up(void)
{
    abort();
}

static APART int recurse(int depth)
{
    volatile char room[256];
    room[0] = (char)depth;
    return depth >= depth_max ? depth : recurse(depth + 1) + room[0];
}

static APART void overflow(void)
{
    depth_max = recurse(0);
}

static APART void fail_arithmetic(void)
{
    raise(SIGFPE);
    __asm__ volatile(""); /* no jump out of here */
}

static APART void call_nothing(void)
{
    void (*volatile function)(void) = NULL;
    function();
    __asm__ volatile("");
}

static void be_killed(void)
{
    pid_t killer = fork();
    if (killer == 0) {
        kill(getppid(), SIGBUS);
        _exit(0);
    }
    for (;;) {
        pause();
    }
}

/* --- children --- */

static void in_replica(uint32_t local, void *user)
{
    void (*const *crash)(void) = user;
    if (local == 1) {
        (*crash)();
    }
}

static APART void in_main(void (*crash)(void))
{
    crash();
    __asm__ volatile("");
}

static void in_thread_of_replica(void (*crash)(void))
{
    struct cadre_error error = {0};
    struct replica_pool *pool;
    if (replica_pool_open(2, &pool, &error) == CADRE_OK) {
        replica_pool_run(pool, in_replica, &crash);
    }
}

static void say_own(int signal)
{
    (void)signal;
    static const char words[] = "my own handler\n";
    ssize_t written = write(STDERR_FILENO, words, sizeof words - 1);
    (void)written;
    _exit(9);
}

static void with_own_handler(void (*crash)(void))
{
    crash();
}

static void crash_in_child(
    void (*where)(void (*)(void)), void (*crash)(void), const char *backtrace, struct end *ret_end)
{
    char path[] = "/tmp/cadre-test-crash-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    unlink(path);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {0};
        const struct rlimit stack = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
        setrlimit(RLIMIT_CORE, &none);
        setrlimit(RLIMIT_STACK, &stack);
        for (int number = SIGILL; number <= SIGSEGV; number++) { /* cmocka's */
            signal(number, SIG_DFL);
        }
        dup2(fd, STDERR_FILENO);
        setenv("CADRE_BACKTRACE", backtrace, 1);
        if (where == with_own_handler) {
            signal(SIGSEGV, say_own);
        }
        if (cadre_init(NULL, NULL) != CADRE_OK) {
            _exit(99);
        }
        alarm((unsigned)(speed_scaled_us(20 * CADRE_US_PER_S) / CADRE_US_PER_S));
        where(crash);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &ret_end->status, 0), child);
    ssize_t size = pread(fd, ret_end->said, PRINTED_BYTES - 1, 0);
    close(fd);
    assert_true(size >= 0);
    ret_end->said[size] = '\0';
    ret_end->last[0] = '\0';
    if (size > 0 && ret_end->said[size - 1] == '\n') {
        const char *begin = ret_end->said + size - 1;
        while (begin > ret_end->said && begin[-1] != '\n') {
            begin--;
        }
        snprintf(ret_end->last, sizeof ret_end->last, "%.*s",
            (int)(ret_end->said + size - 1 - begin), begin);
    }
}

static void assert_says(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
}

static void assert_killed(const struct end *end, int number)
{
    if (!WIFSIGNALED(end->status) || WTERMSIG(end->status) != number) {
        fail_msg("status %#x instead of signal %d:\n%s", (unsigned)end->status, number, end->said);
    }
}

static void skip_if_sanitized(void)
{
    if (SANITIZED) {
        skip();
    }
}

/* --- tests --- */

static void a_null_pointer_is_reported(void **state)
{
    (void)state;
    struct end end;
    skip_if_sanitized();
    crash_in_child(in_main, touch_null, "1", &end);
    assert_killed(&end, SIGSEGV);
    assert_says(end.said, "cadre: SIGSEGV at address 0x0 in thread ");
    assert_says(end.said, "(test_crash)");
    assert_says(end.said, "cadre:   #0  touch_null (test_crash+0x");
    assert_says(end.said, " in_main (test_crash+0x");
    assert_says(end.said, "cadre: for file and line: addr2line -Cfe test_crash 0x");
    assert_says(end.last, "cadre: SIGSEGV at address 0x0 in touch_null (test_crash+0x");
}

static void an_abort_is_reported_with_its_caller(void **state)
{
    (void)state;
    struct end end;
    skip_if_sanitized();
    crash_in_child(in_main, give_up, "1", &end);
    assert_killed(&end, SIGABRT);
    assert_says(end.last, "cadre: SIGABRT in give_up (test_crash+0x");
}

static void a_stack_overflow_is_reported(void **state)
{
    (void)state;
    struct end end;
    skip_if_sanitized();
    crash_in_child(in_main, overflow, "1", &end);
    assert_killed(&end, SIGSEGV);
    assert_says(end.last, "cadre: SIGSEGV (stack overflow) at address 0x");
    assert_says(end.last, "in recurse (test_crash+0x");
    assert_says(end.said, "and so on");
}

static void a_replicas_thread_is_named(void **state)
{
    (void)state;
    struct end end;
    skip_if_sanitized();
    crash_in_child(in_thread_of_replica, touch_null, "1", &end);
    assert_killed(&end, SIGSEGV);
    assert_says(end.said, "(replica 1)");
    assert_says(end.last, "cadre: SIGSEGV at address 0x0 in touch_null (test_crash+0x");
    crash_in_child(in_thread_of_replica, overflow, "1", &end);
    assert_killed(&end, SIGSEGV);
    assert_says(end.said, "(replica 1)");
    assert_says(end.last, "(stack overflow) at address 0x");
    crash_in_child(in_thread_of_replica, give_up, "1", &end);
    assert_killed(&end, SIGABRT);
    assert_says(end.last, "SIGABRT in give_up");
}

static void a_call_of_nothing_names_the_caller(void **state)
{
    (void)state;
    struct end end;
    skip_if_sanitized();
    crash_in_child(in_main, call_nothing, "1", &end);
    assert_killed(&end, SIGSEGV);
    assert_says(end.said, "cadre:   #0  0x0\n");
    assert_says(end.last, "cadre: SIGSEGV at address 0x0 in call_nothing (test_crash+0x");
}

static void a_signal_that_was_sent_is_reported_as_sent(void **state)
{
    (void)state;
    struct end end;
    skip_if_sanitized();
    crash_in_child(in_main, fail_arithmetic, "1", &end);
    assert_killed(&end, SIGFPE);
    assert_says(end.last, "cadre: SIGFPE in fail_arithmetic (test_crash+0x");
    crash_in_child(in_main, be_killed, "1", &end);
    assert_killed(&end, SIGBUS);
    assert_says(end.last, "cadre: SIGBUS, sent by process ");
}

static void who_wants_none_gets_none(void **state)
{
    (void)state;
    struct end end;
    skip_if_sanitized();
    crash_in_child(in_main, touch_null, "0", &end);
    assert_killed(&end, SIGSEGV);
    assert_string_equal(end.said, "");
    crash_in_child(with_own_handler, touch_null, "1", &end);
    assert_true(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 9);
    assert_string_equal(end.said, "my own handler\n");
    crash_in_child(in_main, touch_null, "maybe", &end);
    assert_true(WIFEXITED(end.status) && WEXITSTATUS(end.status) == 99);
}

static void a_sanitizer_is_left_alone(void **state)
{
    (void)state;
    struct sigaction before;
    struct sigaction after;
    if (!SANITIZED) {
        skip();
    }
    sigaction(SIGABRT, NULL, &before);
    crash_prepare("");
    sigaction(SIGABRT, NULL, &after);
    assert_false(crash_prepared());
    assert_true(before.sa_handler == after.sa_handler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_null_pointer_is_reported),
        cmocka_unit_test(an_abort_is_reported_with_its_caller),
        cmocka_unit_test(a_stack_overflow_is_reported),
        cmocka_unit_test(a_replicas_thread_is_named),
        cmocka_unit_test(a_call_of_nothing_names_the_caller),
        cmocka_unit_test(a_signal_that_was_sent_is_reported_as_sent),
        cmocka_unit_test(who_wants_none_gets_none),
        cmocka_unit_test(a_sanitizer_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
