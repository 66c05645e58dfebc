/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/clock.h"
#include "coordinator/engine/engine_state.h"

uint64_t engine_sync_due_us(const struct engine *engine)
{
    bool waits = engine->unsynced && engine->options.sync_us > 0;
    return waits ? engine->unsynced_us + engine->options.sync_us : CADRE_TIME_NEVER;
}
