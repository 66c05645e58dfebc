/* SPDX-License-Identifier: Apache-2.0
 * The table of etcd's errors. etcd sends a code and a fixed text; the code alone is not enough
 * (a wrong password and a transaction that is too large are both INVALID_ARGUMENT). The texts are
 * those of etcd 3.4 and 3.5. Called by call.c and watch.c. */
#include "common/etcd/errors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"

#define OUTCOME_TEXT                                                                               \
    "; whether the transaction was applied is not known: send the same one again, it goes to the " \
    "next endpoint"
#define THEIRS_BYTES 240

enum row_flags {
    MAYBE_APPLIED = 1, /* etcd may have applied it, or may do so later */
    ELSEWHERE = 2,
    TOKEN_IS_VOID = 4,
    LOGIN_IS_OFF = 8,
    NO_SPACE = 16,
};

struct row {
    const char *theirs; /* what etcd's text begins with */
    cadre_status code;
    unsigned flags;
    const char *ours; /* NULL: etcd's text says it */
};

static const struct row rows[] = {
    {"etcdserver: request timed out", CADRE_UNAVAILABLE, MAYBE_APPLIED | ELSEWHERE,
        "it got no answer from the other members in time: its quorum or its network is lost, or "
        "its "
        "disk is slow"},
    {"etcdserver: no leader", CADRE_UNAVAILABLE, MAYBE_APPLIED | ELSEWHERE,
        "it knows of no leader: an election is under way, or less than half of the members can be "
        "reached"},
    {"etcdserver: leader changed", CADRE_UNAVAILABLE, MAYBE_APPLIED | ELSEWHERE,
        "its leader changed meanwhile"},
    {"etcdserver: not leader", CADRE_UNAVAILABLE, MAYBE_APPLIED | ELSEWHERE,
        "it is not the leader any more"},
    {"etcdserver: server stopped", CADRE_UNAVAILABLE, MAYBE_APPLIED | ELSEWHERE,
        "this member is stopping"},
    {"etcdserver: unhealthy cluster", CADRE_UNAVAILABLE, MAYBE_APPLIED | ELSEWHERE,
        "it finds its cluster unhealthy: `etcdctl endpoint health --cluster` shows the members"},
    {"etcdserver: rpc not supported for learner", CADRE_UNAVAILABLE, ELSEWHERE,
        "this member is a learner, which serves no client: name voting members only"},
    {"etcdserver: not capable", CADRE_UNAVAILABLE, ELSEWHERE,
        "its cluster is being upgraded and cannot do this yet"},
    {"etcdserver: too many requests", CADRE_RESOURCE_EXHAUSTED, ELSEWHERE,
        "it has more requests under way than it takes: its disk is too slow for what its clients "
        "send"},
    {"etcdserver: mvcc: database space exceeded", CADRE_RESOURCE_EXHAUSTED, NO_SPACE,
        "its database is full (alarm NOSPACE): compact it (`etcdctl compact REVISION`), `etcdctl "
        "defrag` each member, then `etcdctl alarm disarm`; --quota-backend-bytes is the limit"},
    {"etcdserver: corrupt cluster", CADRE_DATA_LOSS, 0,
        "its members hold different data (alarm CORRUPT): replace the wrong member, then `etcdctl "
        "alarm disarm`"},
    {"etcdserver: request is too large", CADRE_INVALID_ARGUMENT, 0,
        "it takes smaller requests than this one: start it with --max-request-bytes=1572864, its "
        "default, or more"},
    {"etcdserver: too many operations in txn request", CADRE_INVALID_ARGUMENT, 0,
        "it takes fewer operations in a transaction: start it with --max-txn-ops=128, its default, "
        "or more"},
    {"etcdserver: duplicate key given in txn request", CADRE_INVALID_ARGUMENT, 0,
        "the transaction changes one key twice"},
    {"etcdserver: mvcc: required revision has been compacted", CADRE_OUT_OF_RANGE, 0,
        "the revision that was asked for is compacted: read the key as it is now"},
    {"etcdserver: invalid auth token", CADRE_UNAUTHENTICATED, TOKEN_IS_VOID,
        "the token is not valid any more, nor is a new one: are the members' clocks and "
        "--auth-token options the same?"},
    {"etcdserver: revision of auth store is old", CADRE_UNAUTHENTICATED, TOKEN_IS_VOID,
        "its users are being changed: try again"},
    {"etcdserver: user name is empty", CADRE_UNAUTHENTICATED, TOKEN_IS_VOID,
        "it asks for a login: give a user and a password"},
    {"etcdserver: authentication failed", CADRE_UNAUTHENTICATED, 0, NULL},
    {"etcdserver: authentication is not enabled", CADRE_FAILED_PRECONDITION, LOGIN_IS_OFF,
        "it has no login"},
    {"etcdserver: permission denied", CADRE_PERMISSION_DENIED, 0, NULL},
};

