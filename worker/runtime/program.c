/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/program.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "cadre/program.h"
#include "worker/runtime/border.h"
#include "worker/runtime/living.h"
#include "worker/runtime/restore_position.h"
#include "worker/runtime/show.h"
#include "worker/runtime/strategy.h"

/* The process is one task of one job: this is its only global state besides its strategies. */
static struct {
    bool initialised;
    pid_t pid;
    struct environment environment;
    struct session *session; /* connected and not yet taken */
} program;

const struct environment *program_environment(void)
{
    return program.initialised ? &program.environment : NULL;
}

/* A program that forgets cadre_finish succeeds, as far as anybody can see, and leaves nothing. */
static void look_back(int exit_status, void *user)
{
    (void)user;
    uint32_t at = 0;
    const cadre_strategy *strategy;
    if (exit_status != 0 || getpid() != program.pid) {
        return;
    }
    while ((strategy = living_next(&at)) != NULL) {
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
    if (program.initialised) {
        return border(cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
                          "cadre_init was called a second time; call it once, first in main"),
            &error);
    }
    cadre_status status = environment_read(&program.environment, &error);
    if (status == CADRE_OK && program.environment.attached) {
        status = session_socket_open(program.environment.socket_path, &program.session, &error);
    }
    program.initialised = status == CADRE_OK;
    if (program.initialised) {
        program.pid = getpid();
        on_exit(look_back, NULL);
    }
    return border(status, &error);
}

cadre_status program_take_session(struct session **ret_session, struct cadre_error *error)
{
    *ret_session = NULL;
    if (!program.environment.attached) {
        uint64_t restored = 0;
        const char *path = program.environment.restore_path;
        if (path[0] != '\0') {
            CADRE_TRY(restore_position(path, &restored, error));
        }
        return session_local_open(restored, ret_session, error);
    }
    if (program.session == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "this task of job %llu had its strategy already; make one strategy in a program that "
            "runs under a daemon",
            (unsigned long long)program.environment.job);
    }
    *ret_session = program.session;
    program.session = NULL;
    return CADRE_OK;
}

uint32_t cadre_rank(void)
{
    return strategy_rank();
}

uint32_t cadre_world_size(void)
{
    uint32_t at = 0;
    const cadre_strategy *strategy = living_next(&at); /* by hand each has one task */
    if (strategy != NULL) {
        return strategy_tasks(strategy);
    }
    return program.initialised ? program.environment.tasks : 1;
}

const char *cadre_version(void)
{
    return CADRE_VERSION;
}
