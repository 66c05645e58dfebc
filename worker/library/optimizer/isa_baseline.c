/* SPDX-License-Identifier: Apache-2.0
 * The loops for any processor that the compiler's default target runs on. */
#include "worker/library/optimizer/update_loops.h"

const struct optimizer_isa optimizer_isa_baseline = {.name = "baseline", OPTIMIZER_LOOPS};
