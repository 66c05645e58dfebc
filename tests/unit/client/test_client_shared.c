/* SPDX-License-Identifier: Apache-2.0
 * libcadre-client.so works by itself, and exports the public functions only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <string.h>

#include "cadre/client.h"

static void it_works_by_itself(void **state)
{
    (void)state;
    cadre_client *client = NULL;
    const cadre_client_options options = {.address = "unix:/nowhere/at/all"};
    assert_int_equal(cadre_client_connect(&options, &client), CADRE_UNAVAILABLE);
    assert_non_null(strstr(cadre_error_message(), "no coordinator answers at"));
    assert_string_equal(cadre_status_name(CADRE_UNAVAILABLE), "UNAVAILABLE");
    assert_string_equal(cadre_job_state_name(CADRE_JOB_QUEUED), "queued");
}

static void it_exports_what_is_public(void **state)
{
    (void)state;
    static const char *const inside[] = {"rpc_loop_open", "wire_pack_job_spec", "operation_new",
        "submission_open", "sha256_open", "cadre_error_set", "job_state_name"};
    assert_non_null(dlsym(RTLD_DEFAULT, "cadre_client_submit"));
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
        if (dlsym(RTLD_DEFAULT, inside[i]) != NULL) {
            fail_msg("%s is exported", inside[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_works_by_itself),
        cmocka_unit_test(it_exports_what_is_public),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
