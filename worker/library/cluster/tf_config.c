/* SPDX-License-Identifier: Apache-2.0
 * Reading TF_CONFIG and specs in JSON, with jansson; for resolver.c. */
#include "worker/library/cluster/resolver.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cadre_status tf_config_load(
    const char *text, size_t bytes, const char *what, json_t **ret_root, struct cadre_error *error)
{
    *ret_root = NULL;
    if (bytes > CADRE_CLUSTER_TEXT_BYTES_MAX) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%s has %zu bytes; at most %d are read", what, bytes, CADRE_CLUSTER_TEXT_BYTES_MAX);
    }
    json_error_t why;
    *ret_root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
    if (*ret_root == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s is no proper JSON: %s (line %d, column %d)", what, why.text, why.line, why.column);
    }
    if (!json_is_object(*ret_root)) {
        json_decref(*ret_root);
        *ret_root = NULL;
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "%s is no JSON object, which begins with {", what);
    }
    return CADRE_OK;
}

/* Decimal digits without a leading zero, less than CADRE_TASK_NONE. */
static bool read_index(const char *text, uint32_t *ret_index)
{
    uint64_t index = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 10 || text[digits] != '\0' || (text[0] == '0' && digits > 1)) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        index = index * 10 + (uint64_t)(text[i] - '0');
    }
    *ret_index = (uint32_t)index;
    return index < CADRE_TASK_NONE;
}

static cadre_status tf_config_add(cadre_cluster_spec *spec, struct cluster_job *job, uint32_t index,
    const json_t *address, const char *what, struct cadre_error *error)
{
    if (!json_is_string(address)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: the address of task %" PRIu32 " of job '%s' is no string; write \"HOST:PORT\"",
            what, index, job->name);
    }
    return cluster_spec_add(spec, job, index, json_string_value(address), error);
}

static cadre_status add_indexed(cadre_cluster_spec *spec, struct cluster_job *job, json_t *tasks,
    const char *what, struct cadre_error *error)
{
    const char *key;
    json_t *address;
    cadre_status status = CADRE_OK;
    json_object_foreach(tasks, key, address)
    {
        uint32_t index;
        if (!read_index(key, &index)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s: job '%s' has a task '%.*s', which is no index; write a number such as \"0\"",
                what, job->name, CLUSTER_TEXT_SHOWN, key);
        }
        status = tf_config_add(spec, job, index, address, what, error);
        if (status != CADRE_OK) {
            break;
        }
    }
    return status;
}

static cadre_status add_jobs(
    cadre_cluster_spec *spec, json_t *cluster, const char *what, struct cadre_error *error)
{
    const char *name;
    json_t *tasks;
    json_object_foreach(cluster, name, tasks)
    {
        struct cluster_job *job;
        CADRE_TRY(cluster_spec_job(spec, name, &job, error));
        if (json_is_object(tasks)) {
            CADRE_TRY(add_indexed(spec, job, tasks, what, error));
        } else if (!json_is_array(tasks)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s: job '%s' is neither a list of addresses nor an object of them by index; write "
                "[\"HOST:PORT\", ...]",
                what, name);
        }
        for (size_t i = 0; json_is_array(tasks) && i < json_array_size(tasks); i++) {
            CADRE_TRY(tf_config_add(spec, job, (uint32_t)i, json_array_get(tasks, i), what, error));
        }
    }
    return CADRE_OK;
}

cadre_status cluster_spec_parse(
    const char *text, size_t bytes, cadre_cluster_spec **ret_spec, struct cadre_error *error)
{
    json_t *root;
    *ret_spec = NULL;
    CADRE_TRY(tf_config_load(text, bytes, "the cluster", &root, error));
    cadre_status status = cluster_spec_new(ret_spec, error);
    if (status == CADRE_OK) {
        status = add_jobs(*ret_spec, root, "the cluster", error);
    }
    if (status != CADRE_OK) {
        cadre_cluster_spec_release(*ret_spec);
        *ret_spec = NULL;
    }
    json_decref(root);
    return status;
}

