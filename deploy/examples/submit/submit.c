/* SPDX-License-Identifier: Apache-2.0
 * Submits a job to a coordinator, somewhere, and stays with it to its end: shows the upload, then
 * what the tasks print, fetches what they leave, and cancels the job on Ctrl-C. Every call blocks,
 * which is all that most programs need; follow.c beside it is the form with callbacks.
 *
 *   submit [-c ADDRESS] [-w TASKS] [-f FILE]... [-o FOLDER] PROGRAM [ARGUMENT...]
 */
#include <cadre/client.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 64

struct wish {
    const char *address; /* NULL: CADRE_COORDINATOR, else the default */
    const char *folder;  /* for what the job leaves */
    cadre_file files[FILES_MAX];
    cadre_submit_options job;
};

/* ---- Ctrl-C ---- */

static const char *canceller_address;
static _Atomic uint64_t job_to_cancel; /* 0: not submitted yet */

/* A thread that does nothing but wait for the signal. A client belongs to one thread at a time, so
 * this one has its own; a program may have as many as it likes. */
static void *cancel_on_interrupt(void *user)
{
    const sigset_t *signals = user;
    const cadre_client_options options = {.address = canceller_address};
    cadre_client *client = NULL;
    int number = 0;
    sigwait(signals, &number);
    if (job_to_cancel == 0) {
        fprintf(stderr, "interrupted: no job is known yet\n");
        _exit(130);
    }
    fprintf(stderr, "cancelling job %" PRIu64 "\n", job_to_cancel);
    if (cadre_client_connect(&options, &client) != CADRE_OK ||
        cadre_client_cancel(client, job_to_cancel, NULL, NULL) != CADRE_OK) {
        fprintf(stderr, "%s\n", cadre_error_message());
    }
    cadre_client_release(client);
    sigwait(signals, &number); /* the main thread sees the job's end, if it waits for it */
    _exit(130);
}

static void watch_for_interrupts(const struct wish *wish, sigset_t *signals)
{
    pthread_t thread;
    canceller_address = wish->address;
    sigemptyset(signals);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, signals, NULL); /* before the library starts its threads */
    if (pthread_create(&thread, NULL, cancel_on_interrupt, signals) == 0) {
        pthread_detach(thread);
    }
}

/* ---- reports while the job runs ---- */

/* Only what the coordinator does not have is uploaded: the second time this says nothing. */
static void show_upload(const cadre_upload *upload, void *user)
{
    (void)user;
    fprintf(stderr, "uploading %s: %" PRIu64 " of %" PRIu64 " bytes\n", upload->path,
        upload->sent_bytes, upload->total_bytes);
}

/* True while more is wanted: until the job runs, or never will. */
static bool show_waiting(const cadre_job *job, void *user)
{
    (void)user;
    fprintf(stderr, "job %" PRIu64 " is %s%s%s\n", job->id, cadre_job_state_name(job->state),
        job->message[0] != '\0' ? ": " : "", job->message);
    return job->state == CADRE_JOB_QUEUED || job->state == CADRE_JOB_STARTING;
}

static bool print_log(const cadre_log *log, void *user)
{
    (void)user;
    FILE *out = log->stream == CADRE_STDERR ? stderr : stdout;
    return fwrite(log->bytes, 1, log->size, out) == log->size && fflush(out) == 0;
}

/* ---- what is left ---- */

/* Names come from elsewhere: none may lead out of the folder. */
static bool stays_inside(const char *path)
{
    return path[0] != '/' && strncmp(path, "../", 3) != 0 && strstr(path, "/../") == NULL;
}

