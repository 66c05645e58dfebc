/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/storage/s3_standin.h"

#include <stdio.h>
#include <string.h>

#include "tests/lib/test.h"

void standin_set(struct standin *standin, const char *name, const char *value)
{
    for (size_t i = 0; i < STANDIN_ROWS; i++) {
        struct standin_variable *variable = &standin->variables[i];
        if (variable->name == NULL || strcmp(variable->name, name) == 0) {
            *variable = (struct standin_variable){.name = name, .value = value};
            return;
        }
    }
    fail_msg("no room for %s", name);
}

static const char *find(void *user, const char *name)
{
    const struct standin *standin = user;
    for (size_t i = 0; i < STANDIN_ROWS; i++) {
        const struct standin_variable *variable = &standin->variables[i];
        if (variable->name != NULL && strcmp(variable->name, name) == 0) {
            return variable->value;
        }
    }
    return NULL;
}

struct storage_variables standin_variables(struct standin *standin)
{
    return (struct storage_variables){.find = find, .user = standin};
}

static uint64_t now(void *user)
{
    const struct standin *standin = user;
    return __atomic_load_n(&standin->now_us, __ATOMIC_SEQ_CST);
}

static cadre_status fetch(void *user, const struct s3_fetch *fetch, int *ret_status,
    size_t *ret_size, struct cadre_error *error)
{
    struct standin *standin = user;
    if (standin->within != NULL) {
        standin->within(standin);
    }
    assert_true(standin->asked < STANDIN_ROWS);
    const struct standin_answer *answer = &standin->script[standin->asked++];
    if (answer->url == NULL) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "no answer from %s", fetch->url);
    }
    assert_string_equal(fetch->url, answer->url);
    assert_string_equal(fetch->method, answer->method);
    if (answer->header != NULL) {
        char header[256];
        assert_int_equal(fetch->header_count, 1);
        snprintf(header, sizeof header, "%s: %s", fetch->headers[0].name, fetch->headers[0].value);
        assert_string_equal(header, answer->header);
    } else {
        assert_int_equal(fetch->header_count, 0);
    }
    if (standin->sent != NULL) {
        assert_int_equal(fetch->sent_bytes, strlen(fetch->sent));
        assert_non_null(strstr(fetch->sent, standin->sent));
    } else {
        assert_int_equal(fetch->sent_bytes, 0);
    }
    if (answer->status != CADRE_OK) {
        return cadre_error_set(error, answer->status, "no answer");
    }
    size_t size = answer->body != NULL ? strlen(answer->body) : 0;
    if (size > fetch->room) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE, "%zu bytes are too many", size);
    }
    if (size > 0) {
        memcpy(fetch->body, answer->body, size);
    }
    *ret_status = answer->http;
    *ret_size = size;
    return CADRE_OK;
}

struct s3_provider *standin_provider(
    struct standin *standin, const struct storage_variables *variables)
{
    struct cadre_error error;
    struct s3_provider *provider = NULL;
    const struct s3_provider_options options = {.variables = variables,
        .fetch = fetch,
        .now_us = now,
        .user = standin,
        .without = standin->without};
    assert_ok(s3_provider_open(&options, &provider, &error), &error);
    return provider;
}