/* --- TF_CONFIG --- */

static const char what_config[] = "TF_CONFIG";

static cadre_status tf_config_keep(const char *text, char **ret_text, struct cadre_error *error)
{
    *ret_text = strdup(text);
    return *ret_text != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for TF_CONFIG");
}

/* A text, or a number as text; absent and null leave NULL. */
static cadre_status read_text(
    const json_t *object, const char *key, char **ret_text, struct cadre_error *error)
{
    const json_t *value = json_object_get(object, key);
    if (value == NULL || json_is_null(value)) {
        return CADRE_OK;
    }
    if (json_is_integer(value)) {
        char digits[32];
        snprintf(digits, sizeof digits, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return tf_config_keep(digits, ret_text, error);
    }
    if (!json_is_string(value)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "TF_CONFIG: \"%s\" is no string; write one in quotes, or leave it out", key);
    }
    return tf_config_keep(json_string_value(value), ret_text, error);
}

/* A number, or a text of digits. */
static cadre_status read_task_id(
    const json_t *task, uint32_t *ret_task_id, struct cadre_error *error)
{
    const json_t *value = json_object_get(task, "index");
    json_int_t number = json_integer_value(value); /* 0 when there is no number */
    if (value == NULL || json_is_null(value)) {
        return CADRE_OK;
    }
    if (json_is_integer(value) && number >= 0 && number < (json_int_t)CADRE_TASK_NONE) {
        *ret_task_id = (uint32_t)number;
        return CADRE_OK;
    }
    if (json_is_string(value) && read_index(json_string_value(value), ret_task_id)) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "TF_CONFIG: the task's \"index\" is no whole number from 0 on; write one such as 0");
}

/* The object of that key; NULL when it is absent or null. */
static cadre_status find_object(
    const json_t *root, const char *key, json_t **ret_object, struct cadre_error *error)
{
    json_t *value = json_object_get(root, key);
    *ret_object = value == NULL || json_is_null(value) ? NULL : value;
    return *ret_object == NULL || json_is_object(value)
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "TF_CONFIG: \"%s\" is no object, which begins with {", key);
}

static cadre_status read_config(
    const json_t *root, struct tf_config *config, struct cadre_error *error)
{
    json_t *cluster;
    json_t *task;
    CADRE_TRY(find_object(root, "cluster", &cluster, error));
    CADRE_TRY(find_object(root, "task", &task, error));
    CADRE_TRY(cluster_spec_new(&config->spec, error));
    if (cluster != NULL) {
        CADRE_TRY(add_jobs(config->spec, cluster, what_config, error));
    }
    if (task != NULL) {
        CADRE_TRY(read_text(task, "type", &config->task_type, error));
        CADRE_TRY(read_task_id(task, &config->task_id, error));
    }
    return CADRE_OK;
}

cadre_status tf_config_parse(
    const char *text, size_t bytes, struct tf_config *ret_config, struct cadre_error *error)
{
    json_t *root;
    *ret_config = (struct tf_config){.task_id = CADRE_TASK_NONE};
    CADRE_TRY(tf_config_load(text, bytes, what_config, &root, error));
    cadre_status status = read_config(root, ret_config, error);
    json_decref(root);
    return status;
}

void tf_config_clear(struct tf_config *config)
{
    cadre_cluster_spec_release(config->spec);
    free(config->task_type);
    *config = (struct tf_config){.task_id = CADRE_TASK_NONE};
}

/* --- public --- */

cadre_status cadre_cluster_spec_from_json(const char *text, cadre_cluster_spec **ret_spec)
{
    struct cadre_error error = {0};
    cadre_status status = cluster_require(text, "cadre_cluster_spec_from_json", "text", &error);
    if (status == CADRE_OK) {
        status = cluster_require(ret_spec, "cadre_cluster_spec_from_json", "ret_spec", &error);
    }
    if (status == CADRE_OK) {
        status = cluster_spec_parse(text, strlen(text), ret_spec, &error);
    }
    return cluster_api_return(status, &error);
}
