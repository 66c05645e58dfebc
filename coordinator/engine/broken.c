/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/engine/engine_state.h"

void engine_break(struct engine *engine, const struct cadre_error *error)
{
    if (engine->broken == CADRE_OK) {
        engine->broken = error->code;
        engine->broken_error = *error;
    }
}
