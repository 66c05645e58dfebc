/* SPDX-License-Identifier: Apache-2.0
 * See store_isa.h. */
#include "worker/library/ps/store/store_isa.h"

const struct store_isa *store_isa(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        return &store_isa_avx2;
    }
#endif
    return &store_isa_baseline;
}
