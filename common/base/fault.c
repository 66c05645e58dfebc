/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/fault.h"

#include <string.h>

#include "common/pure/assert.h"

atomic_bool fault_armed;

static const char *_Atomic armed_prefix;
static _Atomic uint64_t calls_passed;
static _Atomic uint64_t failing_call;

bool fault_hits(const char *name)
{
    const char *prefix = atomic_load(&armed_prefix);
    if (strncmp(name, prefix, strlen(prefix)) != 0) {
        return false;
    }
    return atomic_fetch_add(&calls_passed, 1) + 1 == failing_call;
}

void fault_arm(const char *prefix, uint64_t nth)
{
    CADRE_ASSERT(prefix != NULL);
    CADRE_ASSERT(nth > 0);
    armed_prefix = prefix;
    failing_call = nth;
    atomic_store(&calls_passed, 0);
    atomic_store(&fault_armed, true);
}

bool fault_disarm(void)
{
    atomic_store(&fault_armed, false);
    return atomic_load(&calls_passed) >= failing_call;
}
