/* SPDX-License-Identifier: Apache-2.0
 * Local results, and what the replicas return made one structure. */
#include "areas.h"
#include "replicas.h"

/* Leaves of nested values, in order; the structure is the expected one's. */
static void flatten(const json_t *value, json_t *leaves)
{
    size_t i;
    const char *key;
    json_t *part;
    if (json_is_object(value) && json_object_get(value, "per_replica") == NULL) {
        json_object_foreach((json_t *)(uintptr_t)value, key, part)
        {
            flatten(part, leaves);
        }
    } else if (json_is_array(value)) {
        json_array_foreach(value, i, part)
        {
            flatten(part, leaves);
        }
    } else {
        json_array_append(leaves, (json_t *)(uintptr_t)value);
    }
}

/* One object that all replicas returned is not wrapped: a leaf that is plain in what is expected.
 * They return it as references of one tensor. */
static bool is_same_object(const json_t *leaf)
{
    return !json_is_object(leaf) || json_object_get(leaf, "per_replica") == NULL;
}

/* The tensors of one leaf, one a replica. */
static bool leaf_tensors(
    struct conformance_case *self, const json_t *each, size_t c, bool same, cadre_tensor *tensors[])
{
    size_t replicas = json_array_size(each);
    for (size_t r = 0; r < replicas; r++) {
        json_t *leaves = case_keep(self, json_array(), case_release_json);
        flatten(json_array_get(each, r), leaves);
        const json_t *leaf = json_array_get(leaves, c);
        cadre_dtype dtype = json_is_string(leaf) ? CADRE_STRING : CADRE_F32;
        if (leaf == NULL || !value_to_tensor(leaf, dtype, &tensors[r])) {
            return case_skip(self, "structures that differ, or leaves that are no values");
        }
        case_keep(self, tensors[r], case_release_tensor);
        tensors[r] = same ? tensors[0] : tensors[r];
    }
    return true;
}

/* Whether the value gives one tensor for all replicas, and it is `wanted`. */
static void check_same_object(struct conformance_case *self, const json_t *wanted,
    const cadre_per_replica *value, uint32_t component)
{
    cadre_tensor *const *results = cadre_local_results(value, component);
    for (uint32_t r = 1; r < cadre_per_replica_count(value); r++) {
        if (results[r] != results[0]) {
            case_fail(self, "replicas 0 and %u gave one object, and two came out", (unsigned)r);
        }
    }
    case_equal(self, "an object", wanted, case_json(self, results[0]));
}

/* Each leaf is a component; what the replicas have of it is made a value and looked at again. */
static void regroup(struct conformance_case *self, const json_t *each)
{
    size_t replicas = json_array_size(each);
    json_t *wanted = case_keep(self, json_array(), case_release_json);
    cadre_argument arguments[CADRE_ELEMENT_TENSORS_MAX];
    cadre_per_replica *joined = NULL;
    cadre_strategy *strategy = case_strategy(self, (uint32_t)replicas);
    if (strategy == NULL) {
        return;
    }
    flatten(json_object_get(self->expect, "regrouped"), wanted);
    size_t count = json_array_size(wanted);
    for (size_t c = 0; c < count; c++) {
        cadre_tensor *tensors[REPLICAS_MAX];
        if (count > CADRE_ELEMENT_TENSORS_MAX) {
            case_skip(self, "a structure of too many parts");
            return;
        }
        if (!leaf_tensors(self, each, c, is_same_object(json_array_get(wanted, c)), tensors)) {
            return;
        }
        arguments[c] = (cadre_argument){0};
        if (!case_ok(self,
                cadre_values_from_tensors(
                    strategy, tensors, (uint32_t)replicas, &arguments[c].values),
                "cadre_values_from_tensors")) {
            return;
        }
        case_keep(self, arguments[c].values, case_release_values);
    }
    if (!case_ok(self, cadre_values_join(strategy, arguments, (uint32_t)count, &joined), "join")) {
        return;
    }
    case_keep(self, joined, case_release_values);
    for (uint32_t c = 0; c < count; c++) {
        const json_t *leaf = json_array_get(wanted, c);
        if (is_same_object(leaf)) {
            check_same_object(self, leaf, joined, c);
        } else {
            case_equal(self, "a leaf", json_object_get(leaf, "per_replica"),
                case_results(self, joined, c));
        }
    }
}

void area_local_results(struct conformance_case *self)
{
    static const char *const known[] = {"value", "regroup", NULL};
    const json_t *value = json_object_get(self->given, "value");
    const json_t *each = json_object_get(self->given, "regroup");
    const json_t *plain = json_object_get(value, "plain");
    cadre_per_replica *values = NULL;
    if (!case_knows(self, self->given, known)) {
        return;
    }
    if (json_array_size(each) > 0 && json_array_size(each) <= REPLICAS_MAX) {
        regroup(self, each);
        return;
    }
    json_t *list = plain != NULL ? case_keep(self, json_pack("[O]", plain), case_release_json)
                                 : json_object_get(value, "per_replica");
    if (json_array_size(list) == 0 || json_array_size(list) > REPLICAS_MAX) {
        case_skip(self, "no values");
        return;
    }
    cadre_strategy *strategy =
        case_strategy(self, plain != NULL ? 2 : (uint32_t)json_array_size(list));
    if (strategy != NULL && case_values(self, strategy, list, case_dtype_of(list), &values)) {
        case_equal(self, "the results", json_object_get(self->expect, "tuple"),
            case_results(self, values, 0));
    }
}
