/* SPDX-License-Identifier: Apache-2.0
 * The option table: sources and their order, every type, and what bad input is answered. */
#include "common/base/options.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "tests/lib/test.h"

struct values {
    bool detach;
    bool colour;
    char *user;
    uint64_t jobs;
    uint64_t lease_us;
    uint64_t cache_bytes;
    unsigned format;
    struct option_list files;
};

static const char *const formats[] = {"text", "json", NULL};
static const struct option_row rows[] = {
    {OPTION_ROW(FLAG, "detach", struct values, detach, NULL, NULL), .letter = 'd',
        .environment = "T_DETACH", .group = "Job", .help = "Return at once."},
    {OPTION_ROW(FLAG, "colour", struct values, colour, NULL, "true"), .help = "Use colours."},
    {OPTION_ROW(TEXT, "task-user", struct values, user, "NAME", "daemon"), .letter = 'u',
        .environment = "T_USER", .help = "The user that tasks run as."},
    {OPTION_ROW(U64, "jobs", struct values, jobs, "N", "2"), .letter = 'j', .environment = "T_JOBS",
        .min = 1, .max = 64, .help = "How many jobs run at once."},
    {OPTION_ROW(DURATION, "lease", struct values, lease_us, "TIME", "5s"), .min = 1000,
        .max = 3600000000, .help = "How long a silent worker is waited for."},
    {OPTION_ROW(BYTES, "cache", struct values, cache_bytes, "SIZE", "64MiB"), .group = "Input",
        .help = "Memory for input."},
    {OPTION_ROW(CHOICE, "format", struct values, format, "FORMAT", "text"), .choices = formats,
        .help = "Of the output."},
    {OPTION_ROW(LIST, "file", struct values, files, "PATH", NULL), .letter = 'f',
        .environment = "T_FILE", .help = "A file to take along."},
};
static const struct option_table table = {.program = "thing",
    .usage = "[WORD]",
    .summary = "Does a thing.",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .positionals_max = 1,
    .config = true,
    .config_environment = "T_CONFIG"};

static struct values values;
static struct option_result result;
static struct cadre_error error;
static char *words[32];

/* Parses "thing" and the arguments up to NULL, with fresh values. */
static cadre_status parse_with(const struct option_table *with, const char *const *arguments)
{
    int count = 1;
    options_free(&table, &values);
    memset(&values, 0, sizeof values);
    words[0] = (char *)"thing";
    for (; arguments[count - 1] != NULL; count++) {
        words[count] = (char *)arguments[count - 1];
    }
    return options_parse(with, count, words, &values, &result, &error);
}

#define PARSE(...)     parse_with(&table, (const char *const[]){__VA_ARGS__, NULL})
#define BAD(part, ...) assert_error(PARSE(__VA_ARGS__), CADRE_INVALID_ARGUMENT, &error, part)

static int clean(void **state)
{
    (void)state;
    options_free(&table, &values);
    static const char *const names[] = {"T_DETACH", "T_USER", "T_JOBS", "T_FILE", "T_CONFIG"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        unsetenv(names[i]);
    }
    return 0;
}

static void defaults(void **state)
{
    (void)state;
    assert_ok(parse_with(&table, (const char *const[]){NULL}), &error);
    assert_int_equal(result.first, 1);
    assert_false(values.detach);
    assert_true(values.colour);
    assert_string_equal(values.user, "daemon");
    assert_int_equal(values.jobs, 2);
    assert_int_equal(values.lease_us, 5000000);
    assert_int_equal(values.cache_bytes, 64 << 20);
    assert_int_equal(values.format, 0);
    assert_int_equal(values.files.count, 0);
}

static void every_spelling_of_a_flag(void **state)
{
    (void)state;
    assert_ok(PARSE("-dj3", "--lease=250ms", "--cache", "8KiB", "--format", "json", "--no-colour",
                  "-f", "a", "--file=b", "-fc", "--task-user="),
        &error);
    assert_true(values.detach);
    assert_false(values.colour);
    assert_string_equal(values.user, "");
    assert_int_equal(values.jobs, 3);
    assert_int_equal(values.lease_us, 250000);
    assert_int_equal(values.cache_bytes, 8192);
    assert_int_equal(values.format, 1);
    assert_int_equal(values.files.count, 3);
    assert_string_equal(values.files.items[2], "c");
    assert_ok(PARSE("--detach=no", "--jobs", "7", "--jobs", "8"), &error);
    assert_false(values.detach);
    assert_int_equal(values.jobs, 8);
}

