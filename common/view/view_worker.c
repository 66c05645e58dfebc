/* SPDX-License-Identifier: Apache-2.0
 * Workers with their GPUs, from model structs to the public ones. */
#include "common/view/result.h"
#include "common/view/view.h"

/* `gpus` has room for info->gpus.count, and lives as long as the result. */
static void view_worker(const struct worker_info *info, cadre_gpu *gpus, cadre_worker *ret_worker)
{
    for (size_t i = 0; i < info->gpus.count; i++) {
        const struct gpu *gpu = &info->gpus.devices[i];
        gpus[i] = (cadre_gpu){.name = gpu->name,
            .uuid = gpu->uuid,
            .bus = gpu->bus,
            .memory_bytes = gpu->memory_bytes,
            .compute_major = gpu->compute_major,
            .compute_minor = gpu->compute_minor,
            .unused = gpu->unused};
    }
    *ret_worker = (cadre_worker){.id = info->id.n,
        .name = info->name,
        .host = info->host,
        .version = info->version,
        .slots = info->slots,
        .slots_used = info->slots_used,
        .cpus = info->cpus,
        .memory_bytes = info->memory_bytes,
        .draining = info->draining,
        .connected = info->connected,
        .expected = info->expected,
        .drained_by = info->drained_by,
        .drained_why = info->drained_why,
        .joined_us = info->joined_us,
        .gpus = gpus,
        .gpu_count = info->gpus.count,
        .gpus_omitted = info->gpus.omitted,
        .gpus_usable = info->gpus.usable,
        .gpu_driver = info->gpus.driver,
        .gpu_runtime = info->gpus.runtime,
        .nccl = info->gpus.nccl,
        .gpu_reason = info->gpus.reason,
        .certificate_ends_us = info->certificate_ends_us,
        .usage = view_usage(&info->usage)};
}

cadre_worker_list *view_workers_new(
    const struct list_workers_response *response, struct wire_arena *arena)
{
    cadre_worker_list *list = result_new(sizeof *list, arena);
    cadre_worker *workers =
        list != NULL ? result_array(list, 0, response->count, sizeof *workers) : NULL;
    size_t gpu_count = 0;
    for (size_t i = 0; i < response->count; i++) {
        gpu_count += response->workers[i].gpus.count;
    }
    cadre_gpu *gpus = workers != NULL ? result_array(list, 1, gpu_count, sizeof *gpus) : NULL;
    if (gpus == NULL) {
        result_discard(list);
        return NULL;
    }
    for (size_t i = 0; i < response->count; i++) {
        view_worker(&response->workers[i], gpus, &workers[i]);
        gpus += response->workers[i].gpus.count;
    }
    *list = (cadre_worker_list){.workers = workers, .count = response->count};
    return list;
}
