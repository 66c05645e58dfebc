/* SPDX-License-Identifier: Apache-2.0
 * A manual page from an option table: its sections, and texts that troff would take for requests.
 */
#include "common/base/manual.h"

#include <stdlib.h>
#include <string.h>

#include "tests/lib/test.h"

struct values {
    bool safe;
    char *path;
};

static const struct option_row rows[] = {
    {OPTION_ROW(TEXT, "path", struct values, path, "C:\\DIR", NULL), .letter = 'p',
        .environment = "TOOL_PATH", .group = "Where it's",
        .help = "It's .hidden, `.so on` and \\fBbold\\fR. 'A ~ ^ b'."},
    {OPTION_ROW(FLAG, "safe", struct values, safe, NULL, "true"), .help = ".TH is no heading."},
};

static const struct option_table table = {.program = "tool",
    .title = "does it",
    .usage = "[FILE]",
    .summary = ".ig is not\nignored.",
    .notes = "First.\n.de second\n\n  tool -p .x\n  'quoted\n",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .config = true,
    .config_environment = "TOOL_CONFIG",
    .config_default = "/etc/tool.conf"};

static char *page_of(const struct option_table *of)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_true(manual_answer(of, 2, (char *[]){"tool", "__manual", NULL}, out));
    fclose(out);
    return text;
}

static void the_sections_are_there(void **state)
{
    (void)state;
    static const char *const parts[] = {".TH TOOL 1 ", ".SH NAME\ntool \\- does it\n",
        ".SH SYNOPSIS\n\\fBtool\\fR [\\fIOPTION\\fR...] \\fI[FILE]\\fR\n",
        ".SH DESCRIPTION\n\\&.ig is not ignored.\n.PP\nFirst.\n\\&.de second\n", ".SH OPTIONS\n",
        ".TP\n\\fB\\-p\\fR, \\fB\\-\\-path\\fR \\fIC:\\eDIR\\fR\n", "\\fB\\-\\-[no\\-]safe\\fR\n",
        "\\fB\\-\\-config\\fR \\fIFILE\\fR\n", "\\fB\\-\\-version\\fR\n",
        ".SH ENVIRONMENT\n.TP\n\\fBTOOL_PATH\\fR\n", "\\fBTOOL_CONFIG\\fR\n",
        ".SH FILES\n.TP\n\\fB/etc/tool.conf\\fR\n", ".SH \"EXIT STATUS\"\n.TP\n\\fB0\\fR\n",
        ".SH EXAMPLES\n.nf\ntool \\-p .x\n\\(aqquoted\n.fi\n", ".SH SEE ALSO\n\\fBcadre\\fR(1),\n"};
    char *page = page_of(&table);
    const char *at = page;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        at = strstr(at, parts[i]);
        if (at == NULL) {
            fail_msg("\"%s\" is missing, or in another order, in\n%s", parts[i], page);
            return;
        }
    }
    free(page);
}

/* A line of the page that troff would read as a request is one that we wrote. */
static void texts_are_no_requests(void **state)
{
    (void)state;
    static const char *const requests[] = {"TH", "SH", "SS", "TP", "PP", "nf", "fi"};
    char *page = page_of(&table);
    for (const char *at = page; *at != '\0'; at = strchr(at, '\n') + 1) {
        bool known = at[0] != '.' && at[0] != '\'';
        for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
            known = known || (at[0] == '.' && strncmp(at + 1, requests[i], 2) == 0 &&
                                 (at[3] == ' ' || at[3] == '\n'));
        }
        assert_true(known);
    }
    assert_non_null(strstr(page, ".SS Where it\\(aqs\n"));
    assert_non_null(strstr(page, "\\fB.so on\\fR"));
    assert_non_null(strstr(page, "\\efBbold\\efR"));
    assert_non_null(strstr(page, "\\(ti \\(ha b\\(aq."));
    free(page);
}

static void only_that_command_line_is_answered(void **state)
{
    (void)state;
    static const struct option_table untitled = {.program = "tool", .summary = "Does."};
    assert_false(manual_answer(&untitled, 2, (char *[]){"tool", "__manual", NULL}, stdout));
    assert_false(manual_answer(&table, 1, (char *[]){"tool", NULL}, stdout));
    assert_false(manual_answer(&table, 2, (char *[]){"tool", "manual", NULL}, stdout));
    assert_false(manual_answer(&table, 3, (char *[]){"tool", "__manual", "x", NULL}, stdout));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sections_are_there),
        cmocka_unit_test(texts_are_no_requests),
        cmocka_unit_test(only_that_command_line_is_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
