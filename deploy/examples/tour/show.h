/* SPDX-License-Identifier: Apache-2.0
 * Prints numbers and texts of tensors on one line, "[[1 2] [3 4]]". */
#ifndef TOUR_SHOW_H
#define TOUR_SHOW_H

#include <cadre/cadre.h>

/* One tensor; of a scalar its value alone. */
void show(const cadre_tensor *tensor);

/* Component `component` of each of this task's replicas: "([0 1], [2 3])", and the line's end. */
void show_replicas(const cadre_per_replica *value, uint32_t component);

#endif
