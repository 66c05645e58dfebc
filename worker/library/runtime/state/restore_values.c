/* SPDX-License-Identifier: Apache-2.0
 * cadre_restore: values of a file into a job from the beginning, and the report of how they fit.
 * The program calls it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/restore.h"
#include "common/base/cleanup.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/state/create/variable_create.h"
#include "worker/library/runtime/state/layout/registered.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/state/layout/streamed.h"
#include "worker/library/runtime/state/restore/initial_value.h"
#include "worker/library/runtime/state/restore/restoration.h"
#include "worker/library/runtime/strategy/strategy.h"

/* --- how they fit --- */

#define NAMES_SHOWN 3

/* Whether the program has a variable or state of that name. */
static bool is_taken(const cadre_strategy *strategy, const char *name)
{
    return variable_lookup(strategy, name) != NULL || registered_has_name(strategy, name) ||
           streamed_has_name(strategy, name);
}

/* The lists: pointers, then the names that they point to. */
struct report {
    const char **pointers; /* NULL: they are only counted */
    char *text;
    size_t bytes;
    uint32_t missing;
    uint32_t unused;
    uint32_t restored;
};

static void restore_values_note(struct report *report, const char *name, uint32_t index)
{
    size_t size = strlen(name) + 1;
    if (report->pointers != NULL) {
        memcpy(report->text + report->bytes, name, size);
        report->pointers[index] = report->text + report->bytes;
    }
    report->bytes += size;
}

static void go_over_streamed(const cadre_strategy *strategy, struct report *report)
{
    struct streamed *streamed = strategy->state_part->streamed;
    for (uint32_t i = 0; i < streamed_count(strategy); i++) {
        struct safetensors_entry entry;
        if (streamed->ops->is_part(streamed, i)) {
            continue; /* it comes with its variable, or begins again */
        }
        streamed->ops->describe(streamed, i, &entry);
        if (restoration_find(strategy->state_part->restoration, entry.name) != NULL) {
            report->restored++;
        } else {
            restore_values_note(report, entry.name, report->missing++);
        }
    }
}

/* Missing ones, then unused ones. */
static void go_over(const cadre_strategy *strategy, struct report *report)
{
    const struct restoration *restoration = strategy->state_part->restoration;
    struct state_tensor tensor;
    report->bytes = 0;
    report->missing = 0;
    report->unused = 0;
    report->restored = 0;
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        if (restoration_find(restoration, tensor.name) != NULL) {
            report->restored++;
        } else {
            restore_values_note(report, tensor.name, report->missing++);
        }
    }
    go_over_streamed(strategy, report);
    for (size_t i = 0; i < restoration->count; i++) {
        if (!is_taken(strategy, restoration->tensors[i].name)) {
            restore_values_note(
                report, restoration->tensors[i].name, report->missing + report->unused++);
        }
    }
}

static cadre_status make_report(
    cadre_strategy *strategy, cadre_restore_result *ret_result, struct cadre_error *error)
{
    struct restoration *restoration = strategy->state_part->restoration;
    struct report report = {0};
    *ret_result = (cadre_restore_result){.passed_over = strategy->state_part->passed_over};
    if (restoration == NULL) {
        return CADRE_OK;
    }
    go_over(strategy, &report);
    size_t pointers = (report.missing + report.unused + 1) * sizeof *report.pointers;
    char *memory = malloc(pointers + report.bytes);
    if (memory == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the list of missing values");
    }
    report.pointers = (const char **)(void *)memory;
    report.text = memory + pointers;
    go_over(strategy, &report);
    free(restoration->report);
    restoration->report = memory;
    *ret_result = (cadre_restore_result){.path = restoration->path,
        .restored = report.restored,
        .missing_count = report.missing,
        .missing = report.pointers,
        .unused_count = report.unused,
        .unused = report.pointers + report.missing};
    return CADRE_OK;
}

/* "'a', 'b', 'c' and 4 more". */
static const char *list_text(
    const char *const *names, uint32_t count, char text[4 * LIMIT_NAME_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < count && i < NAMES_SHOWN; i++) {
        used += (size_t)snprintf(
            text + used, 4 * LIMIT_NAME_BYTES - used, "%s'%.80s'", i == 0 ? "" : ", ", names[i]);
    }
    if (count > NAMES_SHOWN) {
        snprintf(text + used, 4 * LIMIT_NAME_BYTES - used, " and %u more", count - NAMES_SHOWN);
    }
    return text;
}

static cadre_status check_match(
    const cadre_restore_result *result, cadre_restore_match match, struct cadre_error *error)
{
    char names[4 * LIMIT_NAME_BYTES];
    if (match >= CADRE_RESTORED_SOME && result->restored == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "nothing of the program took a value from %s; the names of variables are to be those "
            "of the file, the first of which is '%s'",
            result->path, result->unused_count == 0 ? "" : result->unused[0]);
    }
    if (match >= CADRE_RESTORED_EXISTING && result->missing_count > 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s holds no value of %s; where that is intended, use CADRE_RESTORED_PARTIAL",
            result->path, list_text(result->missing, result->missing_count, names));
    }
    if (match >= CADRE_RESTORED_CONSUMED && result->unused_count > 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "nothing of the program took %s from %s; where that is intended, use "
            "CADRE_RESTORED_EXISTING",
            list_text(result->unused, result->unused_count, names), result->path);
    }
    return CADRE_OK;
}

