/* SPDX-License-Identifier: Apache-2.0 */
#include "data.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

#define RECORD_BYTES (PIXELS + 1)
#define PATH_BYTES   4096

/* Makes an image and its label of a record. */
static cadre_status parse(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    const uint8_t *record = cadre_tensor_const_data(in->tensors[0]);
    float image[PIXELS];
    for (int p = 0; p < PIXELS; p++) {
        image[p] = ((float)record[p] - PIXEL_MEAN) / PIXEL_DEVIATION;
    }
    int32_t label = record[PIXELS];
    if (label >= CLASSES) {
        return cadre_fail(CADRE_DATA_LOSS,
            "a record has label %d, which is none of the %d classes; copy the data again", label,
            CLASSES);
    }
    const int64_t dims[1] = {PIXELS};
    CADRE_TRY(cadre_tensor_from_data(CADRE_F32, 1, dims, image, &ret_out->tensors[0]));
    ret_out->count = 1;
    CADRE_TRY(cadre_tensor_from_data(CADRE_I32, 0, NULL, &label, &ret_out->tensors[1]));
    ret_out->count = 2;
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

cadre_dataset *digits_open(const char *program, const char *folder, const char *name)
{
    char path[PATH_BYTES];
    find(program, folder, name, path);
    const char *paths[1] = {path};
    return cadre_dataset_map(
        cadre_dataset_fixed_length(paths, 1, RECORD_BYTES, NULL), parse, NULL, NULL);
}

/* A hash of the image, as in FNV-1a, with the epoch mixed in. */
static uint64_t hash_of(const float *image, uint64_t epoch)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ epoch;
    const unsigned char *bytes = (const unsigned char *)image;
    for (size_t i = 0; i < PIXELS * sizeof *image; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    }
    return hash >> 32;
}

void digits_move(const float *image, uint64_t epoch, float *ret_image)
{
    enum { SIDE = 8 };
    uint64_t drawn = hash_of(image, epoch);
    bool stays = drawn % 2 == 0; /* half of them, or the model would see few as they are */
    int right = stays ? 0 : (int)(drawn / 2 % 3) - 1;
    int down = stays ? 0 : (int)(drawn / 6 % 3) - 1;
    for (int y = 0; y < SIDE; y++) {
        for (int x = 0; x < SIDE; x++) {
            int from_x = x - right;
            int from_y = y - down;
            bool inside = from_x >= 0 && from_x < SIDE && from_y >= 0 && from_y < SIDE;
            ret_image[y * SIDE + x] = inside ? image[from_y * SIDE + from_x] : BACKGROUND;
        }
    }
}
