/* SPDX-License-Identifier: Apache-2.0
 * Which variables there are (see variable_is_registered). Any thread. */
#ifndef CADRE_RUNTIME_VARIABLE_REGISTRY_H
#define CADRE_RUNTIME_VARIABLE_REGISTRY_H

#include <stdbool.h>

#include "cadre/variable.h"

/* False: no memory to remember it. */
bool variable_registry_add(const cadre_variable *variable);

/* It is about to go; nothing, if it is not known. */
void variable_registry_remove(const cadre_variable *variable);

#endif
