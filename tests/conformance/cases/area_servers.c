/* SPDX-License-Identifier: Apache-2.0
 * Parameter servers: how variables are cut and placed, what closures do in the queue. */
#include <stdlib.h>
#include <string.h>

#include "areas.h"
#include "worker/library/ps/closure_queue.h"
#include "worker/library/ps/partition.h"

#define RANK_MAX     16
#define CLOSURES_MAX 64
#define CAPACITY     (256 * 1024)

static void release_json(void *value)
{
    json_decref(value);
}

static json_t *new_list(struct conformance_case *self)
{
    return case_keep(self, json_array(), release_json);
}

/* --- partitioners --- */

static bool take_shape(
    struct conformance_case *self, const json_t *shape, int64_t dims[RANK_MAX], uint32_t *ret_rank)
{
    *ret_rank = (uint32_t)json_array_size(shape);
    if (*ret_rank > RANK_MAX) {
        return case_skip(self, "a shape of %u axes", (unsigned)*ret_rank);
    }
    for (uint32_t i = 0; i < *ret_rank; i++) {
        dims[i] = json_integer_value(json_array_get(shape, i));
    }
    return true;
}

static uint64_t element_bytes(const json_t *query)
{
    const char *dtype = json_string_value(json_object_get(query, "dtype"));
    if (dtype != NULL && strcmp(dtype, "string") == 0) {
        const json_t *bytes = json_object_get(query, "bytes_per_string");
        return bytes == NULL ? 16 : (uint64_t)json_integer_value(bytes);
    }
    return dtype != NULL && strstr(dtype, "64") != NULL   ? 8
           : dtype != NULL && strstr(dtype, "16") != NULL ? 2
                                                          : 4;
}

static bool take_rule(
    struct conformance_case *self, const json_t *query, struct partition_rule *ret_rule)
{
    static const char *const known[] = {"kind", "num_shards", "max_shards", "min_shard_bytes",
        "max_shard_bytes", "bytes_per_string", "axis", "shape", "dtype", NULL};
    static const struct {
        const char *name;
        enum partition_kind kind;
        const char *bytes;
        const char *shards;
        json_int_t shards_unless_said;
    } kinds[] = {
        {"fixed", PARTITION_FIXED, "bytes", "num_shards", 0},
        {"min_size", PARTITION_MIN_SIZE, "min_shard_bytes", "max_shards", 1},
        {"max_size", PARTITION_MAX_SIZE, "max_shard_bytes", "max_shards", 0},
    };
    const char *kind = json_string_value(json_object_get(query, "kind"));
    json_int_t bytes = 0;
    json_int_t shards = 0;
    if (!case_knows(self, query, known)) {
        return false;
    }
    for (size_t i = 0; kind != NULL && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].name) == 0) {
            *ret_rule = (struct partition_rule){.kind = kinds[i].kind};
            bool good =
                case_number(self, query, kinds[i].bytes, 0, INT64_MAX, 256 * 1024, &bytes) &&
                case_number(self, query, kinds[i].shards, 0, INT64_MAX, kinds[i].shards_unless_said,
                    &shards);
            ret_rule->bytes = (uint64_t)bytes;
            ret_rule->shards = (uint64_t)shards;
            return good;
        }
    }
    return case_skip(self, "a partitioner that is none of fixed, min_size and max_size");
}

static bool cut(struct conformance_case *self, const json_t *query, json_t *results)
{
    struct partition_rule rule;
    struct cadre_error error = {0};
    int64_t dims[RANK_MAX];
    uint32_t rank;
    json_int_t axis = 0;
    if (!take_rule(self, query, &rule) ||
        !take_shape(self, json_object_get(query, "shape"), dims, &rank) ||
        !case_number(self, query, "axis", 0, rank == 0 ? 0 : (json_int_t)rank - 1, 0, &axis)) {
        return false;
    }
    cadre_status status = partition_rule_check(&rule, &error);
    if (status != CADRE_OK) {
        (void)case_check_error(self, case_wanted_error(self->expect), status, true);
        return false;
    }
    json_t *pieces = json_array();
    json_array_append_new(results, pieces);
    for (uint32_t i = 0; i < rank; i++) {
        uint64_t count =
            i == (uint32_t)axis ? partition_count(&rule, dims, rank, i, element_bytes(query)) : 1;
        json_array_append_new(pieces, json_integer((json_int_t)count));
    }
    return true;
}

