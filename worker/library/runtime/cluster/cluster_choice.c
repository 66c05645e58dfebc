/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/cluster/cluster_member.h"

#include <stddef.h>
#include <string.h>

#include "common/pure/assert.h"

cadre_status cluster_choice_open(const cadre_cluster_resolver *resolver,
    const struct environment *environment, struct cluster_choice *ret_choice,
    struct cadre_error *error)
{
    struct cadre_error lack = {0};
    struct cluster_choice choice = {.index = resolver->task_id};
    const char *type = resolver->task_type;
    *ret_choice = (struct cluster_choice){0};
    CADRE_TRY(cluster_spec_check(resolver->spec, type, resolver->task_id, error));
    bool ps_job = cluster_ps_job_check(resolver, &lack) == CADRE_OK;
    choice.idle_server = !ps_job && type != NULL && strcmp(type, "ps") == 0;
    if (!choice.idle_server) {
        CADRE_TRY(cluster_member_open(
            resolver, ps_job ? CLUSTER_PS_JOB : CLUSTER_PEERS, environment, &choice.member, error));
    }
    if (cluster_has_servers(resolver)) {
        cadre_status status = resolver_copy(resolver, &choice.ps_resolver, error);
        if (status != CADRE_OK) {
            cluster_member_close(choice.member);
            return status;
        }
    }
    *ret_choice = choice;
    return CADRE_OK;
}

cadre_status cluster_choice_find(const struct environment *environment,
    struct cluster_choice *ret_choice, struct cadre_error *error)
{
    cadre_cluster_resolver *resolver;
    *ret_choice = (struct cluster_choice){0};
    CADRE_TRY(cluster_find(environment, &resolver, error));
    if (resolver == NULL) {
        return CADRE_OK;
    }
    cadre_status status = cluster_choice_open(resolver, environment, ret_choice, error);
    cadre_cluster_resolver_release(resolver);
    return status;
}

cadre_status cluster_choice_make(const struct cluster_choice *choice, enum cluster_part part,
    const struct environment *environment, struct cluster_member **ret_member,
    struct cadre_error *error)
{
    CADRE_ASSERT(choice->ps_resolver != NULL);
    return cluster_member_open(choice->ps_resolver, part, environment, ret_member, error);
}

void cluster_choice_clear(struct cluster_choice *choice)
{
    cadre_cluster_resolver_release(choice->ps_resolver);
    *choice = (struct cluster_choice){0};
}
