/* SPDX-License-Identifier: Apache-2.0
 * Map functions of datasets that change one component of each element. */
#ifndef CADRE_WORKER_PREPROCESSING_MAP_COMPONENT_H
#define CADRE_WORKER_PREPROCESSING_MAP_COMPONENT_H

#include "cadre/dataset.h"
#include "common/base/error.h"

typedef cadre_status (*tensor_function)(
    const void *user, const cadre_tensor *in, cadre_tensor **ret_out, struct cadre_error *error);

/* The result of `apply` in place of component `number`, and the other components: one reference of
 * each. What fails is published as that of the public function `name`. */
cadre_status map_component(const char *name, const cadre_element *in, cadre_element *ret_out,
    uint32_t number, tensor_function apply, const void *user);

#endif
