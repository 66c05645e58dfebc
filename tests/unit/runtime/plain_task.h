/* SPDX-License-Identifier: Apache-2.0
 * Checks of plain programs that are tasks of a test's job. */
#ifndef CADRE_TESTS_RUNTIME_PLAIN_TASK_H
#define CADRE_TESTS_RUNTIME_PLAIN_TASK_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/status.h"

/* In a task there is no test around a check: the fault is printed, and the task fails. */
#define require(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition,            \
                cadre_error_message());                                                            \
            exit(9);                                                                               \
        }                                                                                          \
    } while (0)

/* Whether the thread's last error says that. */
static inline bool expected_text(const char *part)
{
    return strstr(cadre_error_message(), part) != NULL;
}

/* The mesh names tasks by rank, in words of its own or in those of the call. */
static inline bool names_both(void)
{
    return (expected_text("rank 0") || expected_text("task 0")) &&
           (expected_text("rank 1") || expected_text("task 1"));
}

#endif
