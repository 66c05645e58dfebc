/* SPDX-License-Identifier: Apache-2.0
 * `cadre workers`: all of them, or one with its GPUs. */
#include "common/base/clock.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/hints.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render.h"

static bool print_workers(const cadre_worker_list *list, bool one, bool json)
{
    const struct text_style text_style = terminal_style_of(stdout);
    if (json) {
        return json_print(json_of_workers(list), stdout);
    }
    return one && list->count == 1
               ? render_worker(&list->workers[0], clock_wall_us(), &text_style, stdout)
               : render_workers(list, clock_wall_us(), &text_style, stdout);
}

static int cli_workers_workers(const struct invocation *invocation, cadre_client *client)
{
    const struct cli_common *common = invocation->values;
    bool one = invocation_argument_count(invocation) > 0;
    cadre_worker_list *list = NULL;
    const char *worker = one ? invocation_argument(invocation, 0) : NULL;
    cadre_status status = cadre_client_workers(client, worker, &list, NULL);
    if (status != CADRE_OK) {
        return one ? hint_fail_worker(invocation, client, status, worker)
                   : invocation_fail(invocation, status);
    }
    bool good = print_workers(list, one, common->json);
    cadre_result_release(list);
    return invocation_print_status(invocation, good);
}

int verb_workers(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW("Print JSON instead; its keys are stable."),
    };
    static const struct option_table table = {.program = "cadre workers",
        .usage = "[WORKER]",
        .summary = "Lists the workers of the coordinator; with WORKER, shows one of them, "
                   "with each GPU of its host, the slot that has it, or why no task gets it.",
        .notes = "GPUS are those that tasks get. The slots of a worker share them out: with one "
                 "slot a task\nhas all of them, with as many slots as GPUs each task has one "
                 "(cadre-worker --slots, --gpus).\nA percent behind them is how much of the time "
                 "they ran kernels, while a task has one: their mean.\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = 1};
    struct cli_common options = {0};
    struct invocation invocation;
    cadre_client *client = NULL;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code) &&
        invocation_connect(&invocation, NULL, &client, &code)) {
        code = invocation_end(&invocation, cli_workers_workers(&invocation, client));
    }
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}
