/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/values.h"

#include <stdlib.h>

cadre_per_replica *per_replica_new(uint32_t replicas, uint32_t components)
{
    size_t count = (size_t)replicas * components;
    cadre_per_replica *value = calloc(1, sizeof *value + count * sizeof(cadre_tensor *));
    if (value != NULL) {
        atomic_init(&value->references, 1);
        value->replicas = replicas;
        value->components = components;
    }
    return value;
}

cadre_tensor **per_replica_at(cadre_per_replica *value, uint32_t component, uint32_t replica)
{
    return &value->tensors[(size_t)component * value->replicas + replica];
}

cadre_per_replica *cadre_per_replica_retain(cadre_per_replica *value)
{
    if (value != NULL) {
        atomic_fetch_add_explicit(&value->references, 1, memory_order_relaxed);
    }
    return value;
}

void cadre_per_replica_release(cadre_per_replica *value)
{
    if (value == NULL ||
        atomic_fetch_sub_explicit(&value->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < (size_t)value->replicas * value->components; i++) {
        cadre_tensor_release(value->tensors[i]);
    }
    free(value);
}

uint32_t cadre_per_replica_count(const cadre_per_replica *value)
{
    return value == NULL ? 0 : value->replicas;
}

uint32_t cadre_per_replica_components(const cadre_per_replica *value)
{
    return value == NULL ? 0 : value->components;
}

cadre_tensor *const *cadre_local_results(const cadre_per_replica *value, uint32_t component)
{
    if (value == NULL || component >= value->components) {
        return NULL;
    }
    return &value->tensors[(size_t)component * value->replicas];
}