static void order_of_the_sources(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    test_write(test_path(path, test_temp_dir(), "conf"),
        "# a comment\n\n jobs = 10 \r\ntask-user=file\nlease = 1m\nfile = x y\nfile = z\n");
    setenv("T_JOBS", "20", 1);
    setenv("T_USER", "environment", 1);
    assert_ok(PARSE("--config", path, "--jobs", "30"), &error);
    assert_int_equal(values.jobs, 30);
    assert_string_equal(values.user, "environment");
    assert_int_equal(values.lease_us, 60000000);
    assert_int_equal(values.files.count, 2);
    assert_string_equal(values.files.items[0], "x y");
    assert_int_equal(result.sources[3], OPTION_ARGV);
    assert_string_equal(result.config_path, path);
    setenv("T_CONFIG", path, 1);
    setenv("T_FILE", "e", 1);
    assert_ok(parse_with(&table, (const char *const[]){NULL}), &error);
    assert_int_equal(values.jobs, 20);
    assert_int_equal(values.files.count, 1);
    assert_string_equal(values.files.items[0], "e");
    assert_ok(PARSE("--file", "c"), &error);
    assert_string_equal(values.files.items[0], "c");
}

static void words_that_are_no_options(void **state)
{
    (void)state;
    struct option_table several = table;
    several.positionals_max = 9;
    assert_ok(parse_with(&several,
                  (const char *const[]){"a", "-d", "b", "-j", "4", "c", "--", "-d", NULL}),
        &error);
    assert_int_equal(values.jobs, 4);
    assert_int_equal(result.first, 5);
    assert_string_equal(words[4], "--");
    assert_string_equal(words[5], "a");
    assert_string_equal(words[6], "b");
    assert_string_equal(words[7], "c");
    assert_string_equal(words[8], "-d");
    several.stop_at_positional = true;
    assert_ok(parse_with(&several, (const char *const[]){"-d", "./digits", "--", "--epochs", NULL}),
        &error);
    assert_int_equal(result.first, 2);
    assert_string_equal(words[2], "./digits");
    assert_string_equal(words[3], "--");
    assert_ok(parse_with(&several, (const char *const[]){"-", NULL}), &error);
    assert_int_equal(result.first, 1);
    BAD("\"b\" is one word too many", "a", "b");
}

static void bad_command_lines(void **state)
{
    (void)state;
    BAD("unknown option --detahc; did you mean --detach?", "--detahc");
    BAD("unknown option --print-confg; did you mean --print-config?", "--print-confg");
    BAD("unknown option --zzzzzz; --help lists them", "--zzzzzz");
    BAD("unknown option -x", "-x");
    BAD("unknown option -?", "-\x01");
    BAD("unknown option --no-jobs", "--no-jobs");
    BAD("unknown option --", "--=3");
    BAD("--jobs needs a value: --jobs N", "--jobs");
    BAD("--config needs a value", "--config");
    BAD("--jobs: \"many\" is not a whole number", "--jobs", "many");
    BAD("--jobs: \"-1\" is not a whole number", "--jobs", "-1");
    BAD("--jobs: \"\" is not a whole number", "--jobs=");
    BAD("--jobs: 65 is not within 1 and 64", "--jobs", "65");
    BAD("-j: 0 is not within 1 and 64", "-j0");
    BAD("is not within 1 and 64", "--jobs", "99999999999999999999999");
    BAD("--lease: \"5\" is not a duration such as", "--lease", "5");
    BAD("--lease: \"5d\" is not a duration", "--lease", "5d");
    BAD("--lease: 2h is not within 1ms and 1h", "--lease", "2h");
    BAD("is not within 0", "--cache", "99999999999999TiB");
    BAD("--cache: \"1 MiB\" is not a size such as", "--cache", "1 MiB");
    BAD("--format: \"xml\" is not one of text, json", "--format", "xml");
    BAD("is not one of text, json; did you mean json?", "--format", "jsn");
    BAD("unknown option -detach; did you mean --detach?", "-detach");
    BAD("unknown option -jobs; did you mean --jobs?", "-jobs", "3");
    BAD("unknown option -jobs; did you mean --jobs?", "-jobs=3");
    BAD("--detach: \"maybe\" is neither true nor false", "--detach=maybe");
    static char large[5000];
    memset(large, 'x', sizeof large - 1);
    memcpy(large, "--", 2);
    BAD("unknown option --xxx", large);
    BAD("is not one of", "--format", large);
}

