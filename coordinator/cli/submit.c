/* SPDX-License-Identifier: Apache-2.0
 * `cadre submit`: the upload, then the job to its end. */
#include "coordinator/cli/submit.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render.h"
#include "coordinator/cli/render/transfer.h"

#define LOOK_EVERY_US (100 * CADRE_US_PER_MS)

/* Lives as long as the client, which fills it. */
struct session {
    struct transfer transfer;
    cadre_submitted submitted;
    bool done;
    cadre_status status;
    char message[1024];
};

static void on_upload(const cadre_upload *upload, void *user)
{
    struct session *session = user;
    char doing[256];
    snprintf(doing, sizeof doing, "uploading %.200s (%zu of %zu)", upload->path, upload->file + 1,
        upload->files);
    transfer_show(
        &session->transfer, doing, upload->sent_bytes, upload->total_bytes, clock_monotonic_us());
}

static void on_submitted(cadre_status status, const char *message, void *user)
{
    struct session *session = user;
    session->done = true;
    session->status = status;
    snprintf(session->message, sizeof session->message, "%s", message);
}

/* Uploads and submits; CLI_DONE once there is a job. */
static int send_job(const struct invocation *invocation, cadre_client *client,
    const struct submit_request *request, struct session *session)
{
    cadre_submit_options options = request->options;
    options.on_upload = on_upload;
    options.user = session;
    const cadre_then then = {.done = on_submitted, .user = session};
    cadre_status status = cadre_client_submit(client, &options, &session->submitted, &then);
    if (status != CADRE_OK) {
        return invocation_fail(invocation, status);
    }
    while (!session->done && interrupt_count() == 0) {
        (void)cadre_client_run(client, LOOK_EVERY_US);
    }
    transfer_clear(&session->transfer);
    if (!session->done) {
        fprintf(
            stderr, "%s: interrupted before the job was submitted\n", invocation->table->program);
        return CLI_INTERRUPTED;
    }
    return session->status == CADRE_OK
               ? CLI_DONE
               : invocation_fail_with(invocation, session->status, session->message);
}

static void print_upload_note(const struct invocation *invocation, const cadre_submitted *submitted)
{
    if (submitted->note[0] != '\0') {
        fprintf(stderr, "%s: %s\n", invocation->table->program, submitted->note);
    }
}

static int verb_detach(const struct invocation *invocation, const cadre_submitted *submitted)
{
    const struct cli_common *common = invocation->values;
    print_upload_note(invocation, submitted);
    if (common->json) {
        return json_print(json_of_submitted(submitted), stdout) ? CLI_DONE : CLI_FAILED;
    }
    printf("job %" PRIu64 " submitted\n", submitted->job);
    return CLI_DONE;
}

static void print_submitted(const cadre_submitted *submitted)
{
    fprintf(stderr, "job %" PRIu64 " submitted", submitted->job);
    if (submitted->queued_before > 0) {
        fprintf(stderr, ", behind %" PRIu32 " other%s", submitted->queued_before,
            submitted->queued_before == 1 ? "" : "s");
    }
    fputc('\n', stderr);
}

static int cli_submit_submit(
    const struct invocation *invocation, const struct submit_request *request)
{
    const struct submit_options *options = invocation->values;
    struct session session = {0};
    cadre_client *client = NULL;
    int code = CLI_FAILED;
    struct follow *follow = follow_new(request->tasks, options->raw);
    if (follow == NULL) {
        fprintf(stderr, "%s: no memory to follow a job\n", invocation->table->program);
        return code;
    }
    transfer_open(&session.transfer, stdout, stderr, clock_monotonic_us());
    interrupt_watch();
    const cadre_client_options connection = {.on_outage = follow_on_outage, .user = follow};
    if (invocation_connect(invocation, &connection, &client, &code)) {
        code = send_job(invocation, client, request, &session);
        if (code == CLI_DONE && options->detach) {
            code = verb_detach(invocation, &session.submitted);
        } else if (code == CLI_DONE) {
            print_upload_note(invocation, &session.submitted);
            print_submitted(&session.submitted);
            code = follow_job(follow, invocation, client, session.submitted.job);
        }
    }
    cadre_client_release(client);
    follow_free(follow);
    return code;
}

int verb_submit(const struct cli *cli, int argc, char **argv)
{
    struct submit_options options = {0};
    struct invocation invocation;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &submit_table, &options, argc, argv, &code)) {
        struct submit_request request;
        if (submit_request_make(&invocation, &request, &code)) {
            code = invocation_end(&invocation, cli_submit_submit(&invocation, &request));
        }
        submit_request_free(&request);
    }
    invocation_close(&invocation);
    return code;
}
