/* SPDX-License-Identifier: Apache-2.0
 * Several iterators of one distributed dataset: "reads" says which of them is asked for its next
 * element, in order; one that is asked first is made then. "releases" says behind which reads one
 * is given up: pairs of how many reads, and the iterator. */
#include "areas.h"
#include "replicas.h"
#include "steps.h"

enum { ITERATORS_MAX = 32 };

struct reading {
    cadre_distributed_dataset *distributed;
    cadre_distributed_dataset *iterators[ITERATORS_MAX];
    const char *structure;
    uint64_t steps;
};

/* The next element of iterator `which`; null: there is none. */
static bool read_next(
    struct conformance_case *self, struct reading *reading, json_int_t which, json_t *elements)
{
    cadre_per_replica *batch = NULL;
    if (which < 0 || which >= ITERATORS_MAX) {
        return case_skip(self, "iterator %lld", (long long)which);
    }
    cadre_distributed_dataset **iterator = &reading->iterators[which];
    if (*iterator == NULL && !case_ok(self,
                                 cadre_distributed_iterate(reading->distributed, (uint64_t)which,
                                     reading->steps, iterator),
                                 "cadre_distributed_iterate")) {
        return false;
    }
    cadre_status status = cadre_next(*iterator, &batch);
    if (status == CADRE_OUT_OF_RANGE) {
        json_array_append_new(elements, json_null());
        return true;
    }
    if (!case_ok(self, status, "cadre_next")) {
        return false;
    }
    json_array_append_new(elements, public_step(batch, reading->structure));
    return true;
}

static bool release_behind(
    struct conformance_case *self, struct reading *reading, const json_t *releases, size_t reads)
{
    size_t i;
    json_t *pair;
    json_array_foreach((json_t *)(uintptr_t)releases, i, pair)
    {
        json_int_t behind = json_integer_value(json_array_get(pair, 0));
        json_int_t which = json_integer_value(json_array_get(pair, 1));
        if (json_array_size(pair) != 2 || which < 0 || which >= ITERATORS_MAX) {
            return case_skip(self, "\"releases\" holds something else than pairs");
        }
        if (behind == (json_int_t)reads) {
            cadre_distributed_release(reading->iterators[which]);
        }
    }
    return true;
}

void area_iterators(struct conformance_case *self)
{
    static const char *const known[] = {
        "dataset", "replicas_per_worker", "steps_per_iterator", "reads", "releases", NULL};
    const json_t *reads = json_object_get(self->given, "reads");
    const json_t *releases = json_object_get(self->given, "releases");
    struct case_dataset dataset;
    struct reading reading = {0};
    json_int_t replicas = 0;
    json_int_t steps = 0;
    if (!case_knows(self, self->given, known) || !json_is_array(reads) ||
        !case_number(self, self->given, "replicas_per_worker", 1, REPLICAS_MAX, 1, &replicas) ||
        !case_number(self, self->given, "steps_per_iterator", 1, STEPS_MAX, 0, &steps) ||
        !dataset_build(self, json_object_get(self->given, "dataset"), CADRE_F32, &dataset)) {
        return;
    }
    cadre_strategy *strategy = case_strategy(self, (uint32_t)replicas);
    reading.structure = dataset.structure;
    reading.steps = (uint64_t)steps;
    if (strategy == NULL || !case_ok(self,
                                cadre_distribute_dataset(strategy,
                                    cadre_dataset_retain(dataset.data), NULL, &reading.distributed),
                                "cadre_distribute_dataset")) {
        return;
    }
    json_t *elements = case_keep(self, json_array(), case_release_json);
    for (size_t i = 0; i < json_array_size(reads); i++) {
        if (!read_next(self, &reading, json_integer_value(json_array_get(reads, i)), elements) ||
            !release_behind(self, &reading, releases, i + 1)) {
            return;
        }
    }
    case_equal(self, "what is read", json_object_get(self->expect, "elements"), elements);
}
