/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints of variables that are cut into shards, in processes of their own. */
#include "areas.h"
#include "replicas.h"
#include "servers.h"

static cadre_status do_nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

static json_t *joined(struct conformance_case *self, const json_t *components)
{
    json_t *all = case_keep(self, json_array(), case_release_json);
    size_t i;
    json_t *component;
    json_array_foreach(components, i, component)
    {
        json_array_extend(all, component);
    }
    return all;
}

static cadre_variable *create(cadre_strategy *strategy, const cadre_tensor *like)
{
    cadre_variable *variable = NULL;
    CADRE_CHECK(cadre_variable_create(strategy, "v", cadre_tensor_dtype(like),
        cadre_tensor_rank(like), cadre_tensor_dims(like), NULL, &variable));
    return variable;
}

/* A step, since a program goes on from behind one. */
static void step(cadre_strategy *strategy)
{
    CADRE_CHECK(cadre_run(strategy, do_nothing, NULL, NULL, 0, NULL));
}

json_t *sharded_save(struct conformance_case *self)
{
    const json_t *components = json_object_get(json_object_get(self->given, "save"), "components");
    json_t *all = joined(self, components);
    cadre_tensor *value = NULL;
    cadre_tensor *whole = NULL;
    if (!case_tensor(self, all, case_dtype_of(all), &value)) {
        return NULL;
    }
    cadre_strategy *strategy = process_servers(json_array_size(components));
    cadre_variable *variable = create(strategy, value);
    CADRE_CHECK(cadre_variable_assign(NULL, variable, CADRE_ASSIGN, value));
    step(strategy);
    CADRE_CHECK(cadre_save(strategy, true));
    CADRE_CHECK(cadre_variable_value(NULL, variable, NULL, &whole));
    json_t *saved = value_of_tensor(whole);
    cadre_tensor_release(whole);
    cadre_strategy_release(strategy);
    return saved;
}

json_t *sharded_restore(struct conformance_case *self)
{
    const json_t *components = json_object_get(json_object_get(self->given, "save"), "components");
    const json_t *sizes = json_object_get(json_object_get(self->given, "restore"), "shard_sizes");
    json_t *all = joined(self, components);
    cadre_tensor *like = NULL;
    if (!case_tensor(self, all, case_dtype_of(all), &like)) {
        return NULL;
    }
    cadre_strategy *strategy = process_servers(json_array_size(sizes));
    cadre_variable *variable = create(strategy, like);
    step(strategy);
    json_t *shards = json_incref(case_shards(self, variable));
    cadre_strategy_release(strategy);
    return shards;
}
