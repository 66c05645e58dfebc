/* SPDX-License-Identifier: Apache-2.0
 * See update_component.h. Called by apply.c and pending_update.c. */
#include "worker/library/runtime/optimizers/update_component.h"

#include "common/pure/assert.h"
#include "worker/library/optimizer/terms.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_device.h"

bool component_is_updated_by(const cadre_variable *variable, uint32_t local)
{
    return local == 0 || variable->component_count > 1;
}

cadre_status update_save_old(const struct optimized *of, uint32_t local, struct cadre_error *error)
{
    void *value = NULL;
    CADRE_TRY(variable_open_write(of->variable, local, &value, error));
    for (uint32_t i = 0; i < OPTIMIZER_SLOTS && of->slots[i] != NULL; i++) {
        CADRE_TRY(variable_open_write(of->slots[i], local, &value, error));
    }
    return variable_open_write(of->updates, local, &value, error);
}

/* --- elements --- */

/* What an update changes: values and slots, all in one memory, and the gradient. */
struct operands {
    struct device *device; /* whose memory it is; NULL: the host's */
    const struct optimizer_rule *rule;
    double rate;
    uint64_t updates;
    cadre_dtype dtype;
    char *value;
    char *slots[OPTIMIZER_SLOTS];
    uint32_t slot_count;
    double trust; /* of LAMB */
};

/* Elements that are adjacent in the variable and in the gradient. */
struct run {
    size_t first;
    size_t count;
    const void *gradient;
};

static cadre_status run_on_device(const struct operands *operands, const struct run *run,
    size_t offset, void *const slots[OPTIMIZER_SLOTS], struct cadre_error *error)
{
    _Static_assert(OPTIMIZER_SLOTS == CADRE_COUNT_OF(((struct device_update *)0)->slots), "");
    const struct update_terms terms =
        optimizer_terms(operands->rule, operands->rate, operands->updates, operands->trust);
    const struct device_update update = {.kind = optimizer_update_kind(operands->rule),
        .dtype = operands->dtype,
        .terms = &terms,
        .values = operands->value + offset,
        .slots = {slots[0], slots[1], slots[2]},
        .gradient = run->gradient,
        .count = run->count};
    return operands->device->ops->update(&update, operands->device->compute, error);
}

/* Adds to the sums of LAMB (`norms`), or updates. Fails on devices alone. */
static cadre_status do_run(const struct operands *operands, const struct run *run,
    struct optimizer_norms *norms, struct cadre_error *error)
{
    void *slots[OPTIMIZER_SLOTS] = {NULL};
    size_t offset = run->first * cadre_dtype_bytes(operands->dtype);
    for (uint32_t i = 0; i < operands->slot_count; i++) {
        slots[i] = operands->slots[i] + offset;
    }
    if (operands->device != NULL) {
        return run_on_device(operands, run, offset, slots, error);
    }
    if (norms != NULL) {
        optimizer_norms_add(operands->rule, operands->dtype, operands->updates, run->first,
            run->count, operands->value + offset, run->gradient, slots, norms);
    } else {
        optimizer_apply(operands->rule, operands->dtype, operands->rate, operands->updates,
            run->count, operands->value + offset, run->gradient, slots, operands->trust);
    }
    return CADRE_OK;
}

/* Adjacent rows are one run. */
static cadre_status do_rows(const struct operands *operands, const cadre_variable *variable,
    const struct pending_update_part *part, struct optimizer_norms *norms,
    struct cadre_error *error)
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
        CADRE_TRY(do_run(operands, &run, norms, error));
    }
    return CADRE_OK;
}

static cadre_status do_all(const struct operands *operands, const cadre_variable *variable,
    const struct pending_update_part *part, struct optimizer_norms *norms,
    struct cadre_error *error)
{
    if (part->rows != NULL) {
        return do_rows(operands, variable, part, norms, error);
    }
    const struct run run = {
        .count = (size_t)variable->count, .gradient = cadre_tensor_const_data(part->gradient)};
    return do_run(operands, &run, norms, error);
}

