/* SPDX-License-Identifier: Apache-2.0
 * The workers with their GPUs. */
#include "common/json/json.h"
#include "common/json/json_value.h"

static const char *worker_state(const cadre_worker *worker)
{
    if (!worker->connected) {
        return worker->expected ? "expected" : "away";
    }
    return worker->draining ? "draining" : "ready";
}

static json_t *of_gpus(const cadre_worker *worker)
{
    json_t *gpus = json_array();
    for (size_t i = 0; i < worker->gpu_count; i++) {
        const cadre_gpu *gpu = &worker->gpus[i];
        json_t *json = json_object();
        json_object_set_new(json, "name", json_text(gpu->name));
        json_object_set_new(json, "uuid", json_text(gpu->uuid));
        json_object_set_new(json, "bus", json_text(gpu->bus));
        json_object_set_new(json, "memory_bytes", json_number(gpu->memory_bytes));
        json_object_set_new(json, "compute_major", json_number(gpu->compute_major));
        json_object_set_new(json, "compute_minor", json_number(gpu->compute_minor));
        json_object_set_new(json, "unused", json_text(gpu->unused));
        json_array_append_new(gpus, json);
    }
    return gpus;
}

static json_t *of_worker(const cadre_worker *worker)
{
    json_t *json = json_object();
    json_object_set_new(json, "id", json_number(worker->id));
    json_object_set_new(json, "name", json_text(worker->name));
    json_object_set_new(json, "state", json_text(worker_state(worker)));
    json_object_set_new(json, "drained_by", json_text(worker->drained_by));
    json_object_set_new(json, "drained_why", json_text(worker->drained_why));
    json_object_set_new(json, "host", json_text(worker->host));
    json_object_set_new(json, "version", json_text(worker->version));
    json_object_set_new(json, "slots", json_number(worker->slots));
    json_object_set_new(json, "slots_used", json_number(worker->slots_used));
    json_object_set_new(json, "cpus", json_number(worker->cpus));
    json_object_set_new(json, "memory_bytes", json_number(worker->memory_bytes));
    json_object_set_new(json, "joined_us", json_number(worker->joined_us));
    json_object_set_new(json, "gpus", of_gpus(worker));
    json_object_set_new(json, "gpus_usable", json_number(worker->gpus_usable));
    json_object_set_new(json, "gpus_omitted", json_number(worker->gpus_omitted));
    json_object_set_new(json, "gpu_driver", json_text(worker->gpu_driver));
    json_object_set_new(json, "gpu_runtime", json_text(worker->gpu_runtime));
    json_object_set_new(json, "nccl", json_number(worker->nccl));
    json_object_set_new(json, "gpu_reason", json_text(worker->gpu_reason));
    json_object_set_new(json, "certificate_ends_us", json_number(worker->certificate_ends_us));
    json_object_set_new(json, "usage", json_usage(&worker->usage));
    return json;
}

json_t *json_of_workers(const cadre_worker_list *list)
{
    json_t *workers = json_array();
    for (size_t i = 0; i < list->count; i++) {
        json_array_append_new(workers, of_worker(&list->workers[i]));
    }
    json_t *json = json_object();
    json_object_set_new(json, "workers", workers);
    return json;
}
