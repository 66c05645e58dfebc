/* SPDX-License-Identifier: Apache-2.0
 * The least that an update can take: reading and writing as many arrays, with one addition each.
 * Compiled for AVX2, as the loops that it is compared with. */
#ifndef CADRE_BENCH_OPTIMIZERS_FLOOR_H
#define CADRE_BENCH_OPTIMIZERS_FLOOR_H

#include <stddef.h>

/* arrays[0 .. written) are added arrays[written] to; floats. */
void floor_stream(float *const arrays[], size_t written, size_t count);
/* Their sum over all `read` arrays. */
float floor_read(float *const arrays[], size_t read, size_t count);

#endif
