/* SPDX-License-Identifier: Apache-2.0
 * Which tensors of a list are reduced together. */
#ifndef CADRE_RUNTIME_COLLECTIVE_PACK_H
#define CADRE_RUNTIME_COLLECTIVE_PACK_H

#include <stddef.h>

/* How many of `count` tensors go into the next pack: one more while the pack is not larger than
 * bytes_per_pack; all of them when that is 0. So a pack holds at least one, and its last one may
 * make it much larger. `bytes` is the size of the first tensor, that of each further one is
 * `stride` bytes further on. Pure. (tf.distribute: group_by_size.) */
size_t collective_pack(const size_t *bytes, size_t stride, size_t count, size_t bytes_per_pack);

#endif
