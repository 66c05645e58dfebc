/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/optimizers/update_component.h"

#include "common/pure/assert.h"
#include "worker/library/device/tensor_on_device.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_device.h"

bool component_is_updated_by(const cadre_variable *variable, uint32_t local)
{
    return local == 0 || variable->component_count > 1;
}

cadre_status update_keep(const struct optimized *of, uint32_t local, struct cadre_error *error)
{
    void *value = NULL;
    CADRE_TRY(variable_open_write(of->variable, local, &value, error));
    for (uint32_t i = 0; i < OPTIMIZER_SLOTS && of->slots[i] != NULL; i++) {
        CADRE_TRY(variable_open_write(of->slots[i], local, &value, error));
    }
    return variable_open_write(of->updates, local, &value, error);
}

/* --- elements --- */

/* What an update works on: the values and slots in memory of the host, and what it is by. */
struct places {
    const struct optimizer_rule *rule;
    double rate;
    uint64_t updates;
    cadre_dtype dtype;
    char *value;
    char *slots[OPTIMIZER_SLOTS];
    uint32_t slot_count;
    double trust; /* of LAMB */
};

/* Elements that follow each other in the variable, and in the gradient. */
struct run {
    size_t first;
    size_t count;
    const void *gradient;
};

/* Either the sums that LAMB needs (`norms`), or the update. */
static void do_run(
    const struct places *places, const struct run *run, struct optimizer_norms *norms)
{
    void *slots[OPTIMIZER_SLOTS] = {NULL};
    size_t offset = run->first * cadre_dtype_bytes(places->dtype);
    for (uint32_t i = 0; i < places->slot_count; i++) {
        slots[i] = places->slots[i] + offset;
    }
    if (norms != NULL) {
        optimizer_norms_add(places->rule, places->dtype, places->updates, run->first, run->count,
            places->value + offset, run->gradient, slots, norms);
    } else {
        optimizer_apply(places->rule, places->dtype, places->rate, places->updates, run->count,
            places->value + offset, run->gradient, slots, places->trust);
    }
}

/* Rows that follow each other are one run. */
static void do_rows(const struct places *places, const cadre_variable *variable,
    const struct optimizer_part *part, struct optimizer_norms *norms)
{
    const int64_t *rows = cadre_tensor_const_data(part->rows);
    const char *gradient = cadre_tensor_const_data(part->gradient);
    int64_t count = cadre_tensor_count(part->rows);
    CADRE_ASSERT(variable->rank > 0);
    size_t elements =
        variable->dims[0] == 0 ? 0 : (size_t)variable->count / (size_t)variable->dims[0];
    for (int64_t i = 0, next = 0; i < count; i = next) {
        next = i + 1;
        while (next < count && rows[next] == rows[next - 1] + 1) {
            next++;
        }
        CADRE_ASSERT(rows[i] >= 0);
        CADRE_ASSERT(rows[next - 1] < variable->dims[0]);
        const struct run run = {.first = (size_t)rows[i] * elements,
            .count = (size_t)(next - i) * elements,
            .gradient = gradient + (size_t)i * elements * cadre_dtype_bytes(variable->dtype)};
        do_run(places, &run, norms);
    }
}

static void do_all(const struct places *places, const cadre_variable *variable,
    const struct optimizer_part *part, struct optimizer_norms *norms)
{
    if (part->rows != NULL) {
        do_rows(places, variable, part, norms);
    } else {
        const struct run run = {
            .count = (size_t)variable->count, .gradient = cadre_tensor_const_data(part->gradient)};
        do_run(places, &run, norms);
    }
}

static void update_places(
    struct places *places, const cadre_variable *variable, const struct optimizer_part *part)
{
    places->trust = 1;
    if (places->rule->kind == OPTIMIZER_LAMB) {
        struct optimizer_norms norms = {0};
        do_all(places, variable, part, &norms);
        places->trust = optimizer_trust(&norms);
    }
    do_all(places, variable, part, NULL);
}

/* --- where they are --- */

/* The component of `variable`, and of each slot, opened to be edited in memory of the host. */
struct edits {
    cadre_variable *variables[1 + OPTIMIZER_SLOTS];
    struct variable_component *components[1 + OPTIMIZER_SLOTS];
    void *values[1 + OPTIMIZER_SLOTS];
    uint32_t count;
};

static cadre_status edits_begin(
    const struct optimized *of, uint32_t local, struct edits *ret_edits, struct cadre_error *error)
{
    *ret_edits = (struct edits){.variables = {of->variable}, .count = 0};
    uint32_t wanted = 1;
    while (wanted <= OPTIMIZER_SLOTS && of->slots[wanted - 1] != NULL) {
        ret_edits->variables[wanted] = of->slots[wanted - 1];
        wanted++;
    }
    for (uint32_t i = 0; i < wanted; i++) {
        ret_edits->components[i] = variable_component(ret_edits->variables[i], local);
        CADRE_TRY(component_edit_begin(
            ret_edits->variables[i], ret_edits->components[i], &ret_edits->values[i], error));
        ret_edits->count++;
    }
    return CADRE_OK;
}

static cadre_status edits_end(struct edits *edits, cadre_status status, struct cadre_error *error)
{
    for (uint32_t i = 0; i < edits->count; i++) {
        edits->components[i]->writes++;
        variable_wrote(edits->variables[i]);
        status = component_edit_end(
            edits->variables[i], edits->components[i], edits->values[i], status, error);
    }
    return status;
}

static cadre_status update_edits(cadre_optimizer *optimizer, const struct optimizer_part *part,
    double rate, uint64_t updates, uint32_t local, struct cadre_error *error)
{
    struct edits edits;
    struct optimizer_part here = *part;
    cadre_status status = tensor_on_host(part->gradient, &here.gradient, error);
    CADRE_TRY(status);
    status = edits_begin(part->of, local, &edits, error);
    if (status == CADRE_OK) {
        struct places places = {.rule = &optimizer->rule,
            .rate = rate,
            .updates = updates,
            .dtype = part->of->variable->dtype,
            .value = edits.values[0],
            .slot_count = edits.count - 1};
        for (uint32_t i = 0; i < places.slot_count; i++) {
            places.slots[i] = edits.values[1 + i];
        }
        update_places(&places, part->of->variable, &here);
    }
    status = edits_end(&edits, status, error);
    cadre_tensor_release(here.gradient);
    return status;
}

cadre_status update_component(cadre_optimizer *optimizer, const struct optimizer_part *part,
    uint32_t local, struct cadre_error *error)
{
    struct variable_component *count = variable_component(part->of->updates, local);
    int64_t *updates = count->value;
    CADRE_ASSERT(count->device == NULL);
    CADRE_ASSERT(part->gradient != NULL);
    CADRE_ASSERT(component_is_updated_by(part->of->variable, local));
    uint64_t before = *updates < 0 ? 0 : (uint64_t)*updates;
    double rate = optimizer_rate(optimizer, local, before);
    CADRE_TRY(update_edits(optimizer, part, rate, before, local, error));
    count->writes++;
    *updates = (int64_t)before + 1;
    return CADRE_OK;
}
