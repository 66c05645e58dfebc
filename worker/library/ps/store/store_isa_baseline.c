/* SPDX-License-Identifier: Apache-2.0
 * The loops for any processor that the compiler's default target runs on. */
#include "worker/library/ps/store/store_loops.h"

const struct store_isa store_isa_baseline = {.name = "baseline", STORE_LOOPS};
