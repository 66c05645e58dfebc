/* SPDX-License-Identifier: Apache-2.0
 * The newest start of the coordinator that this worker has met, in memory and in the state
 * directory: an older one, or one with a copy of its state, is refused. */
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
    if (sscanf(text, "cluster %" SCNx64 " start %" SCNu64 " nonce %" SCNx64, &term->cluster,
            &term->start, &term->nonce) != 3) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is damaged: it names the coordinator that this worker joined last; remove it if "
            "that was the one at %s",
            path, daemon->options.coordinator);
    }
    agent_set_term(daemon->agent, term);
    return CADRE_OK;
}

/* Keeps it in memory in any case: a full disk must not keep a worker from its cluster. */
static void daemon_term_keep(struct daemon *daemon, const struct term *term)
{
    CADRE_FREE_AT_EXIT char *path = path_of_term(daemon);
    char text[TERM_BYTES];
    struct cadre_error error = {0};
    int size = snprintf(text, sizeof text,
        "cluster %016" PRIx64 " start %" PRIu64 " nonce %016" PRIx64 "\n", term->cluster,
        term->start, term->nonce);
    daemon->term = *term;
    agent_set_term(daemon->agent, term);
    cadre_status status =
        path != NULL ? file_write_atomic(path, text, (size_t)size, 0600, &error)
                     : cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory to note it");
    if (status != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "link",
            "after a restart this worker would have no record of the coordinator that it accepted "
            "last",
            LOG_STR("reason", error.text));
    }
}

cadre_status term_accept(struct daemon *daemon, const struct term *term, struct cadre_error *error)
{
    const struct term *seen = &daemon->term;
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
        daemon_term_keep(daemon, term);
    }
    return CADRE_OK;
}
