/* SPDX-License-Identifier: Apache-2.0
 * Names of the components of elements and values. A name, and each list of them, is kept once until
 * the process ends: programs have few, and so a list is passed on as a pointer by the functions
 * that describe elements, and outlives all of them. */
#ifndef CADRE_WORKER_INPUT_NODE_COMPONENT_NAMES_H
#define CADRE_WORKER_INPUT_NODE_COMPONENT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/dataset.h"
#include "common/base/error.h"

#define NAMES_TEXT_BYTES 400

/* What a name is kept as; NULL: no memory. Any thread. */
const char *component_name_intern(const char *name);

/* The list of `count` names that are kept, or NULL; NULL: no memory. Nothing is asked of them. */
const char *const *component_names_list(const char *const names[], uint32_t count);

/* What `count` names are kept as, where NULL stands for none; NULL where all are. INVALID_ARGUMENT,
 * which `who` begins: a name is empty, or is there twice. Any thread. */
cadre_status component_names_intern(const char *const names[], uint32_t count, const char *who,
    const char *const **ret_names, struct cadre_error *error);

/* A list of names that is made name by name. Begins zeroed. */
struct names_builder {
    uint32_t count;
    bool no_memory;
    const char *names[CADRE_ELEMENT_TENSORS_MAX];
};

/* The next name: "prefix/name"; the one that there is, where the other is NULL or empty; else none.
 */
void names_builder_add(struct names_builder *made, const char *prefix, const char *name);

/* The names of part `part` of a tuple: '2/image' and so on; '2/0', '2/1' where they have none, and
 * '2' if there is only one. `names` may be NULL. */
void names_builder_add_tuple_item(
    struct names_builder *made, uint32_t part, const char *const names[], uint32_t count);

/* The components of a ragged or sparse value that is called `name`, which may be NULL. */
void names_builder_add_ragged(struct names_builder *made, const char *name);
void names_builder_add_sparse(struct names_builder *made, const char *name);

/* A row of a ragged value, whose values are called `name`: 'x' of 'x/values'. */
void names_builder_add_ragged_row(struct names_builder *made, const char *name);

cadre_status names_builder_intern(const struct names_builder *made, const char *who,
    const char *const **ret_names, struct cadre_error *error);

/* "'image', 'label'", or "none has a name". Returns `text`; what does not fit is left out. */
const char *component_names_text(
    const char *const names[], uint32_t count, char text[NAMES_TEXT_BYTES]);

/* The component that is called `name`. NOT_FOUND, in a sentence that `who` begins and that says
 * which names there are; INVALID_ARGUMENT: several are. `names` may be NULL. */
cadre_status component_names_find(const char *const names[], uint32_t count, const char *name,
    const char *who, uint32_t *ret_component, struct cadre_error *error);

#endif
