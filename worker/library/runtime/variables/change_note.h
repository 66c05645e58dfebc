/* SPDX-License-Identifier: Apache-2.0
 * What tasks that change variables compare: a key of what must be equal, and text for the message
 * when it is not. */
#ifndef CADRE_RUNTIME_CHANGE_NOTE_H
#define CADRE_RUNTIME_CHANGE_NOTE_H

#include <stddef.h>
#include <stdint.h>

#include "worker/library/runtime/variables/variable.h"

/* The key of a change: its function, the variable (NULL: any), and numbers folded in with
 * collective_key. */
uint64_t change_key(const char *function, const cadre_variable *variable);
/* The change as text: "cadre_variable_assign('weight', 0.5)"; `value` NULL: without one. Returns
 * `text`. */
#define CHANGE_TEXT_BYTES 112
/* Writes at most CHANGE_TEXT_BYTES; a long name is cut. */
const char *change_text(const char *function, const cadre_variable *variable, const char *value,
    char text[CHANGE_TEXT_BYTES]);
/* Folds bytes into a key. */
uint64_t change_key_bytes(uint64_t key, const void *bytes, size_t size);

#endif
