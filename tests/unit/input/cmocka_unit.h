/* SPDX-License-Identifier: Apache-2.0
 * cmocka with the headers it wants before it, and the check every test of this folder uses. */
#ifndef CADRE_TESTS_INPUT_CMOCKA_UNIT_H
#define CADRE_TESTS_INPUT_CMOCKA_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base/error.h"

/* For internal functions: shows the text of a failure. */
#define ASSERT_OK(call)                                                                            \
    do {                                                                                           \
        if ((call) != CADRE_OK) {                                                                  \
            fail_msg("%s: %s", cadre_status_name(error.code), error.text);                         \
        }                                                                                          \
    } while (0)

#endif
