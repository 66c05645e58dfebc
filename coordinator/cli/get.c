/* SPDX-License-Identifier: Apache-2.0
 * `cadre get`: lists or fetches the files that a job's tasks left, and its checkpoints. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/get_stored.h"
#include "coordinator/cli/hints.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/output_file.h"
#include "coordinator/cli/render/render.h"
#include "coordinator/cli/render/terminal.h"
#include "coordinator/cli/render/transfer.h"

#define LOOK_EVERY_US (100 * CADRE_US_PER_MS)

struct get_options {
    struct cli_common common;
    bool list;
    char *folder;
    bool force;
};

static const struct option_row rows[] = {
    CLI_COORDINATOR_ROW,
    CLI_JSON_ROW("With --list: print JSON instead; its keys are stable."),
    {OPTION_ROW(FLAG, "list", struct get_options, list, NULL, NULL), .letter = 'l',
        .help = "Only list the files."},
    {OPTION_ROW(TEXT, "output", struct get_options, folder, "FOLDER", NULL), .letter = 'o',
        .help = "Where the files go, as FOLDER/TASK/PATH; made when it is not there. Default: "
                "job-ID. TensorBoard's event files of all tasks go to FOLDER/events: they are one "
                "run."},
    {OPTION_ROW(FLAG, "force", struct get_options, force, NULL, NULL),
        .help = "Replace files that are there already."},
};

static const struct option_table get_table = {.program = "cadre get",
    .usage = "ID [OUTPUT]",
    .summary =
        "Fetches what a job left: TASK/..., the files of its tasks' output folders, there once "
        "the task has ended; and checkpoints/..., the newest published checkpoints, there "
        "while the job runs too. Checkpoints in an object store are read there, with the "
        "credentials of this command's environment or ~/.aws. All, or OUTPUT, a file or folder as "
        "--list shows it.",
    .notes = "  cadre get 3 -o results\n"
             "  cadre get 3 checkpoints          only the checkpoints, also of a job that runs\n"
             "  cadre get 3 events               only TensorBoard's files, into job-3/events\n"
             "  tensorboard --logdir job-3       shows their curves\n",
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0],
    .positionals_max = 2};

/* The one job that is fetched from. */
struct fetch {
    const struct invocation *invocation;
    cadre_client *client;
    uint64_t job;
    const struct stored_outputs *stored; /* and its list, of all outputs */
    const char *path;                    /* that is fetched */
    int fd;                              /* what it is written to */
    struct output_folder folder;
    bool force;
    size_t count;         /* of files that are there */
    size_t files;         /* of those that are wanted; 0: their sizes are not known */
    uint64_t done_bytes;  /* of the files before */
    uint64_t whole_bytes; /* of all */
    struct transfer transfer;
};

static int get_fail(const struct fetch *fetch, const struct cadre_error *error)
{
    return invocation_fail_with(fetch->invocation, CADRE_UNKNOWN, error->text);
}

/* The end of the call that fetches a file. */
struct fetched {
    bool done;
    cadre_status status;
    char message[1024];
};

static void on_fetched(cadre_status status, const char *message, void *user)
{
    struct fetched *fetched = user;
    fetched->done = true;
    fetched->status = status;
    snprintf(fetched->message, sizeof fetched->message, "%s", message);
}

static void show_progress(void *user)
{
    struct fetch *fetch = user;
    char doing[256];
    struct stat file = {0};
    if (fetch->files == 0) {
        return;
    }
    (void)fstat(fetch->fd, &file); /* what it has is what came */
    snprintf(doing, sizeof doing, "fetching %.200s (%zu of %zu)", fetch->path, fetch->count + 1,
        fetch->files);
    transfer_show(&fetch->transfer, doing, fetch->done_bytes + (uint64_t)file.st_size,
        fetch->whole_bytes, clock_monotonic_us());
}

/* From the object store, with the credentials of the caller. */
static int fetch_stored(struct fetch *fetch)
{
    struct cadre_error error = {0};
    cadre_status status =
        stored_outputs_fetch(fetch->stored, fetch->path, fetch->fd, show_progress, fetch, &error);
    transfer_clear(&fetch->transfer);
    return status == CADRE_OK ? CLI_DONE : get_fail(fetch, &error);
}

