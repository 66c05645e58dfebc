/* SPDX-License-Identifier: Apache-2.0
 * The coordinators as text; pure, as render.h. */
#ifndef CADRE_CLI_RENDER_RENDER_COORDINATORS_H
#define CADRE_CLI_RENDER_RENDER_COORDINATORS_H

#include "cadre/client_coordinators.h"
#include "coordinator/cli/render/render.h"

/* A table, with a line below it where none leads, and the sentence of each that has one. */
bool render_coordinators(const cadre_coordinator_list *list, uint64_t now_us,
    const struct text_style *text_style, FILE *out);

#endif
