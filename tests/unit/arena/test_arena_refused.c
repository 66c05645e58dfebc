/* SPDX-License-Identifier: Apache-2.0
 * Processes that cannot have an arena, or a small one only; each is a child of its own. */
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "tests/lib/test.h"
#include "worker/library/arena/arena.h"

/* Sanitizers need address space of their own, which a limit takes from them. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_ARE_BEARABLE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LIMITS_ARE_BEARABLE 0
#endif
#endif
#ifndef LIMITS_ARE_BEARABLE
#define LIMITS_ARE_BEARABLE 1
#endif

static void in_child(int (*body)(void))
{
    int how = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(body());
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

static const char *failing;

/* Refused once is refused for good, with the reason each time. */
static int refused(void)
{
    struct cadre_error error = {0};
    fault_arm(failing, 1);
    cadre_status status = arena_open(&error);
    if (!fault_disarm() || status != CADRE_UNAVAILABLE || error.code != CADRE_UNAVAILABLE ||
        strstr(error.text, "cannot share memory") == NULL) {
        return 1;
    }
    memset(&error, 0, sizeof error);
    if (arena_open(&error) != CADRE_UNAVAILABLE || strstr(error.text, "cannot share") == NULL) {
        return 2;
    }
    return arena_get(1) == NULL && arena_fd() == -1 && arena_bytes() == 0 ? 0 : 3;
}

static void test_no_memfd(void **state)
{
    (void)state;
    failing = "arena.memfd";
    in_child(refused);
    failing = "arena.settle";
    in_child(refused);
}

static int smaller(void)
{
    struct cadre_error error;
    long pages = sysconf(_SC_PHYS_PAGES);
    fault_arm("arena.map", 1);
    if (arena_open(&error) != CADRE_OK || !fault_disarm()) {
        return 1;
    }
    uint64_t memory = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return arena_bytes() < memory && arena_bytes() >= memory / 2 - (1 << 20) ? 0 : 2;
}

static void test_half_where_all_does_not_fit(void **state)
{
    (void)state;
    in_child(smaller);
}

static int in_little_space(void)
{
    struct cadre_error error;
    const struct rlimit limit = {.rlim_cur = (rlim_t)1 << 30, .rlim_max = (rlim_t)1 << 30};
    if (setrlimit(RLIMIT_AS, &limit) != 0 || arena_open(&error) != CADRE_OK) {
        return 1;
    }
    return arena_bytes() == (uint64_t)256 << 20 && arena_get(1000) != NULL ? 0 : 2;
}

static int in_hardly_any_space(void)
{
    struct cadre_error error;
    const struct rlimit limit = {.rlim_cur = (rlim_t)128 << 20, .rlim_max = (rlim_t)128 << 20};
    return setrlimit(RLIMIT_AS, &limit) == 0 && arena_open(&error) == CADRE_UNAVAILABLE ? 0 : 1;
}

/* A file beyond this limit would be SIGXFSZ. */
static int with_small_files(void)
{
    struct cadre_error error;
    const struct rlimit limit = {.rlim_cur = (rlim_t)100 << 20, .rlim_max = (rlim_t)100 << 20};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 || arena_open(&error) != CADRE_OK) {
        return 1;
    }
    return arena_bytes() == (uint64_t)100 << 20 && arena_get((size_t)90 << 20) != NULL ? 0 : 2;
}

static void test_limits_of_the_process(void **state)
{
    (void)state;
    if (!LIMITS_ARE_BEARABLE) {
        skip();
    }
    in_child(in_little_space);
    in_child(in_hardly_any_space);
    in_child(with_small_files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memfd),
        cmocka_unit_test(test_half_where_all_does_not_fit),
        cmocka_unit_test(test_limits_of_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
