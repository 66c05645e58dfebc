/* SPDX-License-Identifier: Apache-2.0
 * Objects of a store that a dataset of TFRecord files reads are looked up once, and held. */
#include "common/storage/storage.h"
#include "worker/library/input/sources/tfrecord.h"

cadre_status tfrecord_hold(
    struct tfrecord_dataset *tfrecord, size_t number, struct cadre_error *error)
{
    const char *path = tfrecord->paths[number];
    cadre_status status = CADRE_OK;
    if (storage_is_object(path)) {
        pthread_mutex_lock(&tfrecord->lock);
        if (tfrecord->files[number].path == NULL) {
            status = input_file_open(&tfrecord->files[number], path, true, error);
        }
        pthread_mutex_unlock(&tfrecord->lock);
    }
    return status;
}
