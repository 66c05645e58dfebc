/* SPDX-License-Identifier: Apache-2.0
 * Whether checkpoints can be written, before the training: by the chief where it alone writes, by
 * all tasks where one of them may go on from what another one wrote. variable_create.c calls it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/pure/assert.h"
#include "common/pure/object_path.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/replica/replica_pool.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_folder.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"

struct probing {
    char run[MANIFEST_RUN_BYTES];
    struct cadre_error own;    /* of this task; code OK: none */
    struct cadre_error theirs; /* of the task that could not; of local replica 0 */
    int64_t failures;          /* of the chief; of local replica 0 */
    int64_t blind; /* one more than the highest rank that does not find the token; or 0 */
};

/* `error` is set on a failure alone: its code is looked at. */
static cadre_status try_folder(const struct checkpointer *checkpointer, struct cadre_error *error)
{
    char host[256] = "";
    struct cadre_error own;
    cadre_status status =
        checkpointer->asked ? checkpoint_folder_check(checkpointer->folder, &own) : CADRE_OK;
    if (status == CADRE_OK) {
        return CADRE_OK;
    }
    gethostname(host, sizeof host - 1);
    *error = own;
    cadre_error_wrap(error, status, "on host '%s'", host);
    size_t length = strlen(error->text);
    snprintf(error->text + length, sizeof error->text - length, "; set %s to another one",
        checkpointer->shared ? "CADRE_CHECKPOINT_DIR (--checkpoint-folder)" : "CADRE_OUTPUT_DIR");
    return status;
}

/* The chief names the run and leaves the token. */
static void checkpoint_probe_prepare(struct checkpointer *checkpointer, struct probing *probing)
{
    cadre_status status = checkpointer_name_run(checkpointer, &probing->own);
    if (status == CADRE_OK) {
        status = try_folder(checkpointer, &probing->own);
    }
    struct cadre_error own;
    if (status == CADRE_OK && checkpointer->shared &&
        checkpoint_token_write(checkpointer->folder, checkpointer->run, &own) != CADRE_OK) {
        probing->own = own;
    }
    memcpy(probing->run, checkpointer->run, sizeof probing->run);
}

static void checkpoint_probe_look(struct checkpointer *checkpointer, struct probing *probing)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    if (try_folder(checkpointer, &probing->own) != CADRE_OK) {
        return;
    }
    struct cadre_error own;
    cadre_status status = checkpoint_token_find(checkpointer->folder, probing->run, &own);
    if (status == CADRE_NOT_FOUND) {
        bool is_object = object_path_is(checkpointer->folder);
        cadre_error_set(&probing->own, CADRE_FAILED_PRECONDITION,
            "on host '%s' the checkpoint folder '%s' is not that of the chief: %s that it wrote "
            "there is missing; %s",
            host, checkpointer->folder, is_object ? "an object" : "a file",
            is_object ? "give all tasks the same AWS_ENDPOINT_URL_S3 and credentials"
                      : "mount the same folder on all hosts");
    } else if (status != CADRE_OK) {
        probing->own = own;
        cadre_error_wrap(&probing->own, status, "on host '%s'", host);
    }
}

/* Every replica gets the name; that of local replica 0 is the task's. */
static cadre_status probe_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct probing *probing = user;
    struct checkpointer *checkpointer = strategy->state_part->checkpointer;
    bool chief = strategy->roster.rank == 0 && local == 0;
    char run[MANIFEST_RUN_BYTES] = "";
    if (local == 0) {
        probing->own = (struct cadre_error){0};
    }
    if (chief) {
        checkpoint_probe_prepare(checkpointer, probing);
        memcpy(run, probing->run, sizeof run);
    }
    int64_t failures = chief && probing->own.code != CADRE_OK ? 1 : 0;
    struct mesh_buffer flag = {.data = &failures, .bytes = sizeof failures, .dtype = MESH_I64};
    cadre_status status = collective_sum(strategy, local, &flag, 1, UINT64_MAX - 3, error);
    if (local == 0) {
        probing->failures = failures;
    }
    if (status != CADRE_OK || failures != 0) {
        return status == CADRE_OK ? collective_share_error(
                                        strategy, local, 0, &probing->own, &probing->theirs, error)
                                  : status;
    }
    struct mesh_buffer name = {.data = run, .bytes = sizeof run, .dtype = MESH_U8};
    status = strategy->mesh->ops->broadcast(strategy->mesh, local, 0, &name, 1, NULL, error);
    if (status == CADRE_OK && local == 0) {
        memcpy(probing->run, run, sizeof run);
    }
    if (status != CADRE_OK || !checkpointer->shared) {
        return status;
    }
    int64_t blind = 0;
    if (local == 0) {
        checkpoint_probe_look(checkpointer, probing);
        blind = probing->own.code != CADRE_OK ? (int64_t)strategy->roster.rank + 1 : 0;
    }
    struct mesh_buffer worst = {.data = &blind, .bytes = sizeof blind, .dtype = MESH_I64};
    status =
        strategy->mesh->ops->all_reduce(strategy->mesh, local, MESH_MAX, &worst, 1, NULL, error);
    if (local == 0) {
        probing->blind = blind;
    }
    if (status != CADRE_OK || blind == 0) {
        return status;
    }
    return collective_share_error(
        strategy, local, (uint32_t)blind - 1, &probing->own, &probing->theirs, error);
}

