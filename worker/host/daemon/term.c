/* SPDX-License-Identifier: Apache-2.0
 * The newest start of the coordinator that this worker has met, or the newest term of several, in
 * memory and in the state directory: an older one, or one with a copy of its state, is refused. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/link.h"

#define TERM_BYTES 128

static char *path_of_term(const struct daemon *daemon)
{
    char *path = NULL;
    return asprintf(&path, "%s/coordinator", daemon->options.state_dir) < 0 ? NULL : path;
}

/* Of one size, so that it can be written over the one before on a disk without room. */
static int term_text(char ret_text[TERM_BYTES], const struct term *term, uint64_t log_index)
{
    return snprintf(ret_text, TERM_BYTES,
        "cluster %016" PRIx64 " start %020" PRIu64 " nonce %016" PRIx64 " index %020" PRIu64 "\n",
        term->cluster, term->start, term->nonce, log_index);
}

cadre_status term_load(struct daemon *daemon, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = path_of_term(daemon);
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t size = 0;
    struct term *term = &daemon->term;
    if (path == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to start");
    }
    if (access(path, F_OK) != 0) {
        return CADRE_OK; /* it has joined no coordinator yet */
    }
    CADRE_TRY(file_read(path, TERM_BYTES, &text, &size, error));
    /* A worker of an earlier version wrote no index. */
    if (sscanf(text, "cluster %" SCNx64 " start %" SCNu64 " nonce %" SCNx64 " index %" SCNu64,
            &term->cluster, &term->start, &term->nonce, &daemon->log_index) < 3) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is damaged: it names the coordinator that this worker joined last; remove it if "
            "that was the one at %s",
            path, daemon->options.coordinator);
    }
    agent_set_term(daemon->agent, term, daemon->log_index);
    return CADRE_OK;
}

/* On a disk that has no room for another file: what is there has the same size, or is of an earlier
 * version and ends in the same block. */
static cadre_status overwrite(
    const char *path, const char *text, size_t size, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return cadre_error_errno(error, errno, "cannot open %s", path);
    }
    CADRE_TRY(file_write_all(fd, path, text, size, error));
    return fsync(fd) == 0 ? CADRE_OK
                          : cadre_error_errno(error, errno, "cannot make %s durable", path);
}

static cadre_status write_term(
    const char *path, const char *text, size_t size, struct cadre_error *error)
{
    if (path == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to note it");
    }
    cadre_status status = file_write_atomic(path, text, size, 0600, error);
    return status == CADRE_OK ? CADRE_OK : overwrite(path, text, size, error);
}

/* Keeps it in memory in any case: a broken disk must not keep a worker from its cluster. */
static void daemon_term_keep(struct daemon *daemon, const struct agent_welcome *welcome)
{
    CADRE_FREE_AT_EXIT char *path = path_of_term(daemon);
    char text[TERM_BYTES];
    struct cadre_error error = {0};
    int size = term_text(text, &welcome->term, welcome->log_index);
    daemon->term = welcome->term;
    daemon->log_index = welcome->log_index;
    if (write_term(path, text, (size_t)size, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "link",
            "after a restart this worker would have no record of the coordinator that it accepted "
            "last",
            LOG_STR("reason", error.text));
    }
    agent_set_term(daemon->agent, &daemon->term, daemon->log_index);
}

void term_note_index(struct daemon *daemon, uint64_t log_index)
{
    if (daemon->term.cluster != 0 && log_index > daemon->log_index) {
        daemon->log_index = log_index;
        agent_set_term(daemon->agent, &daemon->term, log_index);
    }
}

cadre_status term_accept(
    struct daemon *daemon, const struct agent_welcome *welcome, struct cadre_error *error)
{
    const struct term *seen = &daemon->term;
    const struct term *term = &welcome->term;
    unsigned long long start = term->start;
    /* Rule HA10: an older start, or a twin of the newest one, is refused. */
    switch (term_judge(seen, term)) {
    case TERM_OLD:
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "this worker refuses the coordinator, which is start %llu of its cluster: it has seen "
            "start %llu, so another one runs, or this one's ledger is an older copy",
            start, (unsigned long long)seen->start);
    case TERM_DUPLICATE:
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "this worker refuses the coordinator, which is start %llu of its cluster: it has seen "
            "another coordinator with that number, so two run with copies of one state directory",
            start);
    case TERM_FOREIGN:
        /* Another cluster: its jobs may have the numbers of jobs here. */
        if (agent_is_occupied(daemon->agent)) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "this worker refuses the coordinator, which is of another cluster: it holds what "
                "is of the one that it joined before; name that one's coordinator again, or start "
                "this worker once without --keep-tasks, which drops it");
        }
        log_event(LOG_LEVEL_INFO, "link", "this worker moves to another cluster", LOG_END);
        break;
    case TERM_GOOD:
        break;
    }
    /* Rule HA10: a coordinator is recorded, with fsync, before the worker answers it. */
    bool news = seen->cluster != term->cluster || seen->start != term->start;
    if (term->cluster != 0 && news) {
        daemon_term_keep(daemon, welcome);
    } else {
        term_note_index(daemon, welcome->log_index);
    }
    return CADRE_OK;
}
