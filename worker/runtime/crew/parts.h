/* SPDX-License-Identifier: Apache-2.0
 * What other folders of the runtime do for a crew that begins and ends. */
#ifndef CADRE_RUNTIME_CREW_PARTS_H
#define CADRE_RUNTIME_CREW_PARTS_H

#include "worker/runtime/crew/crew.h"

/* Those that the crew knows are gone. (worker/runtime/parameters) */
void parameters_end(struct crew_state *crew);

#endif
