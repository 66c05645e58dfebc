/* SPDX-License-Identifier: Apache-2.0
 * The description of a strategy: its devices, its tasks, and how its replicas meet. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "worker/library/device/argument.h"
#include "worker/library/device/tensor_text.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/closures/worker_strategy.h"
#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/strategy/strategy_registry.h"
#include "worker/library/runtime/strategy/strategy.h"

static const char *const kinds[] = {
    [STRATEGY_ONE_DEVICE] = "OneDeviceStrategy",
    [STRATEGY_MIRRORED] = "MirroredStrategy",
    [STRATEGY_MULTI_WORKER_MIRRORED] = "MultiWorkerMirroredStrategy",
    [STRATEGY_CENTRAL_STORAGE] = "CentralStorageStrategy",
    [STRATEGY_PARAMETER_SERVER] = "ParameterServerStrategy",
};

/* "HOST:PORT/TOKEN": tasks with the same HOST share one. */
static bool same_host(const char *one, const char *other)
{
    size_t length = strcspn(one, ":");
    return strcspn(other, ":") == length && strncmp(one, other, length) == 0;
}

static uint32_t count_hosts(const struct task_roster *roster)
{
    uint32_t hosts = 0;
    for (uint32_t i = 0; i < roster->member_count; i++) {
        uint32_t j = 0;
        while (j < i && !same_host(roster->members[j].address, roster->members[i].address)) {
            j++;
        }
        hosts += j == i ? 1 : 0;
    }
    return hosts;
}

static void write_communication(const cadre_strategy *strategy, FILE *to)
{
    const struct task_roster *roster = &strategy->roster;
    fputs("  communication: ", to);
    if (strategy->mesh_devices != NULL) {
        fputs(strategy->connected ? "NCCL between the GPUs; other tensors by " : "", to);
    }
    if (strategy_tasks(strategy) == 1) {
        fputs("the memory of this process\n", to);
    } else if (strategy->state == STATE_WARM) {
        fputs("not before this task joins the others\n", to);
    } else if (count_hosts(roster) == 1) {
        fputs("the shared memory of this host\n", to);
    } else {
        fprintf(
            to, "the shared memory of each of %u hosts, TCP between them\n", count_hosts(roster));
    }
}

static cadre_status write_strategy(const void *of, FILE *to, struct cadre_error *error)
{
    (void)error;
    const cadre_strategy *strategy = of;
    uint32_t tasks = strategy_tasks(strategy);
    uint32_t replicas = cadre_strategy_num_replicas_in_sync(strategy);
    const char *kind = strategy == strategy_registry_default() ? "the default strategy"
                       : strategy->worker != NULL              ? kinds[STRATEGY_PARAMETER_SERVER]
                                                               : kinds[strategy->kind];
    fprintf(to, "%s: %u %s in sync, ", kind, replicas, replicas == 1 ? "replica" : "replicas");
    if (strategy->worker != NULL) {
        fprintf(to, "of worker %u\n", strategy->worker->ps_job->index);
    } else if (strategy->worker_replicas > 0) {
        fputs("of each worker; this is the chief\n", to);
    } else {
        fprintf(to, "in %u %s\n", tasks, tasks == 1 ? "task" : "tasks");
    }
    if (tasks > 1) {
        fprintf(to, "  this task: %u of 0 to %u%s\n", strategy_rank_of(strategy), tasks - 1,
            cadre_strategy_is_chief(strategy) ? ", the chief"
            : strategy->state == STATE_WARM   ? ", which joins at its first step"
                                              : "");
    }
    for (uint32_t i = 0; i < strategy->devices.count; i++) {
        fprintf(to, "  replica %u: %s\n", strategy->replica_first + i, strategy->devices.names[i]);
    }
    if (strategy->ps_job != NULL) {
        uint32_t servers = directory_self(strategy->ps_job->directory)->ps_job.servers;
        fprintf(to, "  variables: on %" PRIu32 " parameter server%s\n", servers,
            servers == 1 ? "" : "s");
    }
    for (uint32_t i = 0; i < strategy->parameter.count; i++) {
        fprintf(to, "  variables: %s\n", strategy->parameter.names[i]);
    }
    write_communication(strategy, to);
    fprintf(to, "  position: %" PRIu64 " %s", strategy_position(strategy),
        strategy_position(strategy) == 1 ? "step" : "steps");
    return CADRE_OK;
}

cadre_status cadre_describe(const cadre_strategy *strategy, FILE *file)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(strategy, __func__, "strategy", &error);
    if (status == CADRE_OK) {
        status = argument_require(file, __func__, "file", &error);
    }
    if (status == CADRE_OK) {
        status = strategy_enter_readonly(strategy, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = text_print(write_strategy, strategy, file, &error);
    }
    return api_return(status, &error);
}
