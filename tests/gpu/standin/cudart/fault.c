/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: calls are counted, and some fail when a test sets it. */
#include "tests/gpu/standin/cudart/cudart_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rule {
    char name[64];
    uint64_t left; /* calls until it fails */
    int error;
    bool on;
    bool all;
};

#define RULES_MAX 64

static pthread_mutex_t fault_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct rule rules[RULES_MAX];
static size_t rule_count;
static struct standin_site *sites;
static bool environment_read;

static void add(const char *name, size_t name_bytes, uint64_t nth, int error, bool all)
{
    if (rule_count == RULES_MAX || name_bytes >= sizeof(rules[0].name) || nth == 0) {
        fprintf(stderr, "stand-in: cannot take the fault \"%s\"\n", name);
        abort();
    }
    struct rule *rule = &rules[rule_count++];
    *rule = (struct rule){.left = nth, .error = error, .on = true, .all = all};
    memcpy(rule->name, name, name_bytes);
}

/* CADRE_STANDIN_FAIL: name:nth[+]:error, more after a comma. */
static void read_environment(void)
{
    environment_read = true;
    const char *text = getenv("CADRE_STANDIN_FAIL");
    while (text != NULL && *text != '\0') {
        size_t name_bytes = strcspn(text, ":,");
        char *end = NULL;
        if (text[name_bytes] != ':') {
            fprintf(stderr, "stand-in: CADRE_STANDIN_FAIL: \"%s\" is not name:nth:error\n", text);
            abort();
        }
        uint64_t nth = strtoull(text + name_bytes + 1, &end, 10);
        bool all = *end == '+';
        end += all;
        int error = *end == ':' ? (int)strtol(end + 1, &end, 10) : (int)cudaErrorUnknown;
        add(text, name_bytes, nth, error, all);
        text = *end == ',' ? end + 1 : NULL;
    }
}

int standin_count_call(struct standin_site *site)
{
    int error = 0;
    pthread_mutex_lock(&fault_mutex);
    if (!environment_read) {
        read_environment();
    }
    if (!site->listed) {
        site->listed = true;
        site->next = sites;
        sites = site;
    }
    site->calls++;
    for (size_t i = 0; i < rule_count; i++) {
        struct rule *rule = &rules[i];
        if (rule->on && strcmp(rule->name, site->name) == 0 && --rule->left == 0) {
            error = rule->error;
            rule->on = rule->all;
            rule->left = 1;
        }
    }
    pthread_mutex_unlock(&fault_mutex);
    return error;
}

void standin_fail(const char *name, uint64_t nth, int error)
{
    pthread_mutex_lock(&fault_mutex);
    add(name, strlen(name), nth, error, false);
    pthread_mutex_unlock(&fault_mutex);
}

void standin_fail_from(const char *name, uint64_t nth, int error)
{
    pthread_mutex_lock(&fault_mutex);
    add(name, strlen(name), nth, error, true);
    pthread_mutex_unlock(&fault_mutex);
}

void standin_heal(void)
{
    pthread_mutex_lock(&fault_mutex);
    environment_read = true;
    rule_count = 0;
    pthread_mutex_unlock(&fault_mutex);
    for (int i = 0; i < standin_device_count(); i++) {
        struct standin_device *device = standin_device_at(i);
        pthread_mutex_lock(&standin_mutex);
        for (struct CUstream_st *stream = device->streams;
             stream != NULL && device->error != cudaSuccess; stream = stream->next) {
            stream->lost = stream->posted; /* no thread waits for it, nor keeps its memory */
        }
        device->error = cudaSuccess;
        pthread_mutex_unlock(&standin_mutex);
    }
    (void)cudaGetLastError();
}

uint64_t standin_calls(const char *name)
{
    uint64_t calls = 0;
    pthread_mutex_lock(&fault_mutex);
    for (const struct standin_site *site = sites; site != NULL; site = site->next) {
        calls += strcmp(site->name, name) == 0 ? site->calls : 0;
    }
    pthread_mutex_unlock(&fault_mutex);
    return calls;
}
