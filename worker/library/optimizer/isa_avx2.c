/* SPDX-License-Identifier: Apache-2.0
 * The loops for x86-64 with AVX2. */
#include "worker/library/optimizer/update_loops.h"

const struct optimizer_isa optimizer_isa_avx2 = {.name = "avx2", OPTIMIZER_LOOPS};
