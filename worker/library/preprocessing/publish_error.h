/* SPDX-License-Identifier: Apache-2.0
 * The end of a public function of this folder. */
#ifndef CADRE_WORKER_PREPROCESSING_PUBLISH_ERROR_H
#define CADRE_WORKER_PREPROCESSING_PUBLISH_ERROR_H

#include "common/base/error.h"

/* Leaves the message of a failure with the calling thread. */
static inline cadre_status publish_error(cadre_status status, struct cadre_error *error)
{
    if (status != CADRE_OK) {
        error->code = status;
        cadre_error_publish(error);
    }
    return status;
}

#endif