/* Fetches the content, and shows how far it is. */
static int fetch_content(struct fetch *fetch, const char *path, int fd)
{
    struct fetched fetched = {0};
    const cadre_then then = {.done = on_fetched, .user = &fetched};
    fetch->path = path;
    fetch->fd = fd;
    if (stored_outputs_has(fetch->stored, path)) {
        return fetch_stored(fetch);
    }
    cadre_status status = cadre_client_get_output(fetch->client, fetch->job, path, fd, &then);
    if (status != CADRE_OK) {
        return invocation_fail(fetch->invocation, status);
    }
    while (!fetched.done) {
        show_progress(fetch);
        (void)cadre_client_run(fetch->client, LOOK_EVERY_US);
    }
    transfer_clear(&fetch->transfer);
    return fetched.status == CADRE_OK ? CLI_DONE
                                      : hint_fail_output(fetch->invocation, &fetch->stored->list,
                                            fetched.status, fetched.message, path);
}

/* Where a file goes. Each task that was the chief has left event files; their names differ, and
 * TensorBoard takes those of one folder for one run. The evaluator's are another run. */
static const char *get_local_path(const char *path)
{
    static const char *const runs[] = {
        "/events/events.out.tfevents.", "/events/eval/events.out.tfevents."};
    size_t digits = strspn(path, "0123456789");
    bool found = false;
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        found = found || strncmp(path + digits, runs[i], strlen(runs[i])) == 0;
    }
    return digits > 0 && found ? path + digits + 1 : path;
}

static int fetch_one(struct fetch *fetch, const char *path)
{
    const char *local = get_local_path(path);
    struct output_file output_file;
    struct cadre_error error = {0};
    struct stat file = {0};
    if (output_file_open(fetch->folder.fd, local, fetch->force, &output_file, &error) != CADRE_OK) {
        return get_fail(fetch, &error);
    }
    int code = fetch_content(fetch, path, output_file.fd);
    (void)fstat(output_file.fd, &file);
    if (code == CLI_DONE &&
        output_file_commit(&output_file, local, fetch->force, &error) != CADRE_OK) {
        code = get_fail(fetch, &error);
    } else if (code == CLI_DONE) {
        printf("%s/", fetch->folder.path);
        terminal_print(stdout, local);
        putchar('\n');
        fetch->count++;
        fetch->done_bytes += (uint64_t)file.st_size;
    }
    output_file_close(&output_file);
    return code;
}

static bool is_beneath(const char *path, const char *wanted)
{
    size_t length = wanted != NULL ? strlen(wanted) : 0;
    while (length > 0 && wanted[length - 1] == '/') {
        length--;
    }
    return wanted == NULL ||
           (strncmp(path, wanted, length) == 0 && (path[length] == '\0' || path[length] == '/'));
}

/* As it is listed, or as it is written. */
static bool is_wanted(const char *path, const char *wanted)
{
    return is_beneath(path, wanted) || is_beneath(get_local_path(path), wanted);
}

/* Where the rest is: what lies in an object store is not fetched. */
static void point_to_folder(const struct fetch *fetch)
{
    char text[RENDER_FOLDER_BYTES];
    fprintf(stderr, "%s: what the tasks of job %" PRIu64 " leave lies in the object store, at ",
        fetch->invocation->table->program, fetch->job);
    terminal_print(stderr, render_outputs_folder(fetch->stored->list.folder, fetch->job, text));
    fprintf(stderr, "; fetch it from there\n");
}

