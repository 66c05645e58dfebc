/* SPDX-License-Identifier: Apache-2.0
 * Follows a submitted job to its end for `cadre submit`: the streams of its state and of its logs
 * at the same time, Ctrl-C, and the outcome. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/render/monitor.h"
#include "coordinator/cli/render/render.h"
#include "coordinator/cli/submit.h"

#define POLL_EVERY_US (100 * CADRE_US_PER_MS)

/* One of the two streams. */
struct stream {
    bool done;
    cadre_status status;
    char message[1024];
};

struct follow {
    struct monitor monitor;
    struct stream watch;
    struct stream logs;
    bool left; /* nothing is shown any more */
    bool cancelling;
    cadre_job *cancelled; /* the answer to Cancel; not looked at */
    bool ended;           /* the final state was received */
    cadre_job_state state;
    int exit_code;
    char *outcome; /* one line */
};

struct follow *follow_new(size_t tasks, bool raw)
{
    struct follow *follow = calloc(1, sizeof *follow);
    if (follow != NULL && !monitor_open(&follow->monitor, tasks, raw, stdout, stderr)) {
        follow_free(follow);
        follow = NULL;
    }
    return follow;
}

void follow_free(struct follow *follow)
{
    if (follow != NULL) {
        monitor_close(&follow->monitor);
        cadre_result_release(follow->cancelled);
        free(follow->outcome);
        free(follow);
    }
}

void follow_on_outage(bool away, void *user)
{
    struct follow *follow = user;
    if (!follow->left) {
        screen_note(&follow->monitor.screen, "%s",
            away ? "the coordinator went away; trying again" : "the coordinator is back");
    }
}

static void store_outcome(struct follow *follow, const cadre_job *job)
{
    size_t size = 0;
    free(follow->outcome);
    follow->outcome = NULL;
    FILE *outcome = open_memstream(&follow->outcome, &size);
    if (outcome != NULL) {
        render_outcome(job, &follow->monitor.screen.err_style, outcome);
        fclose(outcome);
    }
    follow->ended = true;
    follow->state = job->state;
    follow->exit_code = monitor_exit_code(job);
}

static bool on_job(const cadre_job *job, void *user)
{
    struct follow *follow = user;
    monitor_job(&follow->monitor, job);
    if (cadre_job_state_is_final(job->state)) {
        store_outcome(follow, job);
    }
    return true;
}

static bool on_log(const cadre_log *log, void *user)
{
    struct follow *follow = user;
    if (log->left_out > 0) {
        screen_note(&follow->monitor.screen,
            "task %" PRIu32 ": %" PRIu64 " bytes of its output are left out here", log->task,
            log->left_out);
    }
    monitor_output(
        &follow->monitor, log->task, log->stream == CADRE_STDERR ? 2 : 1, log->bytes, log->size);
    if (log->end) {
        monitor_task_end(&follow->monitor, log->task);
    }
    return true;
}

static void on_stream_done(cadre_status status, const char *message, void *user)
{
    struct stream *stream = user;
    stream->done = true;
    stream->status = status;
    snprintf(stream->message, sizeof stream->message, "%s", message);
}

static void on_cancelled(cadre_status status, const char *message, void *user)
{
    struct follow *follow = user;
    if (status != CADRE_OK && !follow->left) {
        follow->cancelling = false;
        screen_note(&follow->monitor.screen, "the job could not be cancelled: %s", message);
    }
}

/* True: the second Ctrl-C, which leaves the job. */
static bool handle_interrupts(
    struct follow *follow, cadre_client *client, uint64_t job, unsigned *seen)
{
    unsigned count = interrupt_count();
    if (count == *seen) {
        return false;
    }
    bool twice = count - *seen > 1;
    *seen = count;
    if (follow->cancelling) {
        return true;
    }
    follow->cancelling = true;
    screen_note(
        &follow->monitor.screen, "cancelling job %" PRIu64 "; Ctrl-C again leaves it alone", job);
    const cadre_then then = {.done = on_cancelled, .user = follow};
    if (cadre_client_cancel(client, job, &follow->cancelled, &then) != CADRE_OK) {
        on_cancelled(CADRE_UNKNOWN, cadre_error_message(), follow);
    }
    return twice;
}

/* Runs both streams; false: the user left. */
static bool run_streams(struct follow *follow, cadre_client *client, uint64_t job)
{
    const cadre_log_options options = {.follow = true};
    const cadre_then watched = {.done = on_stream_done, .user = &follow->watch};
    const cadre_then read = {.done = on_stream_done, .user = &follow->logs};
    unsigned seen = interrupt_count();
    cadre_status status = cadre_client_watch(client, job, on_job, follow, &watched);
    if (status != CADRE_OK) {
        on_stream_done(status, cadre_error_message(), &follow->watch);
    }
    status = cadre_client_logs(client, job, &options, on_log, follow, &read);
    if (status != CADRE_OK) {
        on_stream_done(status, cadre_error_message(), &follow->logs);
    }
    while (!follow->watch.done || !follow->logs.done) {
        (void)cadre_client_run(client, POLL_EVERY_US);
        monitor_tick(&follow->monitor, clock_monotonic_us());
        if (handle_interrupts(follow, client, job, &seen)) {
            return false;
        }
    }
    return true;
}

static void print_outputs(cadre_client *client, uint64_t job)
{
    cadre_output_list *list = NULL;
    bool known = cadre_client_outputs(client, job, &list, NULL) == CADRE_OK;
    char text[RENDER_FOLDER_BYTES];
    if (known && list->folder[0] != '\0') {
        fprintf(stderr, "; outputs: ");
        terminal_print(stderr, render_outputs_folder(list->folder, job, text));
    }
    if (known && list->count > 0) {
        fprintf(stderr, "%s cadre get %" PRIu64, list->folder[0] != '\0' ? "," : "; outputs:", job);
    }
    cadre_result_release(list);
}

static int print_end(const struct invocation *invocation, const struct follow *follow,
    cadre_client *client, uint64_t job)
{
    if (!follow->ended) {
        return invocation_fail_with(invocation, follow->watch.status,
            follow->watch.message[0] != '\0' ? follow->watch.message
                                             : "the coordinator ended the stream too early");
    }
    if (follow->logs.status != CADRE_OK) {
        fprintf(stderr, "%s: the logs are not complete: ", invocation->table->program);
        terminal_print(stderr, follow->logs.message);
        fputc('\n', stderr);
    }
    fprintf(stderr, "%s", follow->outcome != NULL ? follow->outcome : "the job ended");
    print_outputs(client, job);
    fputc('\n', stderr);
    return follow->exit_code;
}

int follow_job(
    struct follow *follow, const struct invocation *invocation, cadre_client *client, uint64_t job)
{
    bool stayed = run_streams(follow, client, job);
    follow->left = true;
    monitor_close(&follow->monitor);
    if (stayed) {
        return print_end(invocation, follow, client, job);
    }
    fprintf(stderr, "left job %" PRIu64 ", which is being cancelled: cadre job %" PRIu64 "\n", job,
        job);
    return CLI_INTERRUPTED;
}
