/* SPDX-License-Identifier: Apache-2.0 */
#include "data.h"

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
        image[p] = (float)record[p] / 16.0f;
    }
    int32_t label = record[PIXELS];
    if (label >= CLASSES) {
        return CADRE_DATA_LOSS;
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
        cadre_dataset_fixed_length(paths, 1, 0, RECORD_BYTES, 0), parse, NULL, NULL);
}
