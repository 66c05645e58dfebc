/* SPDX-License-Identifier: Apache-2.0
 * See file_lists.h. */
#include "tests/unit/input/file_lists.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/input/cmocka_unit.h"
#include "tests/unit/input/scratch_folder.h"

/* Writes them; the paths are the caller's to free. */
static char **write_files(const int64_t records[], size_t count)
{
    char **paths = calloc(count + 1, sizeof paths[0]);
    for (size_t f = 0; f < count; f++) {
        char name[32];
        int64_t values[1000];
        assert_true(records[f] <= 1000);
        for (int64_t r = 0; r < records[f]; r++) {
            values[r] = (int64_t)f * 1000 + r;
        }
        snprintf(name, sizeof name, "file-%03zu", f);
        paths[f] = strdup(scratch_write(name, values, (size_t)records[f] * sizeof values[0]));
    }
    return paths;
}

static void free_paths(char **paths, size_t count)
{
    for (size_t f = 0; f < count; f++) {
        free(paths[f]);
    }
    free(paths);
}

cadre_dataset *file_names(const int64_t records[], size_t count)
{
    cadre_tensor *names = NULL;
    char **paths = write_files(records, count);
    cadre_string *strings = calloc(count + 1, sizeof strings[0]);
    const int64_t dims[] = {(int64_t)count};
    for (size_t f = 0; f < count; f++) {
        strings[f] = (cadre_string){.bytes = paths[f], .size = strlen(paths[f])};
    }
    assert_int_equal(cadre_tensor_from_data(CADRE_STRING, 1, dims, strings, &names), CADRE_OK);
    free(strings);
    free_paths(paths, count);
    cadre_dataset *data = cadre_dataset_tensor_slices(&names, 1);
    cadre_tensor_release(names);
    return data;
}

cadre_dataset *alike_file_names(size_t count, int64_t records)
{
    int64_t all[512];
    assert_true(count <= 512);
    for (size_t f = 0; f < count; f++) {
        all[f] = records;
    }
    return file_names(all, count);
}

static cadre_status to_number(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t number = 0;
    memcpy(&number, cadre_tensor_const_data(in->tensors[0]), sizeof number);
    ret_out->count = 1;
    return cadre_tensor_from_i64(number, &ret_out->tensors[0]);
}

static const cadre_element_spec scalar = {.count = 1, .tensors = {{.dtype = CADRE_I64}}};

cadre_dataset *file_list(const int64_t records[], size_t count)
{
    char **paths = write_files(records, count);
    cadre_dataset *data =
        cadre_dataset_fixed_length((const char *const *)paths, count, sizeof(int64_t), NULL);
    free_paths(paths, count);
    return cadre_dataset_map(data, to_number, NULL, &(cadre_map_options){.output = &scalar});
}

cadre_status open_file(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    char path[512];
    const cadre_string *name = cadre_tensor_const_data(in->tensors[0]);
    (void)user;
    snprintf(path, sizeof path, "%.*s", (int)name->size, name->bytes);
    const char *const paths[] = {path};
    cadre_dataset *data = cadre_dataset_fixed_length(paths, 1, 8, NULL);
    *ret_data = cadre_dataset_map(data, to_number, NULL, &(cadre_map_options){.output = &scalar});
    return CADRE_OK;
}
