/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as a TF_CONFIG document. What is refused says why; of what is
 * accepted each task has an address, a copy is equal, and each question has an answer or a reason.
 */
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/cluster/resolver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const cadre_cluster_spec *spec, const char *type, uint32_t id)
{
    struct cadre_error error = {0};
    uint32_t count;
    uint32_t place;
    cadre_status valid = cluster_spec_check(spec, type, id, &error);
    CADRE_ASSERT(valid == CADRE_OK || (valid == CADRE_INVALID_ARGUMENT && error.text[0] != '\0'));
    if (valid == CADRE_OK && cluster_id_in_cluster(spec, type, id, &place, &error) == CADRE_OK) {
        CADRE_ASSERT(cluster_worker_count(spec, type, &count, &error) == CADRE_OK);
        CADRE_ASSERT(place < count || cluster_spec_find(spec, type) == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tf_config config;
    struct cadre_error error = {0};
    cadre_status status = tf_config_parse((const char *)data, size, &config, &error);
    if (status != CADRE_OK) {
        CADRE_ASSERT(error.code == status && error.text[0] != '\0');
        tf_config_clear(&config);
        return 0;
    }
    uint32_t tasks = 0;
    for (size_t i = 0; i < config.spec->job_count; i++) {
        const struct cluster_job *job = &config.spec->jobs[i];
        for (uint32_t t = 0; t < job->task_count; t++) {
            CADRE_ASSERT(t == 0 || job->tasks[t].index > job->tasks[t - 1].index);
            CADRE_ASSERT(cluster_job_address(job, job->tasks[t].index) != NULL);
        }
        tasks += job->task_count;
        ask(config.spec, job->name, 0);
    }
    CADRE_ASSERT(tasks == config.spec->task_count);
    ask(config.spec, config.task_type, config.task_id);
    cadre_cluster_spec *copy;
    CADRE_ASSERT(cluster_spec_copy(config.spec, &copy, &error) == CADRE_OK);
    CADRE_ASSERT(cluster_spec_equal(copy, config.spec));
    cadre_cluster_spec_release(copy);
    tf_config_clear(&config);
    return 0;
}