static cadre_status update_places(struct operands *operands, const cadre_variable *variable,
    const struct pending_update_part *part, struct cadre_error *error)
{
    operands->trust = 1;
    if (operands->rule->kind == OPTIMIZER_LAMB) {
        struct optimizer_norms norms = {0};
        CADRE_ASSERT(operands->device == NULL);
        CADRE_TRY(do_all(operands, variable, part, &norms, error));
        operands->trust = optimizer_trust(&norms);
    }
    return do_all(operands, variable, part, NULL, error);
}

/* --- memory of the components --- */

/* The components of the variable and of its slots, each open for editing. */
struct edits {
    cadre_variable *variables[1 + OPTIMIZER_SLOTS];
    struct variable_component *components[1 + OPTIMIZER_SLOTS];
    void *values[1 + OPTIMIZER_SLOTS];
    uint32_t count;
    struct device *device; /* where they are edited; NULL: the host */
};

/* LAMB's norms are sums over the whole variable in one order: the host updates it. */
static bool is_for_host(
    const cadre_optimizer *optimizer, const struct variable_component *component)
{
    return component->device == NULL || optimizer->rule.kind == OPTIMIZER_LAMB;
}

static cadre_status edits_begin(cadre_optimizer *optimizer, const struct optimized *of,
    uint32_t local, struct edits *ret_edits, struct cadre_error *error)
{
    *ret_edits = (struct edits){.variables = {of->variable}, .count = 0};
    uint32_t wanted = 1;
    while (wanted <= OPTIMIZER_SLOTS && of->slots[wanted - 1] != NULL) {
        ret_edits->variables[wanted] = of->slots[wanted - 1];
        wanted++;
    }
    for (uint32_t i = 0; i < wanted; i++) {
        struct variable_component *component = variable_component(ret_edits->variables[i], local);
        ret_edits->components[i] = component;
        if (is_for_host(optimizer, component)) {
            CADRE_TRY(component_edit_begin(
                ret_edits->variables[i], component, &ret_edits->values[i], error));
        } else {
            ret_edits->values[i] = component->value;
            ret_edits->device = component->device;
        }
        ret_edits->count++;
    }
    return CADRE_OK;
}

static cadre_status edits_end(struct edits *edits, cadre_status status, struct cadre_error *error)
{
    for (uint32_t i = 0; i < edits->count; i++) {
        edits->components[i]->writes++;
        variable_mark_written(edits->variables[i]);
        if (edits->device == NULL) {
            status = component_edit_end(
                edits->variables[i], edits->components[i], edits->values[i], status, error);
        }
    }
    return status;
}

static cadre_status update_edits(cadre_optimizer *optimizer, const struct pending_update_part *part,
    struct operands *operands, struct edits *edits, struct cadre_error *error)
{
    struct pending_update_part here = *part;
    const cadre_variable *variable = part->of->variable;
    CADRE_ASSERT(edits->count == 1 + optimizer_slots(&optimizer->rule));
    operands->device = edits->device;
    operands->value = edits->values[0];
    operands->slot_count = edits->count - 1;
    for (uint32_t i = 0; i < operands->slot_count; i++) {
        operands->slots[i] = edits->values[1 + i];
    }
    if (edits->device != NULL) {
        return update_places(operands, variable, part, error);
    }
    CADRE_TRY(tensor_on_host(part->gradient, &here.gradient, error));
    cadre_status status = update_places(operands, variable, &here, error);
    cadre_tensor_release(here.gradient);
    return status;
}

cadre_status update_component(cadre_optimizer *optimizer, const struct pending_update_part *part,
    uint32_t local, struct cadre_error *error)
{
    struct variable_component *count = variable_component(part->of->updates, local);
    struct edits edits;
    int64_t *updates = count->value;
    CADRE_ASSERT(count->device == NULL);
    CADRE_ASSERT(part->gradient != NULL);
    CADRE_ASSERT(component_is_updated_by(part->of->variable, local));
    uint64_t before = *updates < 0 ? 0 : (uint64_t)*updates;
    struct operands operands = {.rule = &optimizer->rule,
        .rate = optimizer_rate(optimizer, local, before),
        .updates = before,
        .dtype = part->of->variable->dtype};
    cadre_status status = edits_begin(optimizer, part->of, local, &edits, error);
    if (status == CADRE_OK) {
        status = update_edits(optimizer, part, &operands, &edits, error);
    }
    status = edits_end(&edits, status, error);
    count->writes++;
    *updates = (int64_t)before + 1;
    return status;
}