void etcd_printable(const char *text, char *ret_text, size_t size)
{
    size_t i = 0;
    CADRE_ASSERT(size > 0);
    for (; i + 1 < size && text[i] != '\0'; i++) {
        ret_text[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
    }
    ret_text[i] = '\0';
}

void etcd_blame(const struct etcd_failure *failure, struct cadre_error *error)
{
    cadre_error_wrap(error, error->code, "etcd at %s, %s", failure->endpoint, failure->operation);
}

static void set_login_failed(const struct etcd_failure *failure, struct cadre_error *error)
{
    cadre_error_set(error, CADRE_UNAUTHENTICATED,
        "the user \"%s\" does not exist or has another password",
        failure->user != NULL ? failure->user : "");
}

static void set_denied(const struct etcd_failure *failure, struct cadre_error *error)
{
    if (failure->user == NULL) {
        cadre_error_set(error, CADRE_PERMISSION_DENIED,
            "it asks for a login, and no user is given, or this client's certificate names one "
            "without the right to %s/",
            failure->prefix);
        return;
    }
    cadre_error_set(error, CADRE_PERMISSION_DENIED,
        "the user \"%s\" may not read and write %s/: `etcdctl role grant-permission ROLE "
        "--prefix=true readwrite %s/`, for a role of this user",
        failure->user, failure->prefix, failure->prefix);
}

/* Not a text of etcd's: of gRPC, of the connection, or of another server. */
static struct row foreign_row(cadre_status status, const char *text)
{
    struct row row = {.code = status, .flags = MAYBE_APPLIED | ELSEWHERE};
    if (status == CADRE_UNIMPLEMENTED) {
        row.code = CADRE_FAILED_PRECONDITION;
        row.flags = ELSEWHERE;
        row.ours = "the server has no such method: is it an etcd, of version 3.4 or newer?";
    } else if (status == CADRE_RESOURCE_EXHAUSTED && strncmp(text, "grpc: received", 14) == 0) {
        row.code = CADRE_INVALID_ARGUMENT; /* the limit of etcd's gRPC server, before its own */
        row.flags = 0;
        row.ours = "it takes smaller requests than this one: start it with "
                   "--max-request-bytes=1572864, its default, or more";
    } else if (status == CADRE_RESOURCE_EXHAUSTED) {
        row.flags = MAYBE_APPLIED; /* this end's limit */
        row.ours = "its answer is longer than one may be: read fewer keys at once";
    } else if (status == CADRE_UNAUTHENTICATED || status == CADRE_PERMISSION_DENIED) {
        row.flags = ELSEWHERE; /* of the TLS handshake */
    } else if (status == CADRE_CANCELLED) {
        row.code = CADRE_UNAVAILABLE; /* the client itself cancels only when it is closed */
    }
    return row;
}

static struct row find_row(cadre_status status, const char *text)
{
    for (size_t i = 0; i < CADRE_COUNT_OF(rows); i++) {
        if (strncmp(text, rows[i].theirs, strlen(rows[i].theirs)) == 0) {
            return rows[i];
        }
    }
    if (strncmp(text, "etcdserver: ", strlen("etcdserver: ")) == 0) {
        bool transient = status == CADRE_UNAVAILABLE || status == CADRE_UNKNOWN;
        return (struct row){
            .code = status, .flags = transient ? MAYBE_APPLIED | ELSEWHERE : MAYBE_APPLIED};
    }
    return foreign_row(status, text);
}

void etcd_judge(const struct etcd_failure *failure, cadre_status status, const char *text,
    struct etcd_verdict *ret_verdict)
{
    CADRE_ASSERT(status != CADRE_OK);
    const struct row row = find_row(status, text);
    char theirs[THEIRS_BYTES];
    *ret_verdict = (struct etcd_verdict){
        .outcome_unknown = failure->is_change && (row.flags & MAYBE_APPLIED) != 0,
        .elsewhere = (row.flags & ELSEWHERE) != 0,
        .token_is_void = (row.flags & TOKEN_IS_VOID) != 0 && failure->user != NULL,
        .login_is_off = (row.flags & LOGIN_IS_OFF) != 0,
        .no_space = (row.flags & NO_SPACE) != 0,
    };
    struct cadre_error *error = &ret_verdict->error;
    etcd_printable(text, theirs, sizeof theirs);
    const char *outcome = ret_verdict->outcome_unknown ? OUTCOME_TEXT : "";
    if (row.theirs != NULL && row.ours == NULL) {
        (row.code == CADRE_PERMISSION_DENIED ? set_denied : set_login_failed)(failure, error);
    } else if (row.code == CADRE_DEADLINE_EXCEEDED && row.ours == NULL) {
        cadre_error_set(error, row.code,
            "no answer within %" PRIu64 " ms: it is stopped or overloaded, or cut off%s",
            failure->waited_us / CADRE_US_PER_MS, outcome);
    } else {
        cadre_error_set(error, row.code, "%s%s", row.ours != NULL ? row.ours : theirs, outcome);
    }
    etcd_blame(failure, error);
}
