/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/variables/variable_memory.h"

#include <string.h>

#include "worker/runtime/strategy.h"

static bool has_peers(const cadre_strategy *strategy)
{
    return strategy->environment->attached && strategy->environment->tasks > 1;
}

enum tensor_memory_kind value_memory(const cadre_strategy *strategy)
{
    if (strategy == NULL || !has_peers(strategy)) {
        return TENSOR_MEMORY_HOST;
    }
    /* A process need not be able to share. */
    void *probe = tensor_memory_get(TENSOR_MEMORY_SHARED, CADRE_TENSOR_ALIGN);
    if (probe == NULL) {
        return TENSOR_MEMORY_HOST;
    }
    tensor_memory_give(TENSOR_MEMORY_SHARED, probe, CADRE_TENSOR_ALIGN);
    return TENSOR_MEMORY_SHARED;
}

enum tensor_memory_kind value_memory_enter(const cadre_strategy *strategy)
{
    enum tensor_memory_kind before = tensor_memory_preferred();
    if (before == TENSOR_MEMORY_HOST && has_peers(strategy)) {
        tensor_memory_prefer(TENSOR_MEMORY_SHARED);
    }
    return before;
}

void value_memory_leave(enum tensor_memory_kind before)
{
    tensor_memory_prefer(before);
}

/* There is always an address, also of a value without elements. */
static size_t room_of(const cadre_variable *variable)
{
    return variable->bytes == 0 ? 1 : variable->bytes;
}

void *value_new(const cadre_variable *variable)
{
    void *value = tensor_memory_get(variable->memory, room_of(variable));
    if (value != NULL) {
        memset(value, 0, room_of(variable));
    }
    return value;
}

void value_free(const cadre_variable *variable, void *value)
{
    if (value != NULL) {
        tensor_memory_give(variable->memory, value, room_of(variable));
    }
}
