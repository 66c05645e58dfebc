/* SPDX-License-Identifier: Apache-2.0
 * What every test needs besides its subject: cmocka with the headers it wants, an error to fill, a
 * folder of its own, waiting for a condition, and saying that a test cannot run here. */
#ifndef CADRE_TESTS_LIB_TEST_H
#define CADRE_TESTS_LIB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/error.h"

/* The call must succeed; on failure the test fails with the error's text. */
#define assert_ok(call, error)                                                                     \
    do {                                                                                           \
        if ((call) != CADRE_OK) {                                                                  \
            fail_msg("%s: %s", #call, (error)->text);                                              \
        }                                                                                          \
    } while (0)

/* The call must fail with `code`, and the error's text must contain `part`. */
#define assert_error(call, wanted_code, error, part)                                               \
    test_check_error((call), (wanted_code), (error), (part), #call, __FILE__, __LINE__)

void test_check_error(cadre_status status, cadre_status wanted, const struct cadre_error *error,
    const char *part, const char *call, const char *file, int line);

/* A fresh, empty folder below $TMPDIR or /tmp; removed with what it holds when the process exits
 * normally. The text belongs to the library. At most 32 in one process. Its path is short enough
 * for a Unix socket. */
const char *test_temp_dir(void);

/* "<folder>/<name>" in a buffer of the caller's. */
#define TEST_PATH_BYTES 512
const char *test_path(char buffer[TEST_PATH_BYTES], const char *folder, const char *name);

/* Asks `condition` until it is true (true) or `deadline_us` of an idle machine have passed (false):
 * on a busy one they last longer. */
bool test_wait(bool (*condition)(void *data), void *data, uint64_t deadline_us);

/* Ends the program as skipped, with the reason on stderr. Never returns. */
_Noreturn void test_skip(const char *reason);

/* A regular file that holds `text`; fails the test when it cannot be written. */
void test_write(const char *path, const char *text);

#endif
