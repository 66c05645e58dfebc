/* SPDX-License-Identifier: Apache-2.0
 * The orderly end of a program. */
#include "cadre/program.h"

#include <unistd.h>

#include "worker/runtime/border.h"
#include "worker/runtime/checkpoint.h"
#include "worker/runtime/input.h"
#include "worker/runtime/show.h"
#include "worker/runtime/strategy.h"

/* What went wrong in the loop and was not looked at. */
static cadre_status sticky(const cadre_strategy *strategy, struct cadre_error *error)
{
    cadre_status status = strategy_check(strategy, error);
    for (uint32_t i = 0; status == CADRE_OK && i < strategy->dataset_count; i++) {
        const struct cadre_error *failed = &strategy->datasets[i]->failed;
        if (failed->code != CADRE_OK) {
            status = cadre_error_set(error, failed->code, "%s", failed->text);
        }
    }
    return status;
}

static cadre_status finish(cadre_strategy *strategy, bool *ret_void, struct cadre_error *error)
{
    *ret_void = false;
    cadre_status status = context_require_cross("cadre_finish", error);
    if (status == CADRE_OK) {
        status = sticky(strategy, error);
    }
    if (status != CADRE_OK) {
        return status;
    }
    reports_flush(strategy);
    if (strategy->roster.rank == 0 && strategy->variable_count > 0) {
        status = checkpoint_write(strategy, strategy->environment->output_folder, error);
    }
    if (status == CADRE_OK) {
        status = task_finish(strategy->task, ret_void, error);
    }
    return status;
}

int cadre_finish(cadre_strategy *strategy)
{
    struct cadre_error error = {0};
    bool is_void = false;
    cadre_status status = finish(strategy, &is_void, &error);
    if (status != CADRE_OK) {
        border(status, &error);
        reports_end(&strategy->reports);
        show_failure(&error);
    }
    if (is_void) {
        _exit(1); /* protocol rule 16: nothing of the program may run after its loop */
    }
    if (context_replica() == NULL) {
        cadre_strategy_release(strategy);
    }
    return status == CADRE_OK ? 0 : 1;
}
