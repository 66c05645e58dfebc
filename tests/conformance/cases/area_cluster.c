/* SPDX-License-Identifier: Apache-2.0
 * Cluster specs and resolvers. */
#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "cadre/cluster_resolver.h"
#include "replicas.h"
#include "worker/library/cluster/slurm.h"

static void release_spec(void *spec)
{
    cadre_cluster_spec_release(spec);
}

static void release_resolver(void *resolver)
{
    cadre_cluster_resolver_release(resolver);
}

static cadre_status make_spec(
    struct conformance_case *self, const json_t *cluster, cadre_cluster_spec **ret_spec)
{
    char *text = json_dumps(cluster, JSON_ENCODE_ANY);
    cadre_status status = cadre_cluster_spec_from_json(text, ret_spec);
    free(text);
    case_keep(self, *ret_spec, release_spec);
    return status;
}

/* --- cluster_spec --- */

static cadre_status ask(const cadre_cluster_spec *spec, const char *fn, const char *type,
    uint32_t id, json_t **ret_answer)
{
    bool is = false;
    uint32_t number = 0;
    const char *text = NULL;
    cadre_status status = CADRE_UNIMPLEMENTED;
    *ret_answer = NULL;
    if (strcmp(fn, "is_chief") == 0) {
        status = cadre_cluster_is_chief(spec, type, id, &is);
        *ret_answer = json_boolean(is);
    } else if (strcmp(fn, "worker_count") == 0) {
        status = cadre_cluster_worker_count(spec, type, &number);
        *ret_answer = json_integer(number);
    } else if (strcmp(fn, "id_in_cluster") == 0) {
        status = cadre_cluster_id_in_cluster(spec, type, id, &number);
        *ret_answer = json_integer(number);
    } else if (strcmp(fn, "collective_leader") == 0) {
        status = cadre_cluster_collective_leader(spec, type, id, &text);
        *ret_answer = json_string(text == NULL ? "" : text);
    } else if (strcmp(fn, "validate") == 0 || strcmp(fn, "validate_cluster_spec") == 0) {
        status = cadre_cluster_spec_validate(spec, type, id);
        *ret_answer = json_true();
    }
    return status;
}

/* One query against what stands for it: a value, or an error. */
static bool check_query(struct conformance_case *self, const cadre_cluster_spec *spec,
    const json_t *query, const json_t *wanted)
{
    static const char *const known[] = {"fn", "task_type", "task_id", NULL};
    const char *fn = json_string_value(json_object_get(query, "fn"));
    const char *type = json_string_value(json_object_get(query, "task_type"));
    json_int_t id = 0;
    json_t *answer = NULL;
    if (!case_knows(self, query, known) || fn == NULL ||
        !case_number(self, query, "task_id", 0, UINT32_MAX, 0, &id)) {
        return case_skip(self, "a query is not known");
    }
    cadre_status status = ask(spec, fn, type == NULL ? "" : type, (uint32_t)id, &answer);
    if (answer == NULL) {
        return case_skip(self, "the function \"%s\" is not known", fn);
    }
    case_keep(self, answer, case_release_json);
    const json_t *error = case_wanted_error(wanted);
    if (error == NULL) {
        error = case_wanted_error(self->expect);
    }
    if (error != NULL && status != CADRE_OK) {
        return case_check_error(self, error, status, true);
    }
    if (error != NULL) {
        return case_fail(self, "%s worked, and an error was expected", fn);
    }
    return case_ok(self, status, fn) && case_equal(self, fn, wanted, answer);
}

void area_cluster_spec(struct conformance_case *self)
{
    static const char *const known[] = {"cluster", "queries", "task_type", "task_id", NULL};
    const json_t *queries = json_object_get(self->given, "queries");
    const json_t *results = json_object_get(self->expect, "results");
    const json_t *error = case_wanted_error(self->expect);
    cadre_cluster_spec *spec = NULL;
    if (!case_knows(self, self->given, known)) {
        return;
    }
    cadre_status status = make_spec(self, json_object_get(self->given, "cluster"), &spec);
    if (status != CADRE_OK) {
        if (error != NULL) {
            case_check_error(self, error, status, true);
        } else {
            case_ok(self, status, "cadre_cluster_spec_from_json");
        }
        return;
    }
    if (queries == NULL) {
        json_t *validate = case_keep(self,
            json_pack("{ss, sO?, sO?}", "fn", "validate", "task_type",
                json_object_get(self->given, "task_type"), "task_id",
                json_object_get(self->given, "task_id")),
            case_release_json);
        check_query(self, spec, validate, json_true());
        return;
    }
    const json_t *each = json_object_get(self->expect, "each");
    for (size_t i = 0; i < json_array_size(queries); i++) {
        if (!check_query(self, spec, json_array_get(queries, i),
                each != NULL ? each : json_array_get(results, i))) {
            return;
        }
    }
}

