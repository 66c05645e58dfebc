/* SPDX-License-Identifier: Apache-2.0 */
#include "clicks.h"

#include <math.h>
#include <stdint.h>

enum { HIDDEN = 4 }; /* what the truth knows of each id, besides a weight */

/* SplitMix64: the same numbers on every machine. */
static uint64_t mix(uint64_t z)
{
    z += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static double uniform(uint64_t number)
{
    return (double)(mix(number) >> 11) * 0x1p-53;
}

/* About normal, from the four parts of one number. */
static float normal(uint64_t number)
{
    uint64_t z = mix(number);
    uint64_t sum = (z & 0xFFFF) + (z >> 16 & 0xFFFF) + (z >> 32 & 0xFFFF) + (z >> 48);
    return ((float)sum * 0x1p-16f - 2) * 1.7320508f;
}

/* A few ids are most of what is drawn, and most ids are drawn once in a while. */
static int64_t draw_id(uint64_t number, int64_t count)
{
    double part = uniform(number);
    int64_t id = (int64_t)exp(part * part * log((double)count + 1)) - 1;
    return id < count ? id : count - 1;
}

static float chance_of(const int64_t ids[FIELDS])
{
    float logit = -0.5f;
    float sum[HIDDEN] = {0};
    float squares = 0;
    for (int f = 0; f < FIELDS; f++) {
        uint64_t id = (uint64_t)ids[f] << 8;
        logit += 0.6f * normal(id);
        for (int h = 0; h < HIDDEN; h++) {
            float value = 0.35f * normal(id + 1 + (uint64_t)h);
            sum[h] += value;
            squares += value * value;
        }
    }
    float pairs = -squares;
    for (int h = 0; h < HIDDEN; h++) {
        pairs += sum[h] * sum[h];
    }
    return 1 / (1 + expf(-(logit + pairs / 2)));
}

/* in: numbers of samples [n]. */
static cadre_status make(const cadre_element *in, cadre_element *ret_out, void *user)
{
    const int64_t *rows = user;
    const int64_t *numbers = cadre_tensor_const_data(in->tensors[0]);
    const int64_t dims[2] = {cadre_tensor_rows(in->tensors[0]), FIELDS};
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 2, dims, &ret_out->tensors[IDS]));
    ret_out->count = 1;
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 1, dims, &ret_out->tensors[CLICKED]));
    ret_out->count = 2;
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 1, dims, &ret_out->tensors[CHANCE]));
    ret_out->count = 3;
    int64_t *ids = cadre_tensor_data(ret_out->tensors[IDS]);
    float *clicked = cadre_tensor_data(ret_out->tensors[CLICKED]);
    float *chance = cadre_tensor_data(ret_out->tensors[CHANCE]);
    int64_t of_field = *rows / FIELDS;
    for (int64_t i = 0; i < dims[0]; i++, ids += FIELDS) {
        uint64_t sample = mix((uint64_t)numbers[i]);
        for (int f = 0; f < FIELDS; f++) {
            ids[f] = f * of_field + draw_id(sample + (uint64_t)f, of_field);
        }
        chance[i] = chance_of(ids);
        clicked[i] = uniform(sample + FIELDS) < chance[i] ? 1 : 0;
    }
    return CADRE_OK;
}

cadre_dataset *clicks(const int64_t *rows, int64_t first, int64_t batch)
{
    cadre_dataset *data = cadre_dataset_range(first, INT64_MAX, 1);
    data = cadre_dataset_batch(data, batch, false);
    return cadre_dataset_map(data, make, (void *)(uintptr_t)rows, NULL);
}
