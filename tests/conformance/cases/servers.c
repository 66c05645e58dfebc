/* SPDX-License-Identifier: Apache-2.0
 * The servers are memory of this process. */
#include "servers.h"

#include "replicas.h"
#include "tests/unit/parameters/fake_servers.h"

static void release(void *strategy)
{
    fake_release(strategy);
}

cadre_strategy *case_servers(struct conformance_case *self, uint64_t shards)
{
    const cadre_partitioner fixed = {.kind = CADRE_PARTITIONER_FIXED, .shards = shards};
    cadre_strategy *strategy = case_strategy(self, 1);
    if (strategy != NULL) {
        fake_attach(strategy, CASE_SERVERS, &fixed);
        case_keep(self, strategy, release);
    }
    return strategy;
}

cadre_strategy *process_servers(uint64_t shards)
{
    const cadre_partitioner fixed = {.kind = CADRE_PARTITIONER_FIXED, .shards = shards};
    cadre_strategy *strategy = NULL;
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_mirrored(1, &strategy));
    cadre_show_progress(strategy, false);
    fake_attach(strategy, CASE_SERVERS, &fixed);
    return strategy;
}

void process_servers_end(cadre_strategy *strategy)
{
    fake_release(strategy);
}

json_t *case_shards(struct conformance_case *self, cadre_parameter *parameter)
{
    json_t *list = case_keep(self, json_array(), case_release_json);
    for (uint32_t shard = 0; shard < cadre_parameter_shards(parameter); shard++) {
        int64_t first;
        int64_t rows;
        cadre_tensor *value = NULL;
        if (!case_ok(self, cadre_parameter_shard(parameter, shard, &first, &rows, NULL),
                "cadre_parameter_shard") ||
            !case_ok(self, cadre_parameter_slice(parameter, first, first + rows, 1, &value),
                "cadre_parameter_slice")) {
            return NULL;
        }
        json_array_append_new(list, value_of_tensor(value));
        cadre_tensor_release(value);
    }
    return list;
}
