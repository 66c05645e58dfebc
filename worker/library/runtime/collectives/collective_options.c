/* SPDX-License-Identifier: Apache-2.0
 * Options of collectives, and the names that texts give them. */
#include "worker/library/runtime/collectives/collective.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collectives.h"
#include "worker/library/runtime/strategy/strategy.h"

#define TIMEOUT_MAX_S 1e9 /* more is as good as for ever */

static cadre_status collective_options_check(
    const cadre_collective_options *options, struct cadre_error *error)
{
    if (isnan(options->timeout_seconds) || options->timeout_seconds < 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a timeout of %g seconds was set; give a number above 0, or 0 for none",
            options->timeout_seconds);
    }
    if ((int)options->implementation < CADRE_COMMUNICATION_AUTO ||
        options->implementation > CADRE_COMMUNICATION_NCCL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is not an implementation of collectives; use CADRE_COMMUNICATION_AUTO, _RING or "
            "_NCCL",
            (int)options->implementation);
    }
    return CADRE_OK;
}

static uint64_t collective_options_microseconds(double seconds)
{
    CADRE_ASSERT(seconds >= 0);
    double most = seconds < TIMEOUT_MAX_S ? seconds : TIMEOUT_MAX_S;
    return (uint64_t)ceil(most * (double)CADRE_US_PER_S);
}

uint64_t collective_options_timeout_us(const cadre_strategy *strategy)
{
    return collective_options_microseconds(strategy->collectives->communication.timeout_seconds);
}

/* The choice of an implementation has no effect here: tensors in host memory always take the ring.
 */
cadre_status collective_options_settle(const cadre_strategy *strategy,
    const cadre_collective_options *options, struct collective_settings *ret_settings,
    struct cadre_error *error)
{
    cadre_collective_options merged = strategy->collectives->communication;
    if (options != NULL) {
        CADRE_TRY(collective_options_check(options, error));
        merged.bytes_per_pack =
            options->bytes_per_pack != 0 ? options->bytes_per_pack : merged.bytes_per_pack;
        merged.timeout_seconds =
            options->timeout_seconds > 0 ? options->timeout_seconds : merged.timeout_seconds;
    }
    *ret_settings = (struct collective_settings){.bytes_per_pack = merged.bytes_per_pack,
        .timeout_us = collective_options_microseconds(merged.timeout_seconds)};
    return CADRE_OK;
}

/* --- public --- */

cadre_status cadre_strategy_set_communication(
    cadre_strategy *strategy, const cadre_collective_options *options)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    const cadre_collective_options none = {0};
    options = options == NULL ? &none : options;
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        status = collective_options_check(options, &error);
    }
    if (status == CADRE_OK) {
        strategy->collectives->communication = *options;
    }
    return api_return(status, &error);
}

/* The index of `text` among `names`, in any case. */
static cadre_status collective_options_parse(const char *text, const char *const names[], int count,
    const char *what, int *ret_index, struct cadre_error *error)
{
    for (int i = 0; i < count; i++) {
        if (strcasecmp(text, names[i]) == 0) {
            *ret_index = i;
            return CADRE_OK;
        }
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "'%.64s' is not a %s; use %s or %s", text,
        what, names[0], names[1]);
}

cadre_status cadre_reduce_op_parse(const char *text, cadre_reduce_op *ret_op)
{
    static const char *const names[] = {"SUM", "MEAN", "MIN", "MAX", "PROD"};
    struct cadre_error error = {0};
    int index = 0;
    cadre_status status = argument_require(text, __func__, "text", &error);
    if (status == CADRE_OK) {
        status = argument_require(ret_op, __func__, "ret_op", &error);
    }
    if (status == CADRE_OK) {
        status = collective_options_parse(text, names, 5, "reduction", &index, &error);
    }
    if (status == CADRE_OK) {
        *ret_op = (cadre_reduce_op)index;
    }
    return api_return(status, &error);
}
