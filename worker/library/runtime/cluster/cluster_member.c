/* SPDX-License-Identifier: Apache-2.0
 * Which task of a cluster this program is, its addresses and its key. cluster_choice.c opens a
 * member for program/; session_cluster.c and cluster_server.c read it. */
#include "worker/library/runtime/cluster/cluster_member.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/pure/assert.h"
#include "worker/library/cluster/slurm.h"

#define KEY_FILE_BYTES_MIN 32
#define KEY_FILE_BYTES_MAX (1024 * 1024)

/* The name of that task's job in the cluster, and its index there. */
static const char *job_of(
    const struct cluster_member *member, uint32_t member_id, uint32_t *ret_index)
{
    CADRE_ASSERT(member_id < member->tasks);
    if (ps_job_is_set(&member->ps_job)) {
        enum role role = ps_job_role(&member->ps_job, member_id);
        *ret_index = member_id - ps_job_first_slot(&member->ps_job, role);
        return role_name(role);
    }
    bool chief = member_id < member->chiefs;
    *ret_index = chief ? member_id : member_id - member->chiefs;
    return chief ? "chief" : "worker";
}

const char *cluster_member_address(const struct cluster_member *member, uint32_t member_id)
{
    uint32_t index;
    const struct cluster_job *job =
        cluster_spec_find(member->resolver->spec, job_of(member, member_id, &index));
    return job == NULL ? NULL : cluster_job_address(job, index);
}

const char *cluster_member_text(const struct cluster_member *member, uint32_t member_id,
    char ret_text[CLUSTER_MEMBER_TEXT_BYTES])
{
    uint32_t index;
    const char *job = job_of(member, member_id, &index);
    snprintf(ret_text, CLUSTER_MEMBER_TEXT_BYTES, "task %" PRIu32 " (%s %" PRIu32 " at %s)",
        member_id, job, index, cluster_member_address(member, member_id));
    return ret_text;
}

/* --- which task --- */

static uint32_t tasks_of(const cadre_cluster_spec *spec, const char *name)
{
    const struct cluster_job *job = cluster_spec_find(spec, name);
    return job == NULL ? 0 : job->task_count;
}

static cadre_status refuse_untyped(uint32_t tasks, const char *which, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the cluster has %" PRIu32
        " %s tasks, and it is not set which of them this program is; add its "
        "\"task\" with a \"type\" and an \"index\"",
        tasks, which);
}

bool cluster_has_servers(const cadre_cluster_resolver *resolver)
{
    return tasks_of(resolver->spec, "ps") > 0;
}

cadre_status cluster_ps_job_check(const cadre_cluster_resolver *resolver, struct cadre_error *error)
{
    uint32_t servers = tasks_of(resolver->spec, "ps");
    bool chief = tasks_of(resolver->spec, "chief") > 0;
    if (servers == 0 || (chief && tasks_of(resolver->spec, "worker") > 0)) {
        return CADRE_OK;
    }
    const char *lacks = chief ? "worker" : "chief";
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "the cluster has %" PRIu32
        " ps tasks and no %s task; with parameter servers one chief schedules what workers run, so "
        "add a job \"%s\" to the cluster of all tasks, or train on its workers alone "
        "with cadre_strategy_multi_worker_mirrored",
        servers, lacks, lacks);
}

/* The id of this program in a cluster with ps tasks. */
static cadre_status find_id_in_ps_job(const cadre_cluster_resolver *resolver,
    struct cluster_member *member, struct cadre_error *error)
{
    const char *type = resolver->task_type;
    const cadre_cluster_spec *spec = resolver->spec;
    struct ps_job *ps_job = &member->ps_job;
    *ps_job = (struct ps_job){.workers = tasks_of(spec, "worker"),
        .servers = tasks_of(spec, "ps"),
        .evaluators = tasks_of(spec, "evaluator")};
    member->chiefs = tasks_of(spec, "chief");
    member->tasks = (uint32_t)ps_job_task_count(ps_job);
    CADRE_TRY(cluster_ps_job_check(resolver, error));
    if (type == NULL || type[0] == '\0') {
        return refuse_untyped(member->tasks, "chief, worker, ps and evaluator", error);
    }
    for (enum role role = ROLE_CHIEF; role <= ROLE_EVALUATOR; role++) {
        if (strcmp(type, role_name(role)) == 0 && ps_job_role_count(ps_job, role) > 0) {
            member->role = role;
            member->member_id = ps_job_first_slot(ps_job, role) + resolver->task_id;
            return CADRE_OK;
        }
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "this task is the evaluator of a cluster with ps tasks, which has no job \"evaluator\"; "
        "add that with its address, in the cluster of all tasks");
}

