/* SPDX-License-Identifier: Apache-2.0
 * Asserts that stay on in every build. An assert is for bugs of this program; faults from outside
 * are error codes. */
#ifndef CADRE_PURE_ASSERT_H
#define CADRE_PURE_ASSERT_H

/* Defined once per program (common/base/panic.c; a test or the simulator may define its own). Never
 * returns. */
_Noreturn void cadre_panic(const char *condition, const char *file, int line_number);

#define CADRE_ASSERT(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            cadre_panic(#condition, __FILE__, __LINE__);                                           \
        }                                                                                          \
    } while (0)

#define CADRE_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
