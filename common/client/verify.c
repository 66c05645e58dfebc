/* SPDX-License-Identifier: Apache-2.0
 * cadre_client_verify: the proof of what a job consumed, fetched page by page, then judged. */
#include <inttypes.h>

#include "common/client/state.h"
#include "common/view/verification.h"
#include "common/wire/methods.h"

struct verify {
    struct operation base;
    uint64_t job;
    cadre_verify_options options;
    struct audit_pages pages;
    bool answered; /* the newest question was */
    cadre_verification **ret_verification;
};

static cadre_status client_ask(struct verify *verify, struct cadre_error *error)
{
    struct wire_buffer *packed = &verify->base.client->packed;
    const struct operation_call call = {.path = METHOD_JOBS_VERIFY, .has_timeout = true};
    const struct verify_request request = {.id = {verify->job}, .from = verify->pages.next};
    verify->answered = false;
    wire_buffer_clear(packed);
    CADRE_TRY(wire_pack_verify_request(&request, packed, error));
    return operation_send(&verify->base, &call, error);
}

static cadre_status verify_message(
    struct operation *operation, const void *data, size_t length, struct cadre_error *error)
{
    struct verify *verify = (struct verify *)operation;
    CADRE_TRY(audit_pages_add(&verify->pages, data, length, error));
    verify->answered = true;
    if (verify->options.on_progress != NULL) {
        const cadre_verify_progress progress = {.epochs = verify->pages.all.epoch_count,
            .expected = audit_pages_estimate(&verify->pages)};
        verify->options.on_progress(&progress, verify->options.user);
    }
    return CADRE_OK;
}

/* Judging waits until the last call has ended: it may outlast a deadline. */
static cadre_status verify_ended(
    struct operation *operation, cadre_status status, struct cadre_error *error)
{
    struct verify *verify = (struct verify *)operation;
    if (status != CADRE_OK) {
        return status;
    }
    if (!verify->answered) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "the coordinator answered nothing about job %" PRIu64 ": ask again", verify->job);
    }
    if (!verify->pages.whole) {
        status = client_ask(verify, error);
        return status == CADRE_OK ? CADRE_PENDING : status;
    }
    cadre_verification *verification = audit_pages_result(&verify->pages);
    if (verification == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the answer");
    }
    verification_evaluate(verification, &verify->options);
    *verify->ret_verification = verification;
    return CADRE_OK;
}

static void verify_release(struct operation *operation)
{
    struct verify *verify = (struct verify *)operation;
    audit_pages_free(&verify->pages);
    operation_free(operation);
}

cadre_status cadre_client_verify(cadre_client *client, uint64_t job,
    const cadre_verify_options *options, cadre_verification **ret_verification,
    const cadre_then *then)
{
    static const struct operation_kind kind = {
        .message = verify_message, .call_ended = verify_ended, .release = verify_release};
    struct verify *verify = operation_new(client, &kind, sizeof *verify, then);
    if (verify == NULL) {
        return operation_new_status(client, then);
    }
    struct cadre_error error = {0};
    verify->job = job;
    verify->options = options != NULL ? *options : (cadre_verify_options){0};
    verify->ret_verification = ret_verification;
    cadre_status status = client_ask(verify, &error);
    return operation_launch(&verify->base, status, &error, then);
}