/* --- giving values --- */

/* All values fit, or nothing is changed. */
static cadre_status check_all(
    cadre_strategy *strategy, const struct restoration *restoration, struct cadre_error *error)
{
    struct streamed *streamed = strategy->state_part->streamed;
    struct state_tensor tensor;
    for (uint32_t i = 0; state_tensor_at(strategy, i, &tensor); i++) {
        CADRE_TRY(restoration_fits(restoration, &tensor, error));
    }
    for (uint32_t i = 0; i < streamed_count(strategy); i++) {
        struct safetensors_entry entry;
        streamed->ops->describe(streamed, i, &entry);
        if (streamed->ops->is_part(streamed, i) && entry.dtype == CADRE_I64) {
            continue; /* a count of each shard, of which there may be another number */
        }
        tensor =
            (struct state_tensor){.dtype = entry.dtype, .rank = entry.rank, .bytes = entry.bytes};
        memcpy(tensor.name, entry.name, sizeof tensor.name);
        memcpy(tensor.dims, entry.dims, sizeof tensor.dims);
        CADRE_TRY(restoration_fits(restoration, &tensor, error));
    }
    return CADRE_OK;
}

static cadre_status give_streamed(const cadre_strategy *strategy, struct cadre_error *error)
{
    struct streamed *streamed = strategy->state_part->streamed;
    for (uint32_t i = 0; i < streamed_count(strategy); i++) {
        struct safetensors_entry entry;
        streamed->ops->describe(streamed, i, &entry);
        if (!streamed->ops->is_part(streamed, i) &&
            restoration_find(strategy->state_part->restoration, entry.name) != NULL) {
            CADRE_TRY(streamed->ops->take(streamed, strategy, i, error));
        }
    }
    return CADRE_OK;
}

static cadre_status give_all(cadre_strategy *strategy, struct cadre_error *error)
{
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        CADRE_TRY(variable_take_restored(strategy->variables->list[i], error));
    }
    CADRE_TRY(give_streamed(strategy, error));
    for (uint32_t i = 0; i < strategy->state_part->registered_count; i++) {
        CADRE_TRY(registered_take_restored(strategy, i, error));
    }
    return CADRE_OK;
}

static cadre_status restore_values_restore(
    cadre_strategy *strategy, const char *path, struct cadre_error *error)
{
    struct state_part *part = strategy->state_part;
    struct restoration *restoration;
    part->passed_over = strategy_is_warm(strategy) || strategy_is_catching_up(strategy);
    if (part->passed_over) {
        return CADRE_OK;
    }
    if (strategy_position(strategy) > 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_restore('%.200s') was called after the first step; call it before, or assign "
            "the values (cadre/assign.h)",
            path);
    }
    CADRE_TRY(restoration_open(strategy, "cadre_restore", path, &restoration, error));
    cadre_status status = check_all(strategy, restoration, error);
    if (status != CADRE_OK) {
        restoration_close(restoration);
        return status;
    }
    restoration_close(part->restoration);
    part->restoration = restoration;
    status = give_all(strategy, error);
    if (status != CADRE_OK && strategy->failed.code == CADRE_OK) {
        return strategy_fail(strategy, error); /* some have their values, and some not */
    }
    return status;
}

/* --- public --- */

cadre_status cadre_restore(
    cadre_strategy *strategy, const char *path, cadre_restore_result *ret_result)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_restore_result unasked;
    cadre_restore_result *result = ret_result == NULL ? &unasked : ret_result;
    *result = (cadre_restore_result){0};
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        status = argument_require(path, __func__, "path", &error);
    }
    if (status == CADRE_OK) {
        status = variable_require_kept(strategy, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = restore_values_restore(strategy, path, &error);
    }
    if (status == CADRE_OK) {
        status = make_report(strategy, result, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_restored(
    cadre_strategy *strategy, cadre_restore_match match, cadre_restore_result *ret_result)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_restore_result unasked;
    cadre_restore_result *result = ret_result == NULL ? &unasked : ret_result;
    *result = (cadre_restore_result){0};
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK && strategy->state_part->restoration == NULL &&
        !strategy->state_part->passed_over) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_restored was called, and nothing was restored; call cadre_restore before");
    }
    if (status == CADRE_OK && (match < CADRE_RESTORED_PARTIAL || match > CADRE_RESTORED_CONSUMED)) {
        status = cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "cadre_restored: %d is no match; use one of enum cadre_restore_match", (int)match);
    }
    if (status == CADRE_OK) {
        status = make_report(strategy, result, &error);
    }
    if (status == CADRE_OK && !result->passed_over) {
        status = check_match(result, match, &error);
    }
    return api_return(status, &error);
}