/* --- resolvers --- */

static cadre_status resolve_config(
    struct conformance_case *self, const json_t *config, cadre_cluster_resolver **ret_resolver)
{
    char *text = json_is_string(config) ? strdup(json_string_value(config))
                                        : json_dumps(config, JSON_ENCODE_ANY);
    cadre_status status = cadre_cluster_resolver_tf_config(text, ret_resolver);
    free(text);
    case_keep(self, *ret_resolver, release_resolver);
    return status;
}

static cadre_status resolve_union(
    struct conformance_case *self, const json_t *specs, cadre_cluster_resolver **ret_resolver)
{
    const cadre_cluster_resolver *resolvers[64];
    size_t count = json_array_size(specs);
    for (size_t i = 0; i < count && i < 64; i++) {
        cadre_cluster_spec *spec = NULL;
        cadre_cluster_resolver *resolver = NULL;
        CADRE_TRY(make_spec(self, json_array_get(specs, i), &spec));
        CADRE_TRY(cadre_cluster_resolver_simple(spec, NULL, CADRE_TASK_NONE, &resolver));
        resolvers[i] = case_keep(self, resolver, release_resolver);
    }
    CADRE_TRY(cadre_cluster_resolver_union(resolvers, count < 64 ? count : 64, ret_resolver));
    case_keep(self, *ret_resolver, release_resolver);
    return CADRE_OK;
}

/* {"job": {"index": address}} */
static json_t *cluster_of(struct conformance_case *self, const cadre_cluster_spec *spec)
{
    json_t *cluster = case_keep(self, json_object(), case_release_json);
    for (size_t i = 0; i < cadre_cluster_spec_num_jobs(spec); i++) {
        const char *job = cadre_cluster_spec_job(spec, i);
        json_t *tasks = json_object();
        for (uint32_t at = 0; at < cadre_cluster_spec_num_tasks(spec, job); at++) {
            char key[16];
            const char *address = NULL;
            uint32_t index = cadre_cluster_spec_task_index(spec, job, at);
            snprintf(key, sizeof key, "%u", index);
            cadre_cluster_spec_task_address(spec, job, index, &address);
            json_object_set_new(tasks, key, json_string(address));
        }
        json_object_set_new(cluster, job, tasks);
    }
    return cluster;
}

static uint32_t tasks_of(const cadre_cluster_spec *spec)
{
    uint32_t tasks = 0;
    for (size_t i = 0; i < cadre_cluster_spec_num_jobs(spec); i++) {
        tasks += cadre_cluster_spec_num_tasks(spec, cadre_cluster_spec_job(spec, i));
    }
    return tasks;
}

/* Of several tasks, a master is the address of the one that is asked for, or of this one. */
static void check_masters(struct conformance_case *self, const cadre_cluster_resolver *resolver)
{
    static const char *const known[] = {"task_type", "task_id", NULL};
    const cadre_cluster_spec *spec = cadre_cluster_resolver_spec(resolver);
    const json_t *config = json_object_get(self->given, "tf_config");
    const json_t *masters = json_object_get(self->given, "masters");
    json_t *got = case_keep(self, json_array(), case_release_json);
    size_t i;
    json_t *query;
    if (tasks_of(spec) < 2 || json_object_get(config, "session_master") != NULL ||
        json_object_get(config, "rpc_layer") != NULL) {
        case_skip(self, "masters of sessions");
        return;
    }
    json_array_foreach(masters, i, query)
    {
        const char *type = json_string_value(json_object_get(query, "task_type"));
        const char *address = NULL;
        json_int_t id = 0;
        if (!case_knows(self, query, known) || !case_number(self, query, "task_id", 0, UINT32_MAX,
                                                   cadre_cluster_resolver_task_id(resolver), &id)) {
            return;
        }
        cadre_status status = cadre_cluster_spec_task_address(spec,
            type != NULL ? type : cadre_cluster_resolver_task_type(resolver), (uint32_t)id,
            &address);
        if (!case_verdict(self, status, "cadre_cluster_spec_task_address")) {
            return;
        }
        json_array_append_new(got, json_string(address));
    }
    case_equal(self, "the masters", json_object_get(self->expect, "masters"), got);
}

