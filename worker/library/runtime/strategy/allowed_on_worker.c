/* SPDX-License-Identifier: Apache-2.0
 * Calls that the strategy of a ps job's worker refuses: those of the job's own state, which the
 * chief has, and of the ledger's steps, of which closures are none. */
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/strategy/scope.h"
#include "worker/library/runtime/strategy/strategy.h"

#define ON_THE_CHIEF "call it with the chief's strategy, in the chief's program"
#define DATASETS                                                                                   \
    "register the function that makes it with cadre_dataset_register, have each worker make its "  \
    "own with cadre_create_per_worker_dataset, and take its batches in closures with "             \
    "cadre_closure_batch"
#define SCHEDULES "only the chief's program schedules and waits"

static const struct {
    const char *function;
    const char *instead;
} refused[] = {
    {"cadre_distribute_dataset", DATASETS},
    {"cadre_distribute_datasets_from_function", DATASETS},
    {"cadre_save", ON_THE_CHIEF},
    {"cadre_checkpoints", ON_THE_CHIEF},
    {"cadre_restore", ON_THE_CHIEF},
    {"cadre_restored", ON_THE_CHIEF},
    {"cadre_import", ON_THE_CHIEF},
    {"cadre_export", ON_THE_CHIEF},
    {"cadre_state_register", ON_THE_CHIEF},
    {"cadre_preemption_handler_set", ON_THE_CHIEF},
    {"cadre_preempt", ON_THE_CHIEF},
    {"cadre_normalization_adapt", ON_THE_CHIEF},
    {"cadre_lookup_adapt", ON_THE_CHIEF},
    {"cadre_report", "return the number as an output of the closure, and report it in the chief's "
                     "program"},
    {"cadre_summary_histogram", ON_THE_CHIEF},
    {"cadre_summary_text", ON_THE_CHIEF},
    {"cadre_finish", "return from the closure's function, and finish in the chief's program"},
    {"cadre_strategy_release", "the worker ends it"},
    {"cadre_schedule", SCHEDULES},
    {"cadre_join", SCHEDULES},
    {"cadre_done", SCHEDULES},
    {"cadre_create_per_worker_dataset", ON_THE_CHIEF},
    {"cadre_create_per_worker_resource", ON_THE_CHIEF},
};

cadre_status strategy_allowed_on_worker(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->origin == STRATEGY_OF_WORKER);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (strcmp(refused[i].function, function) == 0) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "%s was called with the strategy that a worker has for its closures, which is no "
                "part of the job's state and takes none of its steps; %s",
                function, refused[i].instead);
        }
    }
    if (scope_current() != strategy) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called with the strategy of a worker in a thread that runs nothing for it; "
            "call "
            "it in the function of a closure, dataset or resource, in the thread that runs it",
            function);
    }
    return CADRE_OK;
}
