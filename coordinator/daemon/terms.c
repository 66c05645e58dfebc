/* SPDX-License-Identifier: Apache-2.0
 * No worker serves two coordinators that run with copies of one ledger: its hello names the start
 * (the term) that it accepted last. agents.c calls this for each hello. */
#include <stdio.h>

#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/links.h"
#include "coordinator/daemon/base/authorization.h"

/* Ends the other streams; the workers join again and receive the new term. */
static void send_new_term(struct daemon *daemon, struct link_id but)
{
    for (size_t i = 0; i < daemon->link_count; i++) {
        const struct agent_link *link = &daemon->links[i];
        if (link->sent_hello && link->id.n != but.n) {
            rpc_call_finish(link->call, CADRE_UNAVAILABLE,
                "the coordinator supersedes another one: join it again");
        }
    }
}

static void terms_supersede(
    struct daemon *daemon, struct link_id link, const struct agent_hello *hello)
{
    engine_supersede(daemon->engine, hello->seen.start);
    log_event(LOG_LEVEL_WARNING, "agents",
        "this coordinator supersedes the one that a worker served", LOG_STR("worker", hello->name),
        LOG_U64("known_start", hello->seen.start),
        LOG_U64("start", engine_term(daemon->engine).start));
    send_new_term(daemon, link);
}

static cadre_status terms_refuse(const struct agent_hello *hello, const struct term *own,
    bool duplicate, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "worker %s has served %s start %llu of this cluster's coordinator, and this is start %llu: "
        "%s; stop the other one, or if this one shall count start it with --supersede",
        hello->name, duplicate ? "another" : "the later", (unsigned long long)hello->seen.start,
        (unsigned long long)own->start,
        duplicate ? "two run with copies of one state directory"
                  : "another one runs, or this state directory is an older copy");
}

/* Jobs of another cluster may have the numbers of jobs here, so its tasks must not be listed here.
 * Whether they are still needed is for the operator to decide. */
static cadre_status check_holds_nothing(const struct agent_hello *hello, struct cadre_error *error)
{
    char first[80] = "";
    if (hello->task_count > 0) {
        snprintf(first, sizeof first, ", of job %llu slot %u for one",
            (unsigned long long)hello->tasks[0].job.n, hello->tasks[0].slot);
    }
    if (hello->task_count + hello->kept_count == 0) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "worker %s comes from another cluster, and holds state of that one: %zu task%s%s, and "
        "the memory of parameter servers of %zu job%s; name that one's coordinator there again, "
        "which collects it, or start the worker once without --keep-tasks, which drops it",
        hello->name, hello->task_count, hello->task_count == 1 ? "" : "s", first, hello->kept_count,
        hello->kept_count == 1 ? "" : "s");
}

/* Rule HA12: with a shared log the one that has the newer term, or the newer entries, is right. */
static cadre_status check_ahead(struct daemon *daemon, const struct agent_hello *hello,
    const struct term *own, enum term_verdict verdict, struct cadre_error *error)
{
    bool same = hello->seen.cluster == own->cluster && hello->seen.start == own->start;
    bool twin = verdict == TERM_DUPLICATE;
    bool ahead = verdict == TERM_OLD || twin || (same && hello->seen_index > daemon->log_index);
    if (daemon->hello_ahead == NULL || !ahead) {
        return CADRE_OK;
    }
    uint64_t index = twin ? UINT64_MAX : hello->seen_index;
    log_event(LOG_LEVEL_WARNING, "agents",
        "a worker has seen more of the log than this coordinator", LOG_STR("worker", hello->name),
        LOG_U64("seen_term", hello->seen.start), LOG_U64("seen_index", hello->seen_index),
        LOG_U64("term", own->start), LOG_U64("index", daemon->log_index));
    daemon->hello_ahead(daemon, hello->seen.start, index);
    return cadre_error_set(error, CADRE_UNAVAILABLE,
        "the coordinator leads term %llu, and worker %s has seen term %llu and entry %llu of the "
        "log: this coordinator reads the log again; ask all coordinators which one leads",
        (unsigned long long)own->start, hello->name, (unsigned long long)hello->seen.start,
        (unsigned long long)hello->seen_index);
}

cadre_status terms_check(struct daemon *daemon, struct link_id link,
    const struct agent_hello *hello, struct cadre_error *error)
{
    struct term own = engine_term(daemon->engine);
    enum term_verdict verdict = term_judge(&hello->seen, &own);
    CADRE_TRY(check_ahead(daemon, hello, &own, verdict, error));
    switch (verdict) {
    case TERM_GOOD:
        return CADRE_OK;
    case TERM_FOREIGN:
        CADRE_TRY(check_holds_nothing(hello, error));
        log_event(LOG_LEVEL_INFO, "agents", "a worker comes from another cluster",
            LOG_STR("worker", hello->name));
        return CADRE_OK;
    case TERM_OLD:
    case TERM_DUPLICATE:
        break;
    }
    if (!daemon->options.supersede) {
        return terms_refuse(hello, &own, verdict == TERM_DUPLICATE, error);
    }
    terms_supersede(daemon, link, hello);
    return CADRE_OK;
}