static void compare(struct conformance_case *self, const char *key, json_t *got)
{
    case_keep(self, got, case_release_json);
    const json_t *wanted = json_object_get(self->expect, key);
    if (wanted != NULL && !json_equal((json_t *)(uintptr_t)wanted, got)) {
        case_equal(self, key, wanted, got);
        if (self->verdict == VERDICT_PASSED) { /* objects, which lists of numbers are not */
            case_fail(self, "%s differs", key);
        }
    }
}

static json_t *text_or_null(const char *text)
{
    return text == NULL ? json_null() : json_string(text);
}

static void check_resolver(struct conformance_case *self, const cadre_cluster_resolver *resolver)
{
    const cadre_cluster_spec *spec = cadre_cluster_resolver_spec(resolver);
    uint32_t id = cadre_cluster_resolver_task_id(resolver);
    compare(self, "task_type", text_or_null(cadre_cluster_resolver_task_type(resolver)));
    compare(self, "task_id", id == CADRE_TASK_NONE ? json_null() : json_integer(id));
    compare(self, "num_workers", json_integer(cadre_cluster_spec_num_tasks(spec, "worker")));
    compare(self, "num_ps", json_integer(cadre_cluster_spec_num_tasks(spec, "ps")));
    compare(self, "cluster", json_incref(cluster_of(self, spec)));
    if (json_object_get(self->given, "masters") != NULL) {
        check_masters(self, resolver);
    }
}

static void check_hosts(struct conformance_case *self, const json_t *text)
{
    struct slurm_hosts hosts = {0};
    struct cadre_error error = {0};
    cadre_status status = slurm_hosts_expand(json_string_value(text), &hosts, &error);
    cadre_error_publish(&error);
    if (case_verdict(self, status, "the host list")) {
        json_t *list = case_keep(self, json_array(), case_release_json);
        for (size_t i = 0; i < hosts.count; i++) {
            json_array_append_new(list, json_string(hosts.names[i]));
        }
        case_equal(self, "the hosts", json_object_get(self->expect, "hosts"), list);
    }
    slurm_hosts_clear(&hosts);
}

static void check_counts(struct conformance_case *self, const json_t *text)
{
    uint32_t *counts = NULL;
    size_t count = 0;
    struct cadre_error error = {0};
    cadre_status status = slurm_counts_expand(json_string_value(text), &counts, &count, &error);
    cadre_error_publish(&error);
    if (case_verdict(self, status, "the numbers of tasks")) {
        json_t *list = case_keep(self, json_array(), case_release_json);
        for (size_t i = 0; i < count; i++) {
            json_array_append_new(list, json_integer(counts[i]));
        }
        case_equal(self, "the numbers",
            json_object_iter_value(json_object_iter((json_t *)(uintptr_t)self->expect)), list);
    }
    free(counts);
}

void area_resolver(struct conformance_case *self)
{
    static const char *const known[] = {
        "tf_config", "union_of", "hostlist", "tasks_per_node", "masters", NULL};
    const json_t *config = json_object_get(self->given, "tf_config");
    const json_t *specs = json_object_get(self->given, "union_of");
    const json_t *hosts = json_object_get(self->given, "hostlist");
    const json_t *counts = json_object_get(self->given, "tasks_per_node");
    cadre_cluster_resolver *resolver = NULL;
    if (!case_knows(self, self->given, known)) {
        return;
    }
    if (json_is_string(hosts)) {
        check_hosts(self, hosts);
        return;
    }
    if (json_is_string(counts)) {
        check_counts(self, counts);
        return;
    }
    if (config == NULL && !json_is_array(specs)) {
        case_skip(self, "no resolver that is known");
        return;
    }
    cadre_status status = config != NULL ? resolve_config(self, config, &resolver)
                                         : resolve_union(self, specs, &resolver);
    const json_t *error = case_wanted_error(self->expect);
    if (status != CADRE_OK && error != NULL) {
        case_check_error(self, error, status, true);
    } else if (case_ok(self, status, "the resolver")) {
        check_resolver(self, resolver);
        if (error != NULL && self->verdict == VERDICT_PASSED &&
            json_object_get(self->given, "masters") == NULL) {
            case_fail(self, "the resolver was made, and an error was expected");
        }
    }
}
