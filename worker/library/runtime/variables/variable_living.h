/* SPDX-License-Identifier: Apache-2.0
 * Which variables there are (see variable_lives). Any thread. */
#ifndef CADRE_RUNTIME_VARIABLE_LIVING_H
#define CADRE_RUNTIME_VARIABLE_LIVING_H

#include <stdbool.h>

#include "cadre/variable.h"

/* False: no memory to remember it. */
bool variable_begins(const cadre_variable *variable);

/* It is about to go; nothing, if it is not known. */
void variable_ends(const cadre_variable *variable);

#endif