cadre_status checkpoint_probe(struct cadre_strategy *strategy, struct cadre_error *error)
{
    struct checkpointer *checkpointer = strategy->state_part->checkpointer;
    if (strategy_is_warm(strategy)) {
        return try_folder(checkpointer, error);
    }
    struct probing probing = {.run = ""};
    cadre_status status = strategy_between_steps(
        strategy, "cadre_variable_create for the first time", probe_on_replica, &probing, error);
    if (strategy->roster.rank == 0 && checkpointer->shared && checkpointer->run[0] != '\0') {
        checkpoint_token_remove(checkpointer->folder, checkpointer->run);
    }
    if (status != CADRE_OK) {
        return status;
    }
    if (probing.own.code != CADRE_OK) {
        *error = probing.own;
        return error->code;
    }
    if (probing.failures != 0 || probing.blind != 0) {
        *error = probing.theirs;
        return error->code;
    }
    memcpy(checkpointer->run, probing.run, sizeof checkpointer->run);
    return CADRE_OK;
}

/* --- joiners --- */

struct proving {
    uint32_t source;
    char run[MANIFEST_RUN_BYTES]; /* of the token; "": there is none */
    struct probing probing;
};

/* The token stays until all have looked for it. */
static cadre_status verify_folder_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct proving *proving = user;
    CADRE_ASSERT(proving->source < strategy->roster.member_count);
    char run[MANIFEST_RUN_BYTES] = "";
    if (local == 0 && strategy->roster.rank == proving->source) {
        memcpy(run, proving->run, sizeof run);
    }
    struct mesh_buffer name = {.data = run, .bytes = sizeof run, .dtype = MESH_U8};
    CADRE_TRY(strategy->mesh->ops->broadcast(
        strategy->mesh, local, proving->source * strategy->local_replicas, &name, 1, NULL, error));
    run[sizeof run - 1] = '\0';
    if (local == 0 && strategy->state == STATE_WARM && run[0] != '\0') {
        memcpy(proving->probing.run, run, sizeof run);
        checkpoint_probe_look(strategy->state_part->checkpointer, &proving->probing);
    }
    return strategy->mesh->ops->barrier(strategy->mesh, local, NULL, error);
}

cadre_status checkpoint_verify_folder(
    struct cadre_strategy *strategy, uint32_t source, struct cadre_error *error)
{
    struct checkpointer *checkpointer = strategy->state_part->checkpointer;
    struct proving proving = {.source = source};
    struct cadre_error ignored; /* then nothing is proved */
    bool leaves =
        strategy->roster.rank == source && checkpointer->shared && checkpointer->run[0] != '\0' &&
        checkpoint_token_write(checkpointer->folder, checkpointer->run, &ignored) == CADRE_OK;
    if (leaves) {
        memcpy(proving.run, checkpointer->run, sizeof proving.run);
    }
    cadre_status status =
        strategy_each_replica(strategy, verify_folder_on_replica, &proving, error);
    if (leaves) {
        checkpoint_token_remove(checkpointer->folder, checkpointer->run);
    }
    if (status == CADRE_OK && proving.probing.own.code != CADRE_OK) {
        *error = proving.probing.own;
        strategy->failed = *error;
        status = error->code;
    }
    return status;
}
