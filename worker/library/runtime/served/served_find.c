/* SPDX-License-Identifier: Apache-2.0
 * Variables on servers by name: server 0 has the notes of those that the chief has created. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/served/served.h"
#include "worker/library/runtime/served/served_note.h"

#define NAMES_BYTES 320 /* of a message */

static bool is_reserved(const char *name)
{
    return strncmp(name, SERVED_RESERVED, strlen(SERVED_RESERVED)) == 0;
}

static cadre_status served_find_ask(
    struct served_variables *all, struct request *request, struct cadre_error *error)
{
    return client_call(all->ps_job->client, request, 1, ps_job_done_watermark(), error);
}

/* "'a', 'b', ...": names that programs gave. */
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

static cadre_status list_served_names(
    struct served_variables *all, const char *name, struct cadre_error *error)
{
    char text[NAMES_BYTES];
    struct request request = {.kind = REQUEST_NOTE_NAMES};
    CADRE_TRY(served_find_ask(all, &request, error));
    /* Each name has its terminator, the last one too. */
    size_t bytes = request.ret_text == NULL ? 0 : request.ret_text_bytes;
    bool whole = bytes == 0 || request.ret_text[bytes - 1] == '\0';
    list_names(request.ret_text, whole ? bytes : 0, text);
    free(request.ret_text);
    return text[0] == '\0' ? cadre_error_set(error, CADRE_NOT_FOUND,
                                 "there is no variable '%s' on parameter servers; the chief has "
                                 "created none yet",
                                 name)
                           : cadre_error_set(error, CADRE_NOT_FOUND,
                                 "there is no variable '%s' on parameter servers; those that the "
                                 "chief has created are %s",
                                 name, text);
}

static cadre_status ask_servers(struct served_variables *all, const char *name,
    cadre_variable **ret_variable, struct cadre_error *error)
{
    struct request request = {.kind = REQUEST_FIND_NOTE, .name = name};
    cadre_status status =
        is_reserved(name) ? CADRE_NOT_FOUND : served_find_ask(all, &request, error);
    if (status == CADRE_NOT_FOUND) {
        return list_served_names(all, name, error);
    }
    if (status == CADRE_OK) {
        status = served_note_decode(
            all, name, request.ret_text, request.ret_text_bytes, ret_variable, error);
        free(request.ret_text);
    }
    return status == CADRE_OK ? served_add(all, ret_variable, error) : status;
}

cadre_status served_find(const char *name, cadre_variable **ret_variable, struct cadre_error *error)
{
    struct served_variables *all = served_current();
    if (all == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_variable_find('%.127s') was called where there are no parameter servers, and "
            "outside of any strategy; give a strategy",
            name);
    }
    CADRE_TRY(name_check("variable", name, error));
    *ret_variable = served_lookup(all, name);
    return *ret_variable != NULL ? CADRE_OK : ask_servers(all, name, ret_variable, error);
}
