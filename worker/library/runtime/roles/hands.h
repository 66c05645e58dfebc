/* SPDX-License-Identifier: Apache-2.0
 * A crew that is made by hand: its servers and workers are threads of the chief's program, and
 * meet over 127.0.0.1 as they would anywhere. What a coordinator would tell them is told here. */
#ifndef CADRE_RUNTIME_CREW_HANDS_H
#define CADRE_RUNTIME_CREW_HANDS_H

#include "worker/library/runtime/crew/crew.h"

struct crew_hands;

/* All of them for a chief that listens: its directory knows everybody afterwards, and its servers
 * serve. In chief->hands, to be ended also after an error. */
cadre_status hands_open(struct crew_state *chief, struct cadre_error *error);

/* The threads of its workers begin; one that fails ends the chief's directory. */
cadre_status hands_start_workers(struct crew_hands *hands, struct cadre_error *error);

/* Both take NULL. Workers first: what they push is still served. The latter frees all. */
void hands_end_workers(struct crew_hands *hands);
void hands_end_servers(struct crew_hands *hands);

#endif
