/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/trace/trace_output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coordinator/cli/trace/trace_file.h"
#include "coordinator/cli/trace/trace_waits.h"

bool trace_output_open(struct trace_output *output, const char *path)
{
    *output = (struct trace_output){.path = path};
    if (strcmp(path, "-") == 0) {
        output->file = stdout;
        return true;
    }
    struct stat target;
    if (stat(path, &target) == 0 && !S_ISREG(target.st_mode)) {
        output->file = fopen(path, "we"); /* a pipe or device keeps its name */
        return output->file != NULL;
    }
    if (asprintf(&output->temporary, "%s.XXXXXX", path) < 0) {
        output->temporary = NULL;
        errno = ENOMEM;
        return false;
    }
    int fd = mkostemp(output->temporary, O_CLOEXEC);
    if (fd < 0) {
        free(output->temporary);
        output->temporary = NULL;
        return false;
    }
    output->file = fdopen(fd, "w");
    return output->file != NULL;
}

bool trace_output_commit(struct trace_output *output)
{
    mode_t mask = umask(0);
    umask(mask);
    if (output->file == stdout) {
        return fflush(stdout) == 0;
    }
    bool is_new = output->temporary != NULL;
    bool good = !is_new || fchmod(fileno(output->file), 0666 & ~mask) == 0;
    good = fclose(output->file) == 0 && good;
    output->file = NULL;
    if (good && is_new) {
        good = rename(output->temporary, output->path) == 0;
    }
    if (good) {
        free(output->temporary);
        output->temporary = NULL;
    }
    return good;
}

void trace_output_close(struct trace_output *output)
{
    if (output->file != NULL && output->file != stdout) {
        fclose(output->file);
    }
    if (output->temporary != NULL) {
        unlink(output->temporary);
        free(output->temporary);
    }
    *output = (struct trace_output){0};
}

bool trace_output_finish(struct trace_output *output, struct trace_store *store, uint64_t job,
    struct trace_conclusion *ret_conclusion, char ret_sentence[TRACE_SENTENCE_BYTES])
{
    trace_store_align(store);
    *ret_conclusion = (struct trace_conclusion){0};
    if (!trace_waits(store) || !trace_conclude(store, ret_conclusion)) {
        errno = ENOMEM;
        return false;
    }
    trace_sentence(store, ret_conclusion, ret_sentence);
    return trace_file_write(store, job, ret_sentence, output->file) && trace_output_commit(output);
}

/* ---- for people ---- */

static void note_tasks(const struct trace_store *store, const char *who, FILE *out)
{
    for (size_t i = 0; i < store->process_count; i++) {
        const struct stored_process *process = &store->processes[i];
        const char *note = process->task.state == CADRE_TRACE_GONE
                               ? "went away: its newest spans may be missing"
                           : process->task.state == CADRE_TRACE_ASKED
                               ? "does not answer: it is stopped, or its host is"
                           : process->received == 0 ? "did not come to these steps"
                                                    : NULL;
        if (note != NULL) {
            fprintf(out, "%s: task %" PRIu32 " on %s %s\n", who, process->task.task,
                process->worker, note);
        }
    }
}

void trace_output_notes(const struct trace_store *store, const char *who, FILE *out)
{
    uint64_t lost = trace_store_lost(store);
    uint64_t error_ns = trace_store_clock_error(store);
    if (store->message[0] != '\0') {
        fprintf(out, "%s: not all steps are in the trace: %s\n", who, store->message);
    }
    note_tasks(store, who, out);
    if (lost > 0) {
        fprintf(out, "%s: %" PRIu64 " spans are lost: trace fewer steps at a time\n", who, lost);
    }
    if (error_ns == UINT64_MAX) {
        fprintf(out, "%s: the clock of a host was not measured: its times are wrong\n", who);
    } else if (error_ns > 0) {
        fprintf(out, "%s: clocks of hosts are aligned to %.0f us or better\n", who,
            (double)error_ns / 1000 + 1);
    }
}
