/* SPDX-License-Identifier: Apache-2.0 */
#include "data.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIXELS = 64, CLASSES = 10, RECORD_BYTES = PIXELS + 1, RECORDS_MAX = 100000 };
enum { PATH_BYTES = 4096 };

/* Makes images and labels of all records at once. */
static cadre_status parse(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    const uint8_t *record = cadre_tensor_const_data(in->tensors[0]);
    const int64_t dims[2] = {cadre_tensor_rows(in->tensors[0]), PIXELS};
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 2, dims, &ret_out->tensors[0]));
    ret_out->count = 1;
    CADRE_TRY(cadre_tensor_create(CADRE_I32, 1, dims, &ret_out->tensors[1]));
    ret_out->count = 2;
    float *image = cadre_tensor_data(ret_out->tensors[0]);
    int32_t *label = cadre_tensor_data(ret_out->tensors[1]);
    for (int64_t row = 0; row < dims[0]; row++, record += RECORD_BYTES) {
        for (int p = 0; p < PIXELS; p++) {
            *image++ = (float)record[p] / 16;
        }
        label[row] = record[PIXELS];
        if (label[row] >= CLASSES) {
            return cadre_fail(CADRE_DATA_LOSS,
                "record %lld has label %d, which is none of the %d classes; copy the data again",
                (long long)row, label[row], CLASSES);
        }
    }
    return CADRE_OK;
}

static void find(const char *program, const char *folder, const char *name, char path[PATH_BYTES])
{
    if (folder != NULL) {
        snprintf(path, PATH_BYTES, "%s/%s", folder, name);
        return;
    }
    snprintf(path, PATH_BYTES, "%s", name);
    const char *slash = strrchr(program, '/');
    if (access(path, R_OK) != 0 && slash != NULL) {
        snprintf(path, PATH_BYTES, "%.*s/%s", (int)(slash - program), program, name);
    }
}

cadre_dataset *data_digits(const char *program, const char *folder, const char *name)
{
    char path[PATH_BYTES];
    find(program, folder, name, path);
    const char *paths[1] = {path};
    cadre_dataset *whole = cadre_dataset_fixed_length(paths, 1, RECORD_BYTES, NULL);
    whole = cadre_dataset_map(cadre_dataset_batch(whole, RECORDS_MAX, false), parse, NULL, NULL);
    cadre_iterator *iterator;
    cadre_element all;
    CADRE_CHECK(cadre_dataset_iterate(whole, 0, &iterator));
    CADRE_CHECK(cadre_iterator_next(iterator, &all));
    cadre_dataset *images = cadre_dataset_tensor_slices(all.tensors, all.count);
    cadre_element_release(&all);
    cadre_iterator_release(iterator);
    cadre_dataset_release(whole);
    return images;
}

/* SplitMix64: the same numbers on every machine. */
static uint64_t draw(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

cadre_dataset *data_synthetic(const struct preset *preset)
{
    const int64_t dims[2] = {2048, preset->widths[0]};
    cadre_tensor *tensors[2] = {NULL, NULL};
    uint64_t state = 42;
    CADRE_CHECK(cadre_tensor_create(CADRE_F32, 2, dims, &tensors[0]));
    CADRE_CHECK(cadre_tensor_create(CADRE_I32, 1, dims, &tensors[1]));
    float *images = cadre_tensor_data(tensors[0]);
    int32_t *labels = cadre_tensor_data(tensors[1]);
    for (int64_t i = 0; i < dims[0] * dims[1]; i++) {
        images[i] = (float)(draw(&state) >> 40) * 0x1p-24f;
    }
    for (int64_t i = 0; i < dims[0]; i++) {
        labels[i] = (int32_t)(draw(&state) % (uint64_t)preset->widths[LAYERS]);
    }
    cadre_dataset *data = cadre_dataset_tensor_slices(tensors, 2);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    return data;
}
