/* SPDX-License-Identifier: Apache-2.0
 * `cadre verify`: what can be proved about what a job was fed. */
#include "coordinator/cli/cli.h"
#include "coordinator/cli/conclusion.h"
#include "coordinator/cli/json.h"
#include "coordinator/cli/render.h"

/* Beside CLI_USAGE. 3 is also that of every failure, for then nothing is known: no
 * coordinator answers, there is no such job. */
enum verify_exit { VERIFY_PROVED = 0, VERIFY_DIFFERS = 1, VERIFY_NOTHING = 3, VERIFY_PARTLY = 4 };

static int exit_of(const cadre_verification *verification)
{
    static const enum verify_exit exits[] = {[CONCLUSION_PROVED] = VERIFY_PROVED,
        [CONCLUSION_PARTLY] = VERIFY_PARTLY,
        [CONCLUSION_NOTHING] = VERIFY_NOTHING,
        [CONCLUSION_DIFFERS] = VERIFY_DIFFERS};
    return (int)exits[conclusion_of(verification)];
}

static int verify(const struct invocation *invocation, cadre_client *client, uint64_t job)
{
    const struct cli_common *common = invocation->values;
    cadre_verification *verification = NULL;
    cadre_status status = cadre_client_verify(client, job, NULL, &verification, NULL);
    if (status != CADRE_OK) {
        int failed = invocation_fail(invocation, status);
        return failed == CLI_FAILED ? VERIFY_NOTHING : failed; /* 1 is for what was found */
    }
    const struct look look = terminal_look(stdout);
    int code = exit_of(verification);
    bool good = common->json ? json_print(json_of_verification(verification), stdout)
                             : render_verification(verification, &look, stdout);
    cadre_client_free(verification);
    return invocation_printed(invocation, good) == CLI_DONE ? code : VERIFY_NOTHING;
}

int verb_verify(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW("Print JSON instead; its keys are stable."),
    };
    static const struct option_table table = {.program = "cadre verify",
        .usage = "JOB",
        .summary = "Proves what a job was fed: that its generations own each committed step once, "
                   "that each epoch was fed exactly what its dataset defines, and, where that is "
                   "the whole source, that it was every sample exactly once. The digest of all "
                   "samples is computed here, which takes seconds for a thousand million of them.",
        .notes = "  cadre verify 3\n"
                 "  cadre verify 3 --json | jq '.epochs[] | select(.verdict != \"exact\")'\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = 1};
    struct cli_common options = {0};
    struct invocation invocation;
    cadre_client *client = NULL;
    uint64_t job = 0;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code) &&
        invocation_job(&invocation, 0, &job, &code) &&
        invocation_connect(&invocation, NULL, &client, &code)) {
        code = verify(&invocation, client, job);
        bool printed = invocation_end(&invocation, CLI_DONE) == CLI_DONE;
        code = printed ? code : VERIFY_NOTHING; /* whoever asked has not read what was found */
    }
    cadre_client_close(client);
    invocation_close(&invocation);
    return code;
}