static void bad_environment_and_files(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    test_path(path, folder, "conf");
    assert_error(PARSE("--config", path), CADRE_NOT_FOUND, &error, "conf: No such file");
    assert_error(PARSE("--config", folder), CADRE_INVALID_ARGUMENT, &error, "but a folder");
    test_write(path, "jobs = 3\nlaese = 5s\n");
    BAD("conf:2: unknown key \"laese\"; did you mean lease?", "--config", path);
    test_write(path, "jobs\n");
    BAD("conf:1: \"jobs\" is not of the form key = value", "--config", path);
    test_write(path, "\n\njobs = 99");
    BAD("conf:3: jobs: 99 is not within 1 and 64", "--config", path);
    BAD("conf:3: jobs: 99", "--config", path, "--jobs", "5");
    setenv("T_JOBS", "x", 1);
    BAD("T_JOBS: \"x\" is not a whole number", "a");
    BAD("T_JOBS: \"x\" is not a whole number", "--jobs", "5");
}

static void a_required_option(void **state)
{
    (void)state;
    const struct option_row required[] = {
        {OPTION_ROW(TEXT, "socket", struct values, user, "PATH", NULL), .environment = "T_USER",
            .required = true, .help = "x"}};
    struct option_table strict = {.program = "t", .summary = "s", .rows = required, .row_count = 1};
    assert_error(parse_with(&strict, (const char *const[]){NULL}), CADRE_INVALID_ARGUMENT, &error,
        "--socket is missing: give --socket PATH or set T_USER");
    setenv("T_USER", "a", 1);
    assert_ok(parse_with(&strict, (const char *const[]){NULL}), &error);
    assert_error(parse_with(&strict, (const char *const[]){"--config=x", NULL}),
        CADRE_INVALID_ARGUMENT, &error, "unknown option --config");
}

/* What options_answer() prints; the caller frees it. */
static char *answer(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(options_answer(&table, &values, &result, out));
    fclose(out);
    return text;
}

static void help_is_made_from_the_table(void **state)
{
    (void)state;
    setenv("COLUMNS", "60", 1);
    assert_ok(PARSE("--help", "--nonsense"), &error);
    CADRE_FREE_AT_EXIT char *text = answer();
    assert_non_null(strstr(text, "usage: thing [OPTION...] [WORD]\n"));
    assert_non_null(strstr(text, "\nInput:\n"));
    assert_non_null(strstr(text, "  -j, --jobs N\n"));
    assert_non_null(strstr(text, "[default: 2; T_JOBS]"));
    assert_non_null(strstr(text, "[text, json; default: text]"));
    assert_non_null(strstr(text, "--[no-]colour"));
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        assert_true(strlen(line) <= 60);
    }
}

static void config_that_is_printed_can_be_read(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    assert_ok(PARSE("--print-config", "-d", "-f", "a b", "-f", "c", "--lease", "90s", "--cache",
                  "1536KiB", "-u", "two\nlines"),
        &error);
    assert_int_equal(result.request, OPTIONS_PRINT_CONFIG);
    CADRE_FREE_AT_EXIT char *text = answer();
    assert_non_null(strstr(text, "# from flag\nlease = 90s\n"));
    assert_non_null(strstr(text, "# from default\njobs = 2\n"));
    assert_non_null(strstr(text, "# task-user (flag) spans lines"));
    test_write(test_path(path, test_temp_dir(), "conf"), text);
    assert_ok(PARSE("--config", path), &error);
    assert_true(values.detach);
    assert_int_equal(values.lease_us, 90000000);
    assert_int_equal(values.cache_bytes, 1536 << 10);
    assert_int_equal(values.files.count, 2);
    assert_string_equal(values.files.items[0], "a b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(defaults, clean),
        cmocka_unit_test_teardown(every_spelling_of_a_flag, clean),
        cmocka_unit_test_teardown(order_of_the_sources, clean),
        cmocka_unit_test_teardown(words_that_are_no_options, clean),
        cmocka_unit_test_teardown(bad_command_lines, clean),
        cmocka_unit_test_teardown(bad_environment_and_files, clean),
        cmocka_unit_test_teardown(a_required_option, clean),
        cmocka_unit_test_teardown(help_is_made_from_the_table, clean),
        cmocka_unit_test_teardown(config_that_is_printed_can_be_read, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
