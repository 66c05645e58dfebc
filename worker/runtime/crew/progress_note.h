/* SPDX-License-Identifier: Apache-2.0
 * How far the chief is, as a note on server 0: what an evaluator goes by. */
#ifndef CADRE_RUNTIME_PROGRESS_NOTE_H
#define CADRE_RUNTIME_PROGRESS_NOTE_H

#include "worker/runtime/crew/crew.h"

/* No name of a parameter begins so (name_check): lists of notes pass over those that do. */
#define PROGRESS_NOTE_NAME "\001progress"

struct progress_note {
    uint64_t step; /* joins */
    uint64_t done; /* closures and pushes below it are done */
};

cadre_status progress_note_write(
    struct crew_state *crew, const struct progress_note *note, struct cadre_error *error);

/* Zeros when nobody has written it. */
cadre_status progress_note_read(
    struct crew_state *crew, struct progress_note *ret_note, struct cadre_error *error);

#endif
