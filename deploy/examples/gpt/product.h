/* SPDX-License-Identifier: Apache-2.0
 * The product of two matrices on one thread of the CPU. */
#ifndef GPT_PRODUCT_H
#define GPT_PRODUCT_H

#include "compute.h"

/* Floats that product_run packs pieces of both matrices into, aligned to 64 bytes. */
size_t product_room(void);

void product_run(const struct product *product, float *room);

#endif