static int open_beneath(const char *folder, const char *path)
{
    char whole[4096];
    int size = snprintf(whole, sizeof whole, "%s/%s", folder, path);
    if (!stays_inside(path) || size < 0 || (size_t)size >= sizeof whole) {
        errno = EINVAL;
        return -1;
    }
    for (char *at = whole + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        if (mkdir(whole, 0777) != 0 && errno != EEXIST) {
            return -1;
        }
        *at = '/';
    }
    return open(whole, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
}

static cadre_status fetch_outputs(cadre_client *client, uint64_t job, const char *folder)
{
    cadre_output_list *list = NULL;
    cadre_status status = cadre_client_outputs(client, job, &list, NULL);
    for (size_t i = 0; status == CADRE_OK && i < list->count; i++) {
        const char *path = list->outputs[i].path;
        int fd = open_beneath(folder, path);
        if (fd < 0) {
            fprintf(stderr, "%s/%s: %s\n", folder, path, strerror(errno));
            continue;
        }
        status = cadre_client_get_output(client, job, path, fd, NULL);
        fprintf(stderr, "fetched %s/%s (%" PRIu64 " bytes)\n", folder, path,
            list->outputs[i].size_bytes);
        if (close(fd) != 0) {
            fprintf(stderr, "%s/%s: %s\n", folder, path, strerror(errno));
        }
    }
    cadre_result_release(list);
    return status;
}

/* ---- the whole ---- */

static bool read_wish(int argc, char **argv, struct wish *wish)
{
    int letter;
    wish->job.files = wish->files;
    while ((letter = getopt(argc, argv, "+c:w:f:o:")) != -1) {
        if (letter == 'c') {
            wish->address = optarg;
        } else if (letter == 'o') {
            wish->folder = optarg;
        } else if (letter == 'w') {
            wish->job.workers = (uint32_t)strtoul(optarg, NULL, 10);
        } else if (letter == 'f' && wish->job.file_count < FILES_MAX) {
            wish->files[wish->job.file_count++].path = optarg;
        } else {
            return false;
        }
    }
    if (optind == argc) {
        return false;
    }
    wish->job.program = argv[optind];
    wish->job.arguments = (const char *const *)argv + optind + 1;
    wish->job.argument_count = (size_t)(argc - optind - 1);
    wish->job.on_upload = show_upload;
    return true;
}

/* From the submission to what the job left. *ret_exit is what a shell should see of it. */
static cadre_status run(cadre_client *client, const struct wish *wish, int *ret_exit)
{
    const cadre_log_options follow = {.follow = true};
    cadre_submitted submitted = {0};
    cadre_job *job = NULL;
    cadre_status status = cadre_client_submit(client, &wish->job, &submitted, NULL);
    if (status == CADRE_OK) {
        job_to_cancel = submitted.job;
        status = cadre_client_watch(client, submitted.job, show_waiting, NULL, NULL);
    }
    if (status ==
        CADRE_OK) { /* returns when the job has ended, also over a coordinator's restart */
        status = cadre_client_logs(client, submitted.job, &follow, print_log, NULL, NULL);
    }
    if (status == CADRE_OK) {
        status = cadre_client_job(client, submitted.job, &job, NULL);
    }
    if (status == CADRE_OK) {
        fprintf(stderr, "job %" PRIu64 " %s after %" PRIu64 " steps%s%s\n", job->id,
            cadre_job_state_name(job->state), job->position, job->message[0] != '\0' ? ": " : "",
            job->message);
        *ret_exit = job->exit_code;
        status = fetch_outputs(client, job->id, wish->folder);
    }
    cadre_result_release(job);
    return status;
}

int main(int argc, char **argv)
{
    struct wish wish = {.folder = "results"};
    sigset_t signals;
    if (!read_wish(argc, argv, &wish)) {
        fprintf(stderr,
            "usage: %s [-c ADDRESS] [-w TASKS] [-f FILE]... [-o FOLDER] PROGRAM "
            "[ARGUMENT...]\n",
            argv[0]);
        return 2;
    }
    watch_for_interrupts(&wish, &signals);
    const cadre_client_options options = {.address = wish.address};
    cadre_client *client = NULL;
    int code = 1;
    cadre_status status = cadre_client_connect(&options, &client);
    if (status == CADRE_OK) {
        status = run(client, &wish, &code);
    }
    if (status != CADRE_OK) { /* one sentence: what failed, and what to do */
        fprintf(stderr, "%s\n", cadre_error_message());
        code = 1;
    }
    cadre_client_release(client);
    return code;
}
