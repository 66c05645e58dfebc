/* SPDX-License-Identifier: Apache-2.0
 * The loops for x86-64 with AVX2. */
#include "worker/library/ps/store/store_loops.h"

const struct store_isa store_isa_avx2 = {.name = "avx2", STORE_LOOPS};