/* Whether this program is a task of a job of several. */
static cadre_status find_member_id(const cadre_cluster_resolver *resolver, enum cluster_part part,
    struct cluster_member *member, bool *ret_several, struct cadre_error *error)
{
    const char *type = resolver->task_type;
    *ret_several = false;
    CADRE_TRY(cluster_spec_check(resolver->spec, type, resolver->task_id, error));
    if (part == CLUSTER_PS_JOB && cluster_has_servers(resolver)) {
        *ret_several = true;
        return find_id_in_ps_job(resolver, member, error);
    }
    if (type != NULL && strcmp(type, "evaluator") == 0) {
        return CADRE_OK;
    }
    if (type != NULL && strcmp(type, "ps") == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "this program is ps %" PRIu32
            " of the cluster, and a multi-worker mirrored strategy is of its chief and workers "
            "alone; make it in those, and return from main here (see cadre_task_type_of())",
            resolver->task_id);
    }
    member->chiefs = tasks_of(resolver->spec, "chief");
    member->tasks = member->chiefs + tasks_of(resolver->spec, "worker");
    if (member->tasks <= 1) {
        return CADRE_OK;
    }
    if (type == NULL || type[0] == '\0') {
        return refuse_untyped(member->tasks, "chief and worker", error);
    }
    *ret_several = true;
    return cluster_id_in_cluster(
        resolver->spec, type, resolver->task_id, &member->member_id, error);
}

/* Each task has an address of its own, which is also its name at the coordinator. */
static cadre_status check_addresses(const struct cluster_member *member, struct cadre_error *error)
{
    char host[CADRE_CLUSTER_ADDRESS_BYTES];
    uint16_t port;
    uint32_t index;
    for (uint32_t member_id = 0; member_id < member->tasks; member_id++) {
        const char *address = cluster_member_address(member, member_id);
        if (address == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the job '%s' of the cluster has gaps in the indices of its tasks; a cluster that "
                "trains has all from 0 on",
                job_of(member, member_id, &index));
        }
        CADRE_TRY(cluster_address_parse(address, host, &port, error));
        if (strlen(address) >= LIMIT_NAME_BYTES) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the address %s has %zu bytes; a task's has at most %d", address, strlen(address),
                LIMIT_NAME_BYTES - 1);
        }
    }
    return CADRE_OK;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Two tasks at one address would wait for each other for ever. */
static cadre_status check_distinct(const struct cluster_member *member, struct cadre_error *error)
{
    CADRE_ASSERT(member->tasks > 1);
    CADRE_FREE_AT_EXIT const char **sorted = calloc(member->tasks, sizeof *sorted);
    if (sorted == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the cluster");
    }
    for (uint32_t member_id = 0; member_id < member->tasks; member_id++) {
        sorted[member_id] = cluster_member_address(member, member_id);
    }
    qsort(sorted, member->tasks, sizeof *sorted, compare_texts);
    for (uint32_t i = 1; i < member->tasks; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "two tasks of the cluster have the address %s; give each its own", sorted[i]);
        }
    }
    return CADRE_OK;
}

/* All must have been started with the same list of tasks; the hash is compared. */
static cadre_status hash_cluster(struct cluster_member *member, struct cadre_error *error)
{
    struct sha256 hash;
    struct sha256_stream *stream;
    CADRE_TRY(sha256_open(&stream, error));
    cadre_status status = CADRE_OK;
    for (uint32_t member_id = 0; status == CADRE_OK && member_id < member->tasks; member_id++) {
        const char *address = cluster_member_address(member, member_id);
        status = sha256_add(stream, address, strlen(address) + 1, error);
    }
    if (status == CADRE_OK) {
        status = sha256_finish(stream, &hash, error);
    }
    sha256_close(stream);
    if (status == CADRE_OK) {
        memcpy(member->cluster, hash.bytes, sizeof member->cluster);
    }
    return status;
}

/* --- the key --- */

static cadre_status read_key(
    const char *path, uint8_t ret_key[GREETING_KEY_BYTES], struct cadre_error *error)
{
    char *bytes = NULL;
    size_t size = 0;
    struct sha256 hash;
    cadre_status status = file_read(path, KEY_FILE_BYTES_MAX, &bytes, &size, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "CADRE_CLUSTER_KEY_FILE");
    }
    if (size < KEY_FILE_BYTES_MIN) {
        status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the key in %s (CADRE_CLUSTER_KEY_FILE) has %zu bytes, at least %d are required; make "
            "one with `head -c 32 /dev/urandom > FILE`",
            path, size, KEY_FILE_BYTES_MIN);
    }
    if (status == CADRE_OK) {
        status = sha256_of(bytes, size, &hash, error);
    }
    if (status == CADRE_OK) {
        memcpy(ret_key, hash.bytes, GREETING_KEY_BYTES);
    }
    free(bytes);
    return status;
}

static cadre_status check_trust(struct cluster_member *member,
    const struct environment *environment, const struct cluster_address *first,
    struct cadre_error *error)
{
    bool local = cluster_address_is_loopback(&member->own) && cluster_address_is_loopback(first);
    member->keyed = environment->cluster_key_path[0] != '\0';
    if (member->keyed) {
        return read_key(environment->cluster_key_path, member->key, error);
    }
    if (local || environment->cluster_insecure) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "the cluster's tasks meet over a network (this one at %s), and have no key to authenticate "
        "each other; give all of them the same file of 32 random bytes or more in "
        "CADRE_CLUSTER_KEY_FILE, or set CADRE_CLUSTER_INSECURE=1: then any process that can reach "
        "the ports can join the job, read its variables and change them",
        cluster_member_address(member, member->member_id));
}

