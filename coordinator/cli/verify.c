/* SPDX-License-Identifier: Apache-2.0
 * `cadre verify`: proves what a job consumed, and compares whether two jobs consumed the same and
 * had the same states. */
#include "common/base/clock.h"
#include "common/view/conclusion.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/hints.h"
#include "coordinator/cli/render/comparison.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render.h"
#include "coordinator/cli/render/screen.h"

/* Beside CLI_USAGE. 3 is also that of every failed request: no coordinator answers, there is no
 * such job. */
enum verify_exit { VERIFY_AUDITED = 0, VERIFY_DIFFERS = 1, VERIFY_NOTHING = 3, VERIFY_PARTLY = 4 };

#define DRAW_EVERY_US (100 * CADRE_US_PER_MS)

/* The progress line on a terminal. */
struct bar {
    struct screen screen;
    uint64_t drawn_us;
};

static void on_progress(const cadre_verify_progress *progress, void *user)
{
    struct bar *bar = user;
    char text[PROGRESS_BAR_TEXT_BYTES];
    uint64_t now_us = clock_monotonic_us();
    if (now_us - bar->drawn_us < DRAW_EVERY_US) {
        return;
    }
    bar->drawn_us = now_us;
    const struct progress_work part = {
        .doing = progress->judging ? "judging" : "reading the ledger",
        .units = "epochs",
        .done = progress->epochs,
        .whole = progress->expected};
    unsigned columns = bar->screen.err_style.columns;
    screen_status(
        &bar->screen, progress_bar_render_work(&part, columns > 0 ? columns - 1 : 0, text));
}

/* CLI_DONE, or the exit code, which is never 1: that is for differences. */
static int verb_ask(const struct invocation *invocation, cadre_client *client, uint64_t job,
    bool unjudged, cadre_verification **ret_verification)
{
    struct bar bar = {.drawn_us = clock_monotonic_us()};
    const cadre_verify_options options = {
        .unjudged = unjudged, .on_progress = on_progress, .user = &bar};
    screen_open(&bar.screen, stdout, stderr);
    cadre_status status = cadre_client_verify(client, job, &options, ret_verification, NULL);
    screen_close(&bar.screen);
    if (status == CADRE_OK) {
        return CLI_DONE;
    }
    int failed = hint_fail_job(invocation, client, status, job);
    return failed == CLI_FAILED ? VERIFY_NOTHING : failed;
}

static bool wants_json(const struct invocation *invocation)
{
    const struct cli_common *common = invocation->values;
    return common->json;
}

static int audit_job(const struct invocation *invocation, cadre_client *client, uint64_t job)
{
    static const enum verify_exit exit_codes[] = {[CONCLUSION_AUDITED] = VERIFY_AUDITED,
        [CONCLUSION_PARTLY_AUDITED] = VERIFY_PARTLY,
        [CONCLUSION_NOTHING] = VERIFY_NOTHING,
        [CONCLUSION_DIFFERS] = VERIFY_DIFFERS};
    cadre_verification *verification = NULL;
    int failed = verb_ask(invocation, client, job, false, &verification);
    if (failed != CLI_DONE) {
        return failed;
    }
    const struct text_style text_style = terminal_style_of(stdout);
    int code = (int)exit_codes[conclusion_of(verification)];
    bool good = wants_json(invocation) ? json_print(json_of_verification(verification), stdout)
                                       : render_verification(verification, &text_style, stdout);
    cadre_result_release(verification);
    return invocation_print_status(invocation, good) == CLI_DONE ? code : VERIFY_NOTHING;
}

static int print_comparison(
    const struct invocation *invocation, const cadre_verification *a, const cadre_verification *b)
{
    static const enum verify_exit exit_codes[] = {[COMPARISON_EQUAL] = VERIFY_AUDITED,
        [COMPARISON_DIFFERS] = VERIFY_DIFFERS,
        [COMPARISON_NOTHING] = VERIFY_NOTHING};
    struct comparison comparison;
    bool good = true;
    comparison_make(a, b, &comparison);
    if (wants_json(invocation)) {
        good = json_print(json_of_comparison(&comparison), stdout);
    } else {
        const struct text_style text_style = terminal_style_of(stdout);
        render_comparison(&comparison, &text_style, stdout);
    }
    int code = (int)exit_codes[comparison.outcome];
    return invocation_print_status(invocation, good) == CLI_DONE ? code : VERIFY_NOTHING;
}

static int verb_compare(
    const struct invocation *invocation, cadre_client *client, uint64_t job, uint64_t other)
{
    cadre_verification *a = NULL;
    cadre_verification *b = NULL;
    int code = verb_ask(invocation, client, job, true, &a);
    code = code == CLI_DONE ? verb_ask(invocation, client, other, true, &b) : code;
    code = code == CLI_DONE ? print_comparison(invocation, a, b) : code;
    cadre_result_release(a);
    cadre_result_release(b);
    return code;
}

/* The jobs of the command line; `other` is 0: one only. */
static bool read_jobs(
    const struct invocation *invocation, uint64_t *ret_job, uint64_t *ret_other, int *ret_exit)
{
    *ret_other = 0;
    if (!invocation_job(invocation, 0, ret_job, ret_exit) ||
        (invocation_argument_count(invocation) > 1 &&
            !invocation_job(invocation, 1, ret_other, ret_exit))) {
        return false;
    }
    if (*ret_job == *ret_other) {
        *ret_exit = invocation_usage(invocation,
            "job %llu is itself: give the number of another job to compare it with, or its own "
            "alone",
            (unsigned long long)*ret_job);
        return false;
    }
    return true;
}

int verb_verify(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW("Print JSON instead; its keys are stable."),
    };
    static const struct option_table table = {.program = "cadre verify",
        .usage = "JOB [OTHER]",
        .summary =
            "Proves what a job consumed: that its generations own each committed step once, that "
            "each epoch consumed exactly what its dataset defines, and, where that is the whole "
            "source, that it was every sample exactly once. The digest of all samples is computed "
            "here, which takes seconds for a thousand million of them. With the number of another "
            "job of the same program: whether both consumed the same samples in the same steps and "
            "had the same states, and else the first place where not.",
        .notes =
            "  cadre verify 3\n"
            "  cadre verify 3 --json | jq '.epochs[] | select(.verdict != \"exact\")'\n"
            "  cadre verify 3 4         did the run with failures consume what the run without "
            "did?\n"
            "\n"
            "Of a job that still runs, what is committed at the time of the request is proved.\n"
            "Two jobs are compared epoch by epoch, as far as both go: by dataset, first step,\n"
            "samples and their digest. An epoch that one of them did in part only is not\n"
            "compared. The ledger sums up the samples of an epoch: when those differ, it is in\n"
            "one of its steps. States are compared bit by bit, by their digests, at the steps\n"
            "at which both jobs found those of all their replicas equal: some one a minute and\n"
            "each checkpoint. Another number of replicas rounds sums in another order: then they\n"
            "differ though both consumed the same.\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = 2};
    struct cli_common options = {0};
    struct invocation invocation;
    cadre_client *client = NULL;
    uint64_t job = 0;
    uint64_t other = 0;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code) &&
        read_jobs(&invocation, &job, &other, &code) &&
        invocation_connect(&invocation, NULL, &client, &code)) {
        code = other == 0 ? audit_job(&invocation, client, job)
                          : verb_compare(&invocation, client, job, other);
        bool printed = invocation_end(&invocation, CLI_DONE) == CLI_DONE;
        code = printed ? code : VERIFY_NOTHING; /* the answer could not be printed */
    }
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}
