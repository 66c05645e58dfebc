/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/ps_job/worker_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/program.h"
#include "tests/lib/test.h"

bool worker_calls_init(void)
{
    char number[16];
    snprintf(number, sizeof number, "%d", WORKERS);
    setenv("CADRE_WORKERS", number, 1);
    snprintf(number, sizeof number, "%d", REPLICAS);
    setenv("CADRE_REPLICAS", number, 1);
    setenv("CADRE_SERVERS", "2", 1);
    unsetenv("TF_CONFIG");
    return cadre_init(NULL, NULL) == CADRE_OK;
}

cadre_strategy *chief;

cadre_status call(const char *function, const cadre_closure_argument *arguments, uint32_t count,
    cadre_tensor **ret_output)
{
    cadre_remote_value *value = NULL;
    cadre_tensor *output = NULL;
    assert_int_equal(cadre_schedule(chief, function, arguments, count, &value), CADRE_OK);
    cadre_status status = cadre_fetch(value, &output, 1, NULL);
    (void)cadre_join(chief);
    cadre_remote_value_release(value);
    if (ret_output != NULL) {
        *ret_output = output;
    } else {
        cadre_tensor_release(output);
    }
    return status;
}

float call_f32(const char *function)
{
    cadre_tensor *output = NULL;
    cadre_status status = call(function, NULL, 0, &output);
    if (status != CADRE_OK) {
        fail_msg("%s: %s", function, cadre_error_message());
    }
    float value = *(const float *)cadre_tensor_const_data(output);
    cadre_tensor_release(output);
    return value;
}

int worker_calls_begin(void **state)
{
    (void)state;
    return cadre_strategy_parameter_server(NULL, &chief) == CADRE_OK ? 0 : -1;
}

int worker_calls_end(void **state)
{
    (void)state;
    return cadre_finish(chief);
}

bool expected_text(cadre_status status, cadre_status wanted, const char *part)
{
    bool right = status == wanted && strstr(cadre_error_message(), part) != NULL;
    if (!right) {
        fprintf(stderr, "%s instead of %s, '%s' without '%s'\n", cadre_status_name(status),
            cadre_status_name(wanted), cadre_error_message(), part);
    }
    return right;
}
