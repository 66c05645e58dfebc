/* SPDX-License-Identifier: Apache-2.0
 * What an option table offers for the word that is being typed. */
#include "common/base/completion.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"

struct values {
    bool loud;
    bool safe;
    char *output;
    char *gpus;
    unsigned level;
    struct option_list files;
};

#define ROW(kind, flag, member, value_name, default_text)                                          \
    OPTION_ROW(kind, flag, struct values, member, value_name, default_text)

static const char *const levels[] = {"low", "high", NULL};

static const struct option_row rows[] = {
    {ROW(FLAG, "loud", loud, NULL, NULL), .letter = 'l', .help = "Prints more. Much more."},
    {ROW(FLAG, "safe", safe, NULL, "true"), .help = "Checks."},
    {ROW(TEXT, "output", output, "FOLDER", NULL), .letter = 'o', .help = "Where it goes."},
    {ROW(TEXT, "gpus", gpus, "all|none|N", NULL), .help = "Which\tones."},
    {ROW(CHOICE, "level", level, "LEVEL", "low"), .choices = levels, .help = "How much."},
    {ROW(LIST, "file", files, "PATH[:NAME]", NULL), .letter = 'f', .help = "A file."},
};

static const struct option_table plain = {.program = "tool",
    .usage = "JOB [OTHER]",
    .summary = "Does.",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .positionals_max = 2,
    .config = true};

static const struct option_table runner = {.program = "runner",
    .usage = "./PROGRAM [--] [ARGUMENT...]",
    .summary = "Runs.",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .stop_at_positional = true};

static const struct option_table bare = {.program = "bare", .summary = "Is."};

#define WORDS(...)                                                                                 \
    (char *[])                                                                                     \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static void assert_offers(
    const struct option_table *table, char *const *arguments, const char *wanted)
{
    int count = 0;
    char *text = NULL;
    size_t size = 0;
    struct completion completion;
    while (arguments[count] != NULL) {
        count++;
    }
    completion_find(table, count, arguments, &completion);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    completion_print(&completion, out);
    fclose(out);
    assert_string_equal(text, wanted);
    free(text);
}

static void options_come_with_their_first_sentence(void **state)
{
    (void)state;
    assert_offers(&plain, WORDS("--l"), "--loud\tPrints more\n--level\tHow much\n:none\n");
    assert_offers(&plain, WORDS("--no"), "--no-safe\tChecks\n:none\n");
    assert_offers(&plain, WORDS("--g"), "--gpus\tWhich ones\n:none\n");
    assert_offers(&plain, WORDS("3", "--ver"), "--version\tPrint the version and exit\n:none\n");
    assert_offers(&plain, WORDS("--co"),
        "--config\tRead options from FILE: \"key = value\" lines, the keys named as the flags "
        "are\n:none\n");
    assert_offers(&runner, WORDS("--co"), ":none\n");
    assert_offers(&plain, WORDS("--unknown"), ":none\n");
    assert_offers(&bare, WORDS(""),
        "--help\tPrint this help and exit\n--version\tPrint the version and exit\n:none\n");
}

static void what_is_given_is_not_offered_again(void **state)
{
    (void)state;
    assert_offers(&plain, WORDS("--loud", "--lo"), ":none\n");
    assert_offers(&plain, WORDS("--output=x", "--ou"), ":none\n");
    assert_offers(&plain, WORDS("-o", "x", "--ou"), ":none\n");
    assert_offers(&plain, WORDS("-lox", "--ou"), ":none\n");
    assert_offers(&plain, WORDS("--file", "x", "--fi"), "--file\tA file\n:none\n");
}