void area_partitioner(struct conformance_case *self)
{
    static const char *const known[] = {"queries", NULL};
    json_t *results = new_list(self);
    size_t i;
    const json_t *query;
    if (!case_knows(self, self->given, known)) {
        return;
    }
    json_array_foreach(json_object_get(self->given, "queries"), i, query)
    {
        if (!cut(self, query, results)) {
            return;
        }
    }
    case_equal(self, "results", json_object_get(self->expect, "results"), results);
}

/* --- placement --- */

/* One variable: its shards' rows and servers. */
static bool place(struct conformance_case *self, const json_t *variable,
    const struct partition_rule *rule, uint32_t servers, uint64_t *counter, json_t *tasks,
    json_t *shards)
{
    static const char *const known[] = {"name", "shape", "value", "dtype", NULL};
    const json_t *value = json_object_get(variable, "value");
    int64_t dims[RANK_MAX];
    uint32_t rank = 0;
    if (!case_knows(self, variable, known) ||
        !take_shape(self, json_object_get(variable, "shape"), dims, &rank)) {
        return false;
    }
    uint64_t count =
        rule == NULL ? 1 : partition_count(rule, dims, rank, 0, element_bytes(variable));
    struct partition_layout layout = {.rows = rank == 0 ? 1 : (uint64_t)dims[0], .shards = count};
    for (uint64_t shard = 0; shard < count; shard++) {
        json_t *rows = json_array();
        json_array_append_new(shards, rows);
        json_array_append_new(tasks, json_integer(partition_next_server(counter, servers)));
        for (uint64_t row = 0; row < partition_rows(layout, shard); row++) {
            size_t at = (size_t)(partition_first(layout, shard) + row);
            json_array_append(rows, json_array_get(value, at));
        }
    }
    return true;
}

void area_ps_placement(struct conformance_case *self)
{
    static const char *const known[] = {"num_ps", "create", "partitioner", NULL};
    const json_t *partitioner = json_object_get(self->given, "partitioner");
    const json_t *wanted = json_object_get(self->expect, "shards");
    struct partition_rule rule;
    json_int_t servers = 0;
    uint64_t counter = 0;
    json_t *tasks = new_list(self);
    json_t *shards = new_list(self);
    size_t i;
    const json_t *variable;
    if (!case_knows(self, self->given, known) ||
        !case_number(self, self->given, "num_ps", 1, INT32_MAX, 0, &servers) ||
        (partitioner != NULL && !take_rule(self, partitioner, &rule))) {
        return;
    }
    json_array_foreach(json_object_get(self->given, "create"), i, variable)
    {
        if (!place(self, variable, partitioner != NULL ? &rule : NULL, (uint32_t)servers, &counter,
                tasks, shards)) {
            return;
        }
    }
    if (case_equal(self, "ps_task", json_object_get(self->expect, "ps_task"), tasks) &&
        wanted != NULL) {
        case_equal(self, "shards", wanted, shards);
    }
}

/* --- closures --- */

struct script {
    struct conformance_case *self;
    struct closure_queue queue;
    struct closure_list tagged[CLOSURES_MAX];
    struct closure closures[CLOSURES_MAX];
    const char *names[CLOSURES_MAX];
    const char *errors[CLOSURES_MAX];
    size_t count;
};

static struct closure *closure_of(struct script *script, const char *name)
{
    for (size_t i = 0; i < script->count; i++) {
        if (strcmp(script->names[i], name) == 0) {
            return &script->closures[i];
        }
    }
    if (script->count == CLOSURES_MAX) {
        case_skip(script->self, "more than %d closures", CLOSURES_MAX);
        return NULL;
    }
    script->names[script->count] = name;
    script->closures[script->count].tag = CLOSURE_ANY;
    return &script->closures[script->count++];
}

