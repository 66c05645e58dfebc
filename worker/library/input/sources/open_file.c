/* SPDX-License-Identifier: Apache-2.0
 * Functions for flat_map and interleave that open the file which an element names. */
#include <limits.h>
#include <string.h>

#include "worker/library/device/argument.h"
#include "worker/library/input/node/node.h"

/* The name as a path that the system takes. */
static cadre_status take_path(
    const cadre_element *in, const char *function, char path[PATH_MAX], struct cadre_error *error)
{
    const cadre_tensor *name = in != NULL && in->count == 1 ? in->tensors[0] : NULL;
    if (cadre_tensor_dtype(name) != CADRE_STRING || cadre_tensor_rank(name) != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s opens files of their names: elements of one scalar string, as "
            "cadre_dataset_list_files gives them",
            function);
    }
    const cadre_string *bytes = cadre_tensor_const_data(name);
    if (bytes->size == 0 || bytes->size >= PATH_MAX ||
        memchr(bytes->bytes, '\0', bytes->size) != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given a name of %zu bytes; a path has 1 to %d and no zero byte", function,
            bytes->size, PATH_MAX - 1);
    }
    memcpy(path, bytes->bytes, bytes->size);
    path[bytes->size] = '\0';
    return CADRE_OK;
}

cadre_status cadre_open_tfrecord(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    struct cadre_error error = {0};
    char path[PATH_MAX];
    const char *paths[1] = {path};
    if (take_path(in, __func__, path, &error) != CADRE_OK) {
        return cadre_error_publish(&error);
    }
    *ret_data = cadre_dataset_tfrecord(paths, 1, user);
    return CADRE_OK;
}

cadre_status cadre_open_text_lines(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    struct cadre_error error = {0};
    char path[PATH_MAX];
    const char *paths[1] = {path};
    if (take_path(in, __func__, path, &error) != CADRE_OK) {
        return cadre_error_publish(&error);
    }
    *ret_data = cadre_dataset_text_lines(paths, 1, user);
    return CADRE_OK;
}
