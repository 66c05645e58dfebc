/* SPDX-License-Identifier: Apache-2.0
 * Elements gathered one by one, to be stacked: the way of all pipelines that have no faster one. */
#ifndef CADRE_WORKER_INPUT_NODE_ELEMENT_STACK_H
#define CADRE_WORKER_INPUT_NODE_ELEMENT_STACK_H

#include "worker/library/input/node/node.h"

/* About what an element takes while it is held, with the text of its strings. */
uint64_t element_memory_bytes(const cadre_element *element);

/* Zeroed: none. */
struct element_stack {
    cadre_element *elements;
    size_t count;
    size_t capacity;
};

/* Takes the element over, also on error. */
cadre_status element_stack_add(
    struct element_stack *rows, cadre_element *element, struct cadre_error *error);

/* All of them, at least one, under a new first dimension. INVALID_ARGUMENT names the first that
 * differs in its components or shapes. */
cadre_status element_stack_finish(
    const struct element_stack *rows, cadre_element *ret_element, struct cadre_error *error);

/* All of them, at least one, joined along their first dimension. What differs is said of component
 * N of `who`, with `end` behind it. */
cadre_status element_stack_concat(const struct element_stack *rows, const char *who,
    const char *end, cadre_element *ret_element, struct cadre_error *error);

void element_stack_clear(struct element_stack *rows);

#endif