static void forget(struct closure *closure, void *user)
{
    struct script *script = user;
    script->errors[closure - script->closures] = "CANCELLED";
}

/* {"raises": ..} of the pending error, else `otherwise`. */
static json_t *raised(struct script *script, json_t *otherwise)
{
    bool wait = false;
    const struct closure *failed = closure_queue_settle(&script->queue, forget, script, &wait);
    if (wait) {
        case_skip(script->self, "a step that waits for others");
    }
    if (failed == NULL) {
        return otherwise;
    }
    json_decref(otherwise);
    return json_pack("{s:s}", "raises", script->errors[failed - script->closures]);
}

static json_t *answer_state(const struct script *script, const struct closure *closure)
{
    const char *error = script->errors[closure - script->closures];
    return json_string(error != NULL ? error : closure->state == CLOSURE_DONE ? "ok" : "pending");
}

static json_t *take_closure(struct script *script, uint32_t worker)
{
    const struct closure *closure = closure_queue_get(&script->queue, worker);
    return closure == NULL ? json_null() : json_string(script->names[closure - script->closures]);
}

static json_t *change(
    struct script *script, const char *verb, struct closure *closure, const json_t *entry)
{
    struct closure_queue *queue = &script->queue;
    if (strcmp(verb, "put") == 0) {
        closure_queue_put(queue, closure);
        return raised(script, json_string("ok"));
    }
    if (strcmp(verb, "put_tagged") == 0) {
        closure->tag = (uint32_t)json_integer_value(json_array_get(entry, 2));
        closure_queue_put(queue, closure);
    } else if (strcmp(verb, "put_back") == 0) {
        if (!closure_queue_put_back(queue, closure)) {
            forget(closure, script);
        }
    } else if (strcmp(verb, "finish") == 0) {
        closure_queue_done(queue, closure);
    } else if (strcmp(verb, "fail") == 0) {
        script->errors[closure - script->closures] = json_string_value(json_array_get(entry, 2));
        closure_queue_fail(queue, closure);
    } else if (strcmp(verb, "status") == 0) {
        return answer_state(script, closure);
    } else {
        case_skip(script->self, "the verb %s", verb);
    }
    return json_string("ok");
}

static json_t *perform(struct script *script, const json_t *entry)
{
    const char *verb = json_string_value(json_array_get(entry, 0));
    const char *name = json_string_value(json_array_get(entry, 1));
    if (verb == NULL) {
        case_skip(script->self, "a step without a verb");
        return NULL;
    }
    if (strcmp(verb, "get") == 0) {
        return take_closure(script, UINT32_MAX);
    }
    if (strcmp(verb, "get_tagged") == 0) {
        return take_closure(script, (uint32_t)json_integer_value(json_array_get(entry, 1)));
    }
    if (strcmp(verb, "queued") == 0) {
        return json_integer((json_int_t)script->queue.queued);
    }
    if (strcmp(verb, "wait") == 0) {
        return raised(script, json_string("ok"));
    }
    if (strcmp(verb, "done") == 0) {
        json_t *answer = raised(script, NULL);
        return answer != NULL ? answer : json_boolean(closure_queue_idle(&script->queue));
    }
    struct closure *closure = name == NULL ? NULL : closure_of(script, name);
    return closure == NULL ? NULL : change(script, verb, closure, entry);
}

void area_closure_queue(struct conformance_case *self)
{
    static const char *const known[] = {"script", NULL};
    struct script *script = case_alloc(self, 1, sizeof *script);
    json_t *results = new_list(self);
    size_t i;
    const json_t *entry;
    script->self = self;
    closure_queue_init(&script->queue, script->tagged, CLOSURES_MAX, CAPACITY);
    if (!case_knows(self, self->given, known)) {
        return;
    }
    json_array_foreach(json_object_get(self->given, "script"), i, entry)
    {
        json_t *answer = perform(script, entry);
        if (answer == NULL) {
            case_skip(self, "a step that names no closure");
            return;
        }
        json_array_append_new(results, answer);
    }
    case_equal(self, "results", json_object_get(self->expect, "results"), results);
}
