/* SPDX-License-Identifier: Apache-2.0
 * Which task reads which part of a job's datasets. */
#include "common/json/json.h"
#include "common/json/json_value.h"

static json_t *of_shards(const cadre_job_shards *shards)
{
    json_t *files = json_array();
    for (size_t i = 0; i < shards->shown; i++) {
        const cadre_job_file *file = &shards->files[i];
        json_t *json = json_object();
        json_object_set_new(json, "name", json_text(file->name));
        json_object_set_new(json, "rank", file->is_read ? json_null() : json_number(file->rank));
        json_object_set_new(json, "read", json_number(file->read));
        json_object_set_new(json, "total",
            file->total > 0 || file->is_read ? json_number(file->total) : json_null());
        json_array_append_new(files, json);
    }
    json_t *json = json_object();
    json_object_set_new(json, "dataset", json_text(shards->dataset));
    json_object_set_new(json, "policy", json_text(shards->policy));
    json_object_set_new(json, "epoch", json_number(shards->epoch));
    json_object_set_new(json, "step", json_number(shards->step));
    json_object_set_new(json, "readers", json_number(shards->readers));
    json_object_set_new(json, "file_count", json_number(shards->file_count));
    json_object_set_new(json, "files_read", json_number(shards->files_read));
    json_object_set_new(json, "files", files);
    return json;
}

json_t *json_of_shards(const cadre_job *job)
{
    json_t *datasets = json_array();
    for (size_t i = 0; i < job->shards_count; i++) {
        json_array_append_new(datasets, of_shards(&job->shards[i]));
    }
    json_t *json = json_object();
    json_object_set_new(json, "id", json_number(job->id));
    json_object_set_new(json, "datasets", datasets);
    return json;
}
