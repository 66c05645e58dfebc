/* SPDX-License-Identifier: Apache-2.0
 * The program's own settings of checkpoints, before it has a strategy. */
#include "cadre/checkpoint.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/strategy/strategy_registry.h"

static cadre_status checkpoint_manager_manage(
    const cadre_checkpoint_options *options, struct cadre_error *error)
{
    static const char function[] = "cadre_checkpoint_manager";
    uint32_t at = 0;
    CADRE_TRY(context_require_cross(function, error));
    CADRE_TRY(argument_require(options, function, "options", error));
    if (program_environment() == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called before cadre_init; call it between cadre_init and the strategy",
            function);
    }
    if (strategy_registry_next(&at) != NULL || program_cluster_joined()) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called after the strategy was made; call it between cadre_init and the "
            "strategy",
            function);
    }
    return program_set_checkpoints(options, error);
}

cadre_status cadre_checkpoint_manager(const cadre_checkpoint_options *options)
{
    struct cadre_error error = {0};
    return api_return(checkpoint_manager_manage(options, &error), &error);
}
