/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cli/command.h"

#include <stdio.h>
#include <string.h>

char command_nowhere[256];

void command_run(const char *const *words, struct program_result *ret_result)
{
    const char *argv[16] = {CADRE_COMMAND};
    size_t count = 1;
    for (; words[count - 1] != NULL; count++) {
        argv[count] = words[count - 1];
    }
    const char *const environment[] = {command_nowhere, "COLUMNS=80", NULL};
    const struct program_spec spec = {.argv = argv, .environment = environment};
    program_run(&spec, ret_result);
    assert_false(ret_result->timed_out);
}

void assert_run(const char *const *words, int exit_code, const char *in_out, const char *in_err)
{
    struct program_result result;
    command_run(words, &result);
    if (result.exit_code != exit_code || strstr(result.out, in_out) == NULL ||
        strstr(result.err, in_err) == NULL) {
        fail_msg("cadre %s ...: exit code %d, not %d; or \"%s\" is not in the output:\n%s\nor "
                 "\"%s\" not in the errors:\n%s",
            words[0] != NULL ? words[0] : "", result.exit_code, exit_code, in_out, result.out,
            in_err, result.err);
    }
    program_result_free(&result);
}

int command_set_up(void **state)
{
    (void)state;
    snprintf(
        command_nowhere, sizeof command_nowhere, "CADRE_COORDINATOR=unix:%s/none", test_temp_dir());
    return 0;
}
