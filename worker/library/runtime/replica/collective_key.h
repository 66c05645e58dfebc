/* SPDX-License-Identifier: Apache-2.0
 * Keys: numbers made of all that must be equal on all replicas in a call, by which replicas that
 * disagree are found. */
#ifndef CADRE_RUNTIME_COLLECTIVE_KEY_H
#define CADRE_RUNTIME_COLLECTIVE_KEY_H

#include <stdint.h>

#include "cadre/tensor.h"

/* Folds one more number into a key. */
uint64_t collective_key(uint64_t key, uint64_t number);
/* Folds the letters of a text into a key. */
uint64_t collective_key_text(uint64_t key, const char *text);
/* Folds in a tensor's type and shape, but for the size along the axis `but` (UINT32_MAX: all). */
uint64_t collective_key_tensor(uint64_t key, const cadre_tensor *tensor, uint32_t but);

#endif