static void values_are_what_their_names_say(void **state)
{
    (void)state;
    assert_offers(&plain, WORDS("--level", ""), "low\nhigh\n:none\n");
    assert_offers(&plain, WORDS("--level=h"), "--level=high\n:none\n");
    assert_offers(&plain, WORDS("--gpus", ""), "all\nnone\n:none\n");
    assert_offers(&plain, WORDS("--output", ""), ":folders\n");
    assert_offers(&plain, WORDS("--output="), ":folders\n");
    assert_offers(&plain, WORDS("-lo", ""), ":folders\n");
    assert_offers(&plain, WORDS("-f", "a"), ":files\n");
    assert_offers(&plain, WORDS("--config", ""), ":files\n");
    assert_offers(&plain, WORDS("--file", "--l"), ":files\n"); /* a value, whatever it looks like */
}

static void assert_kind(
    const struct option_table *table, char *const *arguments, const char *kind, int before)
{
    int count = 0;
    struct completion completion;
    while (arguments[count] != NULL) {
        count++;
    }
    completion_find(table, count, arguments, &completion);
    assert_int_equal(completion.at, COMPLETION_POSITIONAL);
    assert_string_equal(completion.kind, kind);
    assert_int_equal(completion.positional_count, before);
}

static void positionals_are_those_of_the_usage(void **state)
{
    (void)state;
    static const struct option_table many = {.program = "many", .usage = "ID..."};
    assert_kind(&plain, WORDS(""), "JOB", 0);
    assert_kind(&plain, WORDS("--level", "low", "3", "-l", ""), "OTHER", 1);
    assert_kind(&plain, WORDS("3", "4", ""), "", 2);
    assert_kind(&plain, WORDS("--", "-"), "JOB", 0);
    assert_kind(&many, WORDS("3", "4", "5", ""), "ID", 3);
    assert_kind(&runner, WORDS("-l", ""), "PROGRAM", 0);
    assert_offers(&runner, WORDS(""), ":files\n");
    assert_offers(&runner, WORDS("./x", "--lo"), ":files\n"); /* of the program */
    assert_offers(&runner, WORDS("./x", "--", ""), ":files\n");
}

static void names_of_kinds_are_whole(void **state)
{
    (void)state;
    const struct completion job = {.kind = "JOB[@STEP]"};
    const struct completion jobs = {.kind = "JOBS"};
    const struct completion none = {.kind = ""};
    assert_true(completion_is(&job, "JOB"));
    assert_false(completion_is(&jobs, "JOB"));
    assert_false(completion_is(&none, "JOB"));
}

/* Whatever is typed, the walk stays within what it was given. */
static void odd_command_lines(void **state)
{
    (void)state;
    char many[64][12];
    char *arguments[65] = {NULL};
    for (int i = 0; i < 64; i++) {
        snprintf(many[i], sizeof many[i], "%d", i);
        arguments[i] = many[i];
    }
    assert_kind(&plain, arguments, "", 63);
    assert_offers(&plain, WORDS("-"),
        "--loud\tPrints more\n--no-safe\tChecks\n"
        "--output\tWhere it goes\n--gpus\tWhich ones\n"
        "--level\tHow much\n--file\tA file\n"
        "--config\tRead options from FILE: \"key = value\" lines, the keys named as the flags are\n"
        "--print-config\tPrint the effective options and where each came from, and exit\n"
        "--help\tPrint this help and exit\n--version\tPrint the version and exit\n"
        ":none\n");
    assert_kind(&plain, WORDS("--=x", "-é", ""), "JOB", 0);
    char nothing[] = "__complete";
    assert_false(completion_answer(&plain, 2, WORDS("tool", nothing), stdout));
    assert_false(completion_answer(&plain, 3, WORDS("tool", nothing, "--"), stdout));
    assert_false(completion_answer(&plain, 4, WORDS("tool", "other", "--", ""), stdout));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_come_with_their_first_sentence),
        cmocka_unit_test(what_is_given_is_not_offered_again),
        cmocka_unit_test(values_are_what_their_names_say),
        cmocka_unit_test(positionals_are_those_of_the_usage),
        cmocka_unit_test(names_of_kinds_are_whole),
        cmocka_unit_test(odd_command_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