static int fetch_all(struct fetch *fetch, const cadre_output_list *list, const char *wanted)
{
    int code = CLI_DONE;
    for (size_t i = 0; i < list->count; i++) {
        bool fetched = is_wanted(list->outputs[i].path, wanted);
        fetch->files += fetched ? 1 : 0;
        fetch->whole_bytes += fetched ? list->outputs[i].size_bytes : 0;
    }
    transfer_open(&fetch->transfer, stdout, stderr, clock_monotonic_us());
    for (size_t i = 0; i < list->count && code == CLI_DONE; i++) {
        if (is_wanted(list->outputs[i].path, wanted)) {
            code = fetch_one(fetch, list->outputs[i].path);
        }
    }
    if (code == CLI_DONE && fetch->count == 0 && wanted != NULL) {
        return fetch_one(fetch, wanted); /* not among those that are listed, or not there */
    }
    if (code == CLI_DONE && list->folder[0] != '\0' && wanted == NULL) {
        point_to_folder(fetch);
        code = CLI_FAILED;
    } else if (code == CLI_DONE && fetch->count == 0) {
        fprintf(stderr, "%s: job %" PRIu64 " left no files\n", fetch->invocation->table->program,
            fetch->job);
    } else if (code == CLI_DONE && list->more && wanted == NULL) {
        fprintf(stderr, "%s: the job left more than these %zu files: name the others\n",
            fetch->invocation->table->program, list->count);
        code = CLI_FAILED;
    }
    return code;
}

static int list_outputs(const struct fetch *fetch, bool json)
{
    const struct text_style text_style = terminal_style_of(stdout);
    const cadre_output_list *list = &fetch->stored->list;
    const struct cadre_error *fault = stored_outputs_fault(fetch->stored);
    bool good = json ? json_print(json_of_outputs(list), stdout)
                     : render_outputs(list, &text_style, stdout);
    if (fault != NULL) { /* a checkpoint is listed without its tensors */
        return get_fail(fetch, fault);
    }
    return good ? CLI_DONE : CLI_FAILED;
}

/* `stored`: the outputs of the job, all of them. */
static int get_outputs(const struct invocation *invocation, cadre_client *client, uint64_t job,
    const char *wanted, const struct stored_outputs *stored)
{
    const struct get_options *options = invocation->values;
    const cadre_output_list *list = &stored->list;
    struct cadre_error error = {0};
    char folder[32];
    snprintf(folder, sizeof folder, "job-%" PRIu64, job);
    struct fetch fetch = {.invocation = invocation,
        .client = client,
        .job = job,
        .stored = stored,
        .folder = {.fd = -1},
        .force = options->force};
    int code = CLI_DONE;
    if (options->list) {
        code = list_outputs(&fetch, options->common.json);
        if (list->folder[0] != '\0') {
            point_to_folder(&fetch);
        }
    } else if (list->count == 0 && wanted == NULL) {
        code = fetch_all(&fetch, list, wanted); /* prints that, and makes no folder */
    } else {
        const char *path = options->folder != NULL ? options->folder : folder;
        code = output_folder_open(path, &fetch.folder, &error) == CADRE_OK
                   ? fetch_all(&fetch, list, wanted)
                   : get_fail(&fetch, &error);
    }
    output_folder_close(&fetch.folder);
    return code;
}

static int get_get(const struct invocation *invocation, cadre_client *client, uint64_t job)
{
    const char *wanted =
        invocation_argument_count(invocation) > 1 ? invocation_argument(invocation, 1) : NULL;
    cadre_output_list *list = NULL;
    struct stored_outputs stored = {0};
    struct cadre_error error = {0};
    cadre_status status = cadre_client_outputs(client, job, &list, NULL);
    if (status != CADRE_OK) {
        return hint_fail_job(invocation, client, status, job);
    }
    bool with_stored = wanted == NULL || strncmp(wanted, "checkpoints", 11) == 0;
    status = stored_outputs_open(list, with_stored, &stored, &error);
    int code = status == CADRE_OK ? get_outputs(invocation, client, job, wanted, &stored)
                                  : invocation_fail_with(invocation, status, error.text);
    stored_outputs_close(&stored);
    cadre_result_release(list);
    return code;
}

int verb_get(const struct cli *cli, int argc, char **argv)
{
    struct get_options options = {0};
    struct invocation invocation;
    cadre_client *client = NULL;
    uint64_t job = 0;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &get_table, &options, argc, argv, &code) &&
        invocation_job(&invocation, 0, &job, &code) &&
        invocation_connect(&invocation, NULL, &client, &code)) {
        code = invocation_end(&invocation, get_get(&invocation, client, job));
    }
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}
