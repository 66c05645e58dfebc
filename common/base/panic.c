/* SPDX-License-Identifier: Apache-2.0
 * What a failed assert does in a program: one line on stderr, then abort() for the core file. */
#include "common/pure/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void cadre_panic(const char *condition, const char *file, int lineno)
{
    fprintf(stderr, "cadre: bug: %s does not hold at %s:%d\n", condition, file, lineno);
    abort();
}
