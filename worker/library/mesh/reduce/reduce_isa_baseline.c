/* SPDX-License-Identifier: Apache-2.0
 * The loops for any processor that the compiler's default target runs on. */
#include "worker/library/mesh/reduce/reduce_loops.h"

const struct reduce_isa reduce_isa_baseline = {.name = "baseline", REDUCE_TABLE};