/* Many systems give their own name a loopback address (127.0.1.1 in /etc/hosts). Tasks of other
 * hosts could not reach that, and would wait for this task in vain. */
static cadre_status check_reach(
    const struct cluster_member *member, const char *own, struct cadre_error *error)
{
    struct in6_addr number;
    bool named = strcmp(own, "localhost") != 0 && inet_pton(AF_INET, own, &number) != 1 &&
                 inet_pton(AF_INET6, own, &number) != 1;
    for (uint32_t member_id = 0; named && member_id < member->tasks; member_id++) {
        struct cluster_address other;
        struct cadre_error ignored;
        char host[CADRE_CLUSTER_ADDRESS_BYTES];
        uint16_t port;
        CADRE_TRY(
            cluster_address_parse(cluster_member_address(member, member_id), host, &port, error));
        if (strcmp(host, own) != 0 &&
            cluster_address_resolve(host, port, &other, &ignored) == CADRE_OK &&
            !cluster_address_is_loopback(&other)) {
            char text[LIMIT_ADDRESS_BYTES];
            cluster_address_host(&member->own, text);
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "on this host its own name '%s' means %s (see /etc/hosts), where the task at %s, "
                "on another host, cannot reach this one; set the address that others use in "
                "CADRE_MESH_HOST, or write it into the cluster",
                own, text, cluster_member_address(member, member_id));
        }
    }
    return CADRE_OK;
}

/* Resolves the names; CADRE_MESH_HOST replaces this task's own. */
static cadre_status find_hosts(
    struct cluster_member *member, const struct environment *environment, struct cadre_error *error)
{
    CADRE_ASSERT(member->member_id < member->tasks);
    char host[CADRE_CLUSTER_ADDRESS_BYTES];
    uint16_t port;
    struct cluster_address first = {.bytes = 0};
    const char *address = cluster_member_address(member, member->member_id);
    CADRE_TRY(cluster_address_parse(address, host, &port, error));
    const char *own = environment->mesh_host_given ? environment->mesh_host : host;
    CADRE_TRY(cluster_address_resolve(own, port, &member->own, error));
    if (cluster_address_is_loopback(&member->own)) {
        CADRE_TRY(check_reach(member, own, error));
    }
    if (member->member_id == 0) {
        return check_trust(member, environment, &member->own, error);
    }
    /* One that cannot be resolved yet is resolved again when it is used. */
    CADRE_TRY(cluster_address_parse(cluster_member_address(member, 0), host, &port, error));
    struct cadre_error ignored;
    cluster_address_resolve(host, port, &first, &ignored);
    return check_trust(member, environment, &first, error);
}

cadre_status cluster_member_open(const cadre_cluster_resolver *resolver, enum cluster_part part,
    const struct environment *environment, struct cluster_member **ret_member,
    struct cadre_error *error)
{
    bool several = false;
    struct cluster_member *member = calloc(1, sizeof *member);
    *ret_member = NULL;
    if (member == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the cluster");
    }
    cadre_status status = find_member_id(resolver, part, member, &several, error);
    if (status == CADRE_OK && several) {
        status = resolver_copy(resolver, &member->resolver, error);
    }
    if (status != CADRE_OK || !several) {
        cluster_member_close(member);
        return status;
    }
    member->wait_us = environment->cluster_wait_us;
    member->grace_us = environment->cluster_grace_us;
    status = check_addresses(member, error);
    if (status == CADRE_OK) {
        status = check_distinct(member, error);
    }
    if (status == CADRE_OK) {
        status = hash_cluster(member, error);
    }
    if (status == CADRE_OK) {
        status = find_hosts(member, environment, error);
    }
    if (status != CADRE_OK) {
        cluster_member_close(member);
        return status;
    }
    *ret_member = member;
    return CADRE_OK;
}

void cluster_member_close(struct cluster_member *member)
{
    if (member != NULL) {
        cadre_cluster_resolver_release(member->resolver);
        explicit_bzero(member->key, sizeof member->key);
        free(member);
    }
}

cadre_status cluster_find(const struct environment *environment,
    cadre_cluster_resolver **ret_resolver, struct cadre_error *error)
{
    const char *config = getenv("TF_CONFIG");
    struct slurm_variables slurm = slurm_variables_read();
    *ret_resolver = NULL;
    if (environment->cluster_ignored) {
        return CADRE_OK;
    }
    if (config != NULL && config[0] != '\0') {
        return resolver_tf_config(config, ret_resolver, error);
    }
    if (!slurm_variables_several(&slurm)) {
        return CADRE_OK;
    }
    cadre_slurm_options options = {.port_base = environment->cluster_port};
    cadre_status status = resolver_slurm(&options, ret_resolver, error);
    return status == CADRE_OK
               ? CADRE_OK
               : cadre_error_wrap(error, status,
                     "this looks like a task of a Slurm step (CADRE_CLUSTER=none starts the "
                     "program alone)");
}
