/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/variable_memory.h"

#include <string.h>

#include "worker/runtime/strategy.h"

enum tensor_memory_kind value_memory(const cadre_strategy *strategy)
{
    (void)strategy;
    return TENSOR_MEMORY_HOST;
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
