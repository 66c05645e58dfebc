/* SPDX-License-Identifier: Apache-2.0 */
#include "ids.h"

#include <stdlib.h>
#include <string.h>

int ids_create(struct ids *ids, size_t all)
{
    ids->different = malloc(all * sizeof *ids->different);
    ids->indices = malloc(all * sizeof *ids->indices);
    ids->count = 0;
    return ids->different != NULL && ids->indices != NULL ? 0 : -1;
}

void ids_free(struct ids *ids)
{
    free(ids->different);
    free(ids->indices);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static uint32_t index_of(const struct ids *ids, int64_t id)
{
    size_t low = 0;
    size_t high = ids->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (ids->different[middle] <= id) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (uint32_t)low;
}

void ids_sort(struct ids *ids, const int64_t *given, size_t all)
{
    memcpy(ids->different, given, all * sizeof *given);
    qsort(ids->different, all, sizeof *given, compare);
    ids->count = 0;
    for (size_t i = 0; i < all; i++) {
        if (i == 0 || ids->different[i] != ids->different[ids->count - 1]) {
            ids->different[ids->count++] = ids->different[i];
        }
    }
    for (size_t i = 0; i < all; i++) {
        ids->indices[i] = index_of(ids, given[i]);
    }
}
