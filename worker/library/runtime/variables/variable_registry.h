/* SPDX-License-Identifier: Apache-2.0
 * The registry of variables (see variable_is_registered). Any thread. */
#ifndef CADRE_RUNTIME_VARIABLE_REGISTRY_H
#define CADRE_RUNTIME_VARIABLE_REGISTRY_H

#include <stdbool.h>

#include "cadre/variable.h"

/* False: no memory to add it. */
bool variable_registry_add(const cadre_variable *variable);

/* Called before it is freed; does nothing if it is not there. */
void variable_registry_remove(const cadre_variable *variable);

#endif
