/* SPDX-License-Identifier: Apache-2.0
 * Follows several jobs at once, in a loop of its own: one connection, a callback for each change,
 * and poll(2) on the client's descriptor beside the program's others. Ctrl-C, or the end of
 * standard input, leaves the jobs alone.
 *
 *   follow [-c ADDRESS] JOB...
 */
#include <cadre/client.h>

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define JOBS_MAX 64

struct followed {
    uint64_t job;
    cadre_job_state state; /* that was printed */
    uint64_t epoch;
    int *left; /* jobs that are still followed */
    int *failed;
};

/* Called at once, and at each change. The status is borrowed until it returns. */
static bool on_job(const cadre_job *job, void *user)
{
    struct followed *followed = user;
    bool news = job->state != followed->state;
    if (news) {
        printf("job %" PRIu64 " is %s\n", job->id, cadre_job_state_name(job->state));
    }
    if (job->has_progress && job->progress.epoch != followed->epoch) {
        printf("job %" PRIu64 ": epoch %" PRIu64 ", %.0f samples/s\n", job->id,
            job->progress.epoch + 1, job->progress.samples_per_s);
        followed->epoch = job->progress.epoch;
    }
    followed->state = job->state;
    return true; /* go on; the end comes by itself */
}

/* Called once for each call that was started: at its end, or from cadre_client_release(). */
static void on_done(cadre_status status, const char *message, void *user)
{
    struct followed *followed = user;
    (*followed->left)--;
    if (status != CADRE_OK && status != CADRE_CANCELLED) {
        fprintf(stderr, "job %" PRIu64 ": %s\n", followed->job, message);
    }
    *followed->failed += status != CADRE_OK || followed->state != CADRE_JOB_SUCCEEDED;
}

static int start(cadre_client *client, struct followed *jobs, int count)
{
    for (int i = 0; i < count; i++) {
        const cadre_then then = {.done = on_done, .user = &jobs[i]};
        if (cadre_client_watch(client, jobs[i].job, on_job, &jobs[i], &then) != CADRE_OK) {
            return 1;
        }
        (*jobs[i].left)++;
    }
    return 0;
}

/* The program's own loop. A server would have its sockets in here. */
static int loop(cadre_client *client, int interrupts, const int *left)
{
    struct pollfd polled[] = {{.events = POLLIN}, {.fd = interrupts, .events = POLLIN},
        {.fd = STDIN_FILENO, .events = POLLIN}};
    if (cadre_client_fd(client, &polled[0].fd) != CADRE_OK) {
        return 1;
    }
    while (*left > 0) {
        fflush(stdout);
        if (poll(polled, sizeof polled / sizeof polled[0], -1) < 0) {
            perror("poll");
            return 1;
        }
        if (polled[0].revents != 0) {
            cadre_client_run(client, 0); /* callbacks come from in here, on this thread */
        }
        if (polled[1].revents != 0) {
            return 0; /* closing the client ends what is left */
        }
        if (polled[2].revents != 0) {
            char typed[256];
            if (read(STDIN_FILENO, typed, sizeof typed) <= 0) {
                return 0;
            }
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct followed jobs[JOBS_MAX] = {0};
    cadre_client_options options = {0};
    cadre_client *client = NULL;
    int left = 0;
    int failed = 0;
    int first = argc > 2 && argv[1][0] == '-' && argv[1][1] == 'c' ? 3 : 1;
    int count = argc - first;
    if (count < 1 || count > JOBS_MAX) {
        fprintf(stderr, "usage: %s [-c ADDRESS] JOB...    (at most %d)\n", argv[0], JOBS_MAX);
        return 2;
    }
    options.address = first == 3 ? argv[2] : NULL;
    for (int i = 0; i < count; i++) {
        jobs[i] = (struct followed){
            .job = strtoull(argv[first + i], NULL, 10), .left = &left, .failed = &failed};
    }
    sigset_t signals; /* blocked before the library starts its threads */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    int interrupts = signalfd(-1, &signals, SFD_CLOEXEC);
    int code = cadre_client_connect(&options, &client) != CADRE_OK ||
               start(client, jobs, count) != 0 || loop(client, interrupts, &left) != 0;
    if (code != 0) {
        fprintf(stderr, "%s\n", cadre_error_message());
    }
    cadre_client_release(client);
    close(interrupts);
    return code != 0 || failed > 0 ? 1 : 0;
}
