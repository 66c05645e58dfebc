/* SPDX-License-Identifier: Apache-2.0
 * Which signals a started thread takes, and that its maker's mask stays. */
#include <signal.h>

#include "common/base/thread.h"
#include "tests/lib/test.h"

static void *read_mask(void *mask)
{
    pthread_sigmask(SIG_SETMASK, NULL, mask);
    return mask;
}

/* SIGKILL, SIGSTOP and what libc keeps to itself cannot be blocked. */
static bool is_free(int number)
{
    return number != SIGKILL && number != SIGSTOP && (number < 32 || number >= SIGRTMIN);
}

static void no_signal_is_taken(void **state)
{
    sigset_t own;
    sigset_t masks[2];
    sigset_t after;
    pthread_t thread;
    void *result;
    (void)state;
    sigemptyset(&own);
    sigaddset(&own, SIGUSR2);
    pthread_sigmask(SIG_SETMASK, &own, &masks[1]);
    assert_int_equal(thread_start(&thread, read_mask, &masks[0]), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &masks[0]);
    pthread_sigmask(SIG_SETMASK, &masks[1], &after);
    for (int number = 1; number <= SIGRTMAX; number++) {
        if (is_free(number)) {
            assert_int_equal(sigismember(&masks[0], number), 1);
            assert_int_equal(sigismember(&after, number), number == SIGUSR2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_signal_is_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
