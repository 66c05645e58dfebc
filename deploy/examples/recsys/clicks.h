/* SPDX-License-Identifier: Apache-2.0 A generated click log. Each
 * impression is eight numbers, one of each field (user, item, shop, ...);
 * few of them are frequent and most are rare, as in real logs. Whether it
 * was clicked is drawn from a hidden truth, which a model can come near and
 * not beat. */
#ifndef RECSYS_CLICKS_H
#define RECSYS_CLICKS_H

#include <cadre/cadre.h>

enum { FIELDS = 8 };

/* Components of a batch of n: ids i64 [n, FIELDS], below `rows`; clicked f32 [n], 0 or 1; chance
 * f32 [n], which it was drawn with. */
enum { IDS, CLICKED, CHANCE, COMPONENTS };

/* Samples `first` and on, without end. The same number is the same sample wherever it is made.
 * `rows` outlives the dataset. */
cadre_dataset *clicks(const int64_t *rows, int64_t first, int64_t batch);

#endif
