/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/device/local_device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"

/* Names are made at their first use, and keep their addresses. */
static struct {
    pthread_mutex_t lock;
    struct device_host host;
    bool made[LOCAL_DEVICE_TYPES][LOCAL_DEVICE_MAX];
    char names[LOCAL_DEVICE_TYPES][LOCAL_DEVICE_MAX][CADRE_DEVICE_NAME_BYTES];
} here = {.lock = PTHREAD_MUTEX_INITIALIZER, .host = {.job = "localhost"}};

static atomic_uint processors = 1;
static _Thread_local uint8_t preferred;

/* Under the lock. */
static void local_device_make(enum local_device_type type, uint32_t index)
{
    cadre_device_spec spec = {.replica = 0, .task = here.host.task, .index = (int32_t)index};
    CADRE_ASSERT(here.host.task >= 0);
    memcpy(spec.job, here.host.job, sizeof spec.job);
    snprintf(spec.type, sizeof spec.type, "%s", type == LOCAL_DEVICE_GPU ? "GPU" : "CPU");
    device_name_text(&spec, here.names[type][index]);
    here.made[type][index] = true;
}

void local_device_set_task(const struct device_host *host)
{
    pthread_mutex_lock(&here.lock);
    here.host = *host;
    for (int type = 0; type < LOCAL_DEVICE_TYPES; type++) {
        for (uint32_t i = 0; i < LOCAL_DEVICE_MAX; i++) {
            if (here.made[type][i]) { /* its text may be in use */
                local_device_make((enum local_device_type)type, i);
            }
        }
    }
    pthread_mutex_unlock(&here.lock);
}

const char *local_device_name(enum local_device_type type, uint32_t index)
{
    CADRE_ASSERT(index < LOCAL_DEVICE_MAX);
    pthread_mutex_lock(&here.lock);
    if (!here.made[type][index]) {
        local_device_make(type, index);
    }
    pthread_mutex_unlock(&here.lock);
    return here.names[type][index];
}

void local_device_set_processors(uint32_t count)
{
    CADRE_ASSERT(count <= LOCAL_DEVICE_MAX);
    unsigned before = atomic_load(&processors);
    while (before < count && !atomic_compare_exchange_weak(&processors, &before, count)) {
    }
}

uint32_t local_device_processors(void)
{
    return atomic_load(&processors);
}

uint8_t local_device_processor_of(const char *name)
{
    cadre_device_spec spec;
    struct cadre_error ignored;
    bool processor =
        device_name_parse(name, &spec, &ignored) == CADRE_OK && strcmp(spec.type, "CPU") == 0;
    return processor && spec.index >= 0 && spec.index < LOCAL_DEVICE_MAX ? (uint8_t)spec.index : 0;
}

uint8_t local_device_prefer(uint8_t processor)
{
    uint8_t before = preferred;
    preferred = processor;
    return before;
}

uint8_t local_device_preferred(void)
{
    return preferred;
}
