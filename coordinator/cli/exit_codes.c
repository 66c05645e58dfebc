/* SPDX-License-Identifier: Apache-2.0
 * What each status of `cadre` means: one table, printed below every --help. */
#include "coordinator/cli/cli.h"

#define OF(exit_codes) (1U << EXIT_CODES_##exit_codes)
#define ALL            (OF(QUERY) | OF(LOCAL) | OF(NEW) | OF(RUN) | OF(SUBMIT) | OF(VERIFY))

static const struct exit_row {
    struct manual_item item;
    unsigned of;
} lines[] = {
    {{"0", "done"}, OF(QUERY) | OF(LOCAL) | OF(NEW)},
    {{"0", "the job succeeded"}, OF(RUN)},
    {{"0", "the job succeeded; with --detach: it was submitted"}, OF(SUBMIT)},
    {{"0", "proved; of two jobs: they consumed the same as far as both go"}, OF(VERIFY)},
    {{"N", "the job failed: the status of its first failed task, 128 + S when signal S ended it"},
        OF(RUN) | OF(SUBMIT)},
    {{"1", "failed: it does not exist, is not permitted, or cannot be read or written"}, OF(QUERY)},
    {{"1", "failed: a file cannot be read or written; `show`: something is wrong with it"},
        OF(LOCAL)},
    {{"1", "failed: the folder is there already, or cannot be written"}, OF(NEW)},
    {{"1", "failed: a file cannot be read, or the job failed without a status of a task"},
        OF(RUN) | OF(SUBMIT)},
    {{"1", "something differs, also of two jobs, or the generations do not tile"}, OF(VERIFY)},
    {{"2", "wrong usage"}, ALL},
    {{"3", "no coordinator answers"}, OF(QUERY) | OF(SUBMIT)},
    {{"3",
         "nothing could be proved, or compared, or the request failed: no coordinator answers, no "
         "such job"},
        OF(VERIFY)},
    {{"4", "partly proved: nothing differs, but some steps cannot be proved"}, OF(VERIFY)},
    {{"130", "Ctrl-C: the job was cancelled or left, or is not there yet"}, OF(RUN) | OF(SUBMIT)},
};

_Static_assert(sizeof lines / sizeof lines[0] <= EXIT_ITEMS_MAX, "a list takes them all");

size_t exit_codes_list(enum cli_exit_codes exit_codes, struct manual_item ret_items[EXIT_ITEMS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if ((lines[i].of & (1U << exit_codes)) != 0) {
            ret_items[count++] = lines[i].item;
        }
    }
    return count;
}

void exit_codes_print(enum cli_exit_codes exit_codes, FILE *out)
{
    struct manual_item items[EXIT_ITEMS_MAX];
    size_t count = exit_codes_list(exit_codes, items);
    fputs("Exit status:\n", out);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "  %-3s  %s\n", items[i].name, items[i].meaning);
    }
}
