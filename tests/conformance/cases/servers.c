/* SPDX-License-Identifier: Apache-2.0
 * The servers are threads of this process. */
#include "servers.h"

#include <stdlib.h>

#include "replicas.h"

cadre_strategy *process_servers(uint64_t shards)
{
    const cadre_parameter_server_options options = {
        .partitioner = {.kind = CADRE_PARTITIONER_FIXED, .shards = shards}};
    cadre_strategy *strategy = NULL;
    setenv("CADRE_SERVERS", CASE_SERVERS, 1);
    CADRE_CHECK(cadre_init(NULL, NULL));
    CADRE_CHECK(cadre_strategy_parameter_server(&options, &strategy));
    cadre_show_progress(strategy, false);
    return strategy;
}

json_t *case_shards(struct conformance_case *self, cadre_variable *variable)
{
    json_t *list = case_keep(self, json_array(), case_release_json);
    bool served = cadre_variable_kind(variable) == CADRE_VARIABLE_SERVED;
    for (uint32_t shard = 0; shard < (served ? cadre_variable_components(variable) : 1); shard++) {
        int64_t first;
        int64_t rows;
        cadre_tensor *value = NULL;
        if (!case_ok(self, cadre_variable_component_rows(variable, shard, &first, &rows),
                "cadre_variable_component_rows") ||
            !case_ok(self, cadre_variable_slice(NULL, variable, first, first + rows, 1, &value),
                "cadre_variable_slice")) {
            return NULL;
        }
        json_array_append_new(list, value_of_tensor(value));
        cadre_tensor_release(value);
    }
    return list;
}
