/* SPDX-License-Identifier: Apache-2.0
 * What a strategy's state consists of besides its variables, and what is done with it. */
#ifndef CADRE_RUNTIME_STATE_PART_H
#define CADRE_RUNTIME_STATE_PART_H

#include <stdbool.h>
#include <stddef.h>

struct state_part {
    /* While a generation forms: the positions and strings that are given, or were taken. */
    char *text; /* owned; or NULL */
    size_t text_bytes;
    bool receiving; /* state_receive was called, and neither its commit nor its undo */
};

#endif
