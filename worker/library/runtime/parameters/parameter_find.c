/* SPDX-License-Identifier: Apache-2.0
 * Parameters by name: server 0 knows those that the chief has made. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/device/argument.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/border/name.h"
#include "worker/library/runtime/parameters/parameter_note.h"
#include "worker/library/runtime/parameters/parameters.h"

#define NAMES_BYTES 320 /* of a sentence */

static bool is_reserved(const char *name)
{
    return strncmp(name, PARAMETER_RESERVED, strlen(PARAMETER_RESERVED)) == 0;
}

static cadre_status ask(
    struct parameters *parameters, struct request *request, struct cadre_error *error)
{
    return client_call(parameters->crew->client, request, 1, crew_done_below(), error);
}

/* "'a', 'b', ...", those of programs. */
static void list_names(const char *names, size_t bytes, char text[NAMES_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t at = 0; at < bytes; at += strlen(names + at) + 1) {
        if (is_reserved(names + at)) {
            continue;
        }
        int count =
            snprintf(text + used, NAMES_BYTES - used, "%s'%s'", used == 0 ? "" : ", ", names + at);
        if (count < 0 || (size_t)count >= NAMES_BYTES - used) {
            snprintf(text + used, NAMES_BYTES - used, "%s", used + 5 < NAMES_BYTES ? ", ..." : "");
            return;
        }
        used += (size_t)count;
    }
}

static cadre_status tell_names(
    struct parameters *parameters, const char *name, struct cadre_error *error)
{
    char text[NAMES_BYTES];
    struct request request = {.kind = REQUEST_NOTED_NAMES};
    CADRE_TRY(ask(parameters, &request, error));
    /* Each has its terminator: the last one too. */
    size_t bytes = request.ret_text == NULL ? 0 : request.ret_text_bytes;
    bool whole = bytes == 0 || request.ret_text[bytes - 1] == '\0';
    list_names(request.ret_text, whole ? bytes : 0, text);
    free(request.ret_text);
    return text[0] == '\0' ? cadre_error_set(error, CADRE_NOT_FOUND,
                                 "there is no parameter '%s'; the chief has made none yet", name)
                           : cadre_error_set(error, CADRE_NOT_FOUND,
                                 "there is no parameter '%s'; those that the chief has made are %s",
                                 name, text);
}

static cadre_status find(struct parameters *parameters, const char *name,
    cadre_parameter **ret_parameter, struct cadre_error *error)
{
    CADRE_TRY(name_check("parameter", name, error));
    *ret_parameter = parameters_known(parameters, name);
    if (*ret_parameter != NULL) {
        return CADRE_OK;
    }
    struct request request = {.kind = REQUEST_NOTED, .name = name};
    cadre_status status = is_reserved(name) ? CADRE_NOT_FOUND : ask(parameters, &request, error);
    if (status == CADRE_NOT_FOUND) {
        return tell_names(parameters, name, error);
    }
    if (status == CADRE_OK) {
        status = parameter_note_decode(
            parameters, name, request.ret_text, request.ret_text_bytes, ret_parameter, error);
        free(request.ret_text);
    }
    return status == CADRE_OK ? parameters_add(parameters, ret_parameter, error) : status;
}

cadre_status cadre_parameter_find(const char *name, cadre_parameter **ret_parameter)
{
    struct cadre_error error = {0};
    struct parameters *parameters = NULL;
    cadre_parameter *parameter = NULL;
    cadre_status status = argument_require(ret_parameter, __func__, "ret_parameter", &error);
    if (status == CADRE_OK) {
        *ret_parameter = NULL;
        status = parameters_require(__func__, &parameters, &error);
    }
    if (status == CADRE_OK) {
        status = find(parameters, name, &parameter, &error);
    }
    if (status == CADRE_OK) {
        *ret_parameter = parameter;
    }
    return border(status, &error);
}
