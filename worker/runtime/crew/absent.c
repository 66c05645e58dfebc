/* SPDX-License-Identifier: Apache-2.0
 * What a crew needs of folders that are not there yet: each says so until its folder is. */
#include "worker/runtime/crew/parts.h"

#define WEAK __attribute__((weak))

typedef int absent_nothing; /* the file is empty when all are there */

#if !__has_include("worker/runtime/parameters/parameters.c")
WEAK void parameters_end(struct crew_state *crew)
{
    (void)crew;
}
#endif
