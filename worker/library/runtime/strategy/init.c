/* SPDX-License-Identifier: Apache-2.0
 * A program's beginning, and a warning at an end without cadre_finish. */
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "cadre/program.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/cluster/session_cluster.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/strategy/hooks.h"
#include "worker/library/runtime/strategy/strategy_registry.h"
#include "worker/library/runtime/strategy/strategy.h"

static pid_t begun_by; /* the process that called cadre_init: a child of it has no task */

static void strategies_exit(void)
{
    uint32_t at = 0;
    cadre_strategy *strategy;
    while ((strategy = strategy_registry_next(&at)) != NULL) {
        hooks_exit(strategy);
    }
}

/* The process ends: its last message is still sent, and what parts keep is written. A program
 * without cadre_finish exits with success and saves nothing, so that is a warning. */
static void look_back(int exit_status, void *user)
{
    CADRE_ASSERT(begun_by != 0);
    (void)user;
    uint32_t at = 0;
    const cadre_strategy *strategy;
    if (getpid() != begun_by) {
        return;
    }
    session_cluster_exit();
    strategies_exit();
    if (exit_status != 0) {
        return;
    }
    while ((strategy = strategy_registry_next(&at)) != NULL) {
        if (strategy->failed.code == CADRE_OK && strategy_position(strategy) > 0) {
            struct cadre_error error;
            cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
                "the program ended after %llu steps without cadre_finish, so that nothing was "
                "saved; end main with `return cadre_finish(strategy)`",
                (unsigned long long)strategy_position(strategy));
            show_failure(&error);
        }
    }
}

cadre_status cadre_init(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    struct cadre_error error = {0};
    cadre_status status = program_begin(&error);
    if (status == CADRE_OK) {
        begun_by = getpid();
        on_exit(look_back, NULL);
    }
    return api_return(status, &error);
}

const char *cadre_version(void)
{
    return CADRE_VERSION;
}
