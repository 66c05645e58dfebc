/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/values/value_memory.h"

#include "cadre/tensor.h"
#include "worker/library/runtime/strategy/strategy.h"

static bool has_peers(const cadre_strategy *strategy)
{
    return strategy->environment->attached && strategy->environment->tasks > 1;
}

enum tensor_memory_kind value_memory(const cadre_strategy *strategy)
{
    if (strategy == NULL || !has_peers(strategy)) {
        return TENSOR_MEMORY_HOST;
    }
    /* A process may be unable to share memory. */
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
