/* SPDX-License-Identifier: Apache-2.0
 * See isa.h. */
#include "worker/library/optimizer/isa.h"

const struct optimizer_isa *optimizer_isa(void)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        return &optimizer_isa_avx2;
    }
#endif
    return &optimizer_isa_baseline;
}
