/* SPDX-License-Identifier: Apache-2.0
 * The history of a job as a table. Pure. */
#ifndef CADRE_CLI_RENDER_RENDER_HISTORY_H
#define CADRE_CLI_RENDER_RENDER_HISTORY_H

#include "cadre/client.h"
#include "coordinator/cli/render/terminal.h"

/* Which events are rows of one table; between two pages of it. Zeroed at first. */
struct history_table {
    uint64_t began_us; /* times are relative to it: the job's first event */
    uint64_t printed;  /* the number of the last event */
    bool titled;
};

/* The time, the generation and the step of each event and what it is in a sentence; a row for
 * events that are not kept. */
void render_history(struct history_table *table, const cadre_history *history,
    const struct text_style *text_style, FILE *out);

#endif
