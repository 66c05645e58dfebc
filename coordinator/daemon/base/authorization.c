/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/base/authorization.h"

#include <string.h>

#include "common/wire/methods.h"

#define METHOD_SHOWN_BYTES 120

/* Sets of roles. */
#define ROLE(name)   (1U << TLS_ROLE_##name)
#define WORKERS      ROLE(WORKER)
#define OPERATORS    ROLE(CLIENT)
#define SUBMITTERS   (ROLE(CLIENT) | ROLE(SUBMITTER))
#define READERS      (ROLE(CLIENT) | ROLE(SUBMITTER) | ROLE(VIEWER))
#define LOOKERS      (ROLE(CLIENT) | ROLE(VIEWER))
#define ANY_WITH_ONE (WORKERS | READERS | ROLE(COORDINATOR))

struct rule {
    const char *method;
    unsigned roles;
};

/* Submitting a job means running code on workers; draining one or saving a job is the operator's. A
 * submitter may cancel any job: which client submitted one is not recorded. A coordinator makes no
 * calls. */
static const struct rule rules[] = {
    {METHOD_AGENTS_JOIN, WORKERS},
    {METHOD_AGENTS_GET_BLOB, WORKERS},
    {METHOD_AGENTS_MISSING_BLOBS, WORKERS},
    {METHOD_AGENTS_PUT_BLOB, WORKERS},
    {METHOD_AGENTS_PUT_OUTPUT, WORKERS},
    {METHOD_AGENTS_SETTLE_FILE, WORKERS},
    {METHOD_JOBS_SUBMIT, SUBMITTERS},
    {METHOD_JOBS_GET, READERS},
    {METHOD_JOBS_LIST, READERS},
    {METHOD_JOBS_WATCH, READERS},
    {METHOD_JOBS_LOGS, READERS},
    {METHOD_JOBS_CANCEL, SUBMITTERS},
    {METHOD_JOBS_MISSING_BLOBS, SUBMITTERS},
    {METHOD_JOBS_PUT_BLOB, SUBMITTERS},
    {METHOD_JOBS_LIST_OUTPUTS, READERS},
    {METHOD_JOBS_GET_OUTPUT, READERS},
    {METHOD_JOBS_VERIFY, READERS},
    {METHOD_JOBS_METRICS, READERS},
    {METHOD_JOBS_HISTORY, READERS},
    {METHOD_JOBS_TRACE, SUBMITTERS},
    {METHOD_JOBS_CHECKPOINT, OPERATORS},
    {METHOD_JOBS_DRAIN, OPERATORS},
    {METHOD_JOBS_LIST_WORKERS, LOOKERS},
    {METHOD_JOBS_LOGIN, READERS},
    {METHOD_JOBS_VERSION, READERS},
    {METHOD_COORDINATORS_LEADER, WORKERS | READERS},
    {METHOD_COORDINATORS_LIST, READERS},
};

/* Probes and the description of the services: whatever their methods are called. */
static const struct rule prefixes[] = {
    {"/grpc.health.", ANY_WITH_ONE},
    {"/grpc.reflection.", ANY_WITH_ONE},
};

static const struct rule *authorization_find(const char *method)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (strcmp(method, rules[i].method) == 0) {
            return &rules[i];
        }
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(method, prefixes[i].method, strlen(prefixes[i].method)) == 0) {
            return &prefixes[i];
        }
    }
    return NULL;
}

cadre_status authorize(
    const struct tls_identity *identity, const char *method, struct cadre_error *error)
{
    const struct rule *rule = authorization_find(method);
    bool allowed = identity->role == TLS_ROLE_LOCAL ||
                   (rule != NULL && (rule->roles & (1U << identity->role)) != 0);
    if (allowed) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_PERMISSION_DENIED,
        "the role %s (\"%s\") may not call %.*s: use a certificate of another role "
        "(`cadre pki issue`)",
        tls_role_name(identity->role), identity->name, METHOD_SHOWN_BYTES, method);
}
