/* SPDX-License-Identifier: Apache-2.0 */
#include "store_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *find_variable(void *user, const char *name)
{
    const struct rig *rig = user;
    for (size_t i = 0; i < RIG_VARIABLES && rig->set[i].name != NULL; i++) {
        if (strcmp(rig->set[i].name, name) == 0) {
            return rig->set[i].value;
        }
    }
    if (strcmp(name, "AWS_ENDPOINT_URL_S3") == 0) {
        return rig->url;
    }
    if (strcmp(name, "AWS_ACCESS_KEY_ID") == 0) {
        return "AKTEST";
    }
    if (strcmp(name, "AWS_EC2_METADATA_DISABLED") == 0) {
        return "true";
    }
    return strcmp(name, "AWS_SECRET_ACCESS_KEY") == 0 ? "a/secret+key" : NULL;
}

void rig_start(struct rig *rig, const char *cert, const char *key)
{
    const char *argv[] = {PYTHON3, FAKE_S3, NULL, NULL, NULL, NULL};
    if (cert != NULL) {
        argv[2] = "--tls";
        argv[3] = cert;
        argv[4] = key;
    }
    const struct program_spec spec = {.argv = argv};
    *rig = (struct rig){.variables = {.find = find_variable, .user = rig}};
    program_start(&spec, &rig->server);
    assert_true(program_wait_text(&rig->server, false, "\n", PROGRAM_DEADLINE_US));
    char text[16] = "";
    assert_true(pread(rig->server.out_fd, text, sizeof text - 1, 0) > 0);
    rig->port = (int)strtol(text, NULL, 10);
    assert_true(rig->port > 0);
    snprintf(
        rig->url, sizeof rig->url, "http%s://127.0.0.1:%d", cert != NULL ? "s" : "", rig->port);
}

void rig_stop(struct rig *rig)
{
    program_close(&rig->server);
}

struct storage_client *rig_client(struct rig *rig, const struct storage_options *options)
{
    struct storage_options all = options != NULL ? *options : (struct storage_options){0};
    struct cadre_error error;
    struct storage_client *client = NULL;
    all.variables = &rig->variables;
    all.deadline_us = all.deadline_us != 0 ? all.deadline_us : 20000000;
    assert_ok(storage_client_open(&all, &client, &error), &error);
    return client;
}

void rig_set(struct rig *rig, const char *name, const char *value)
{
    size_t i = 0;
    while (i < RIG_VARIABLES && rig->set[i].name != NULL && strcmp(rig->set[i].name, name) != 0) {
        i++;
    }
    assert_true(i < RIG_VARIABLES);
    rig->set[i].name = name;
    rig->set[i].value = value;
}

/* --- orders --- */

static int rig_connect(const struct rig *rig)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)rig->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

const char *rig_order(struct rig *rig, const char *method, const char *order, const char *body)
{
    static char text[65536];
    int fd = rig_connect(rig);
    size_t body_bytes = body != NULL ? strlen(body) : 0;
    int length = snprintf(text, sizeof text,
        "%s /-/%s HTTP/1.1\r\nHost: rig\r\nContent-Length: %zu\r\n\r\n%s", method, order,
        body_bytes, body != NULL ? body : "");
    assert_true(length > 0 && (size_t)length < sizeof text);
    assert_int_equal(send(fd, text, (size_t)length, MSG_NOSIGNAL), length);
    size_t used = 0;
    ssize_t count = 0;
    while ((count = recv(fd, text + used, sizeof text - 1 - used, 0)) > 0) {
        used += (size_t)count;
    }
    close(fd);
    text[used] = '\0';
    if (strncmp(text, "HTTP/1.1 200", 12) != 0) {
        fail_msg("%s %s: %s", method, order, text);
    }
    const char *answer = strstr(text, "\r\n\r\n");
    assert_non_null(answer);
    return answer + 4;
}

/* JSON with ' for ". */
static void order_json(struct rig *rig, const char *order, const char *format, const char *inside)
{
    char json[4096];
    int length = snprintf(json, sizeof json, format, inside);
    assert_true(length > 0 && (size_t)length < sizeof json);
    for (char *at = json; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    (void)rig_order(rig, "POST", order, json);
}

void rig_rule(struct rig *rig, const char *rule)
{
    order_json(rig, "rules", "[{%s}]", rule);
}

void rig_setting(struct rig *rig, const char *setting)
{
    order_json(rig, "settings", "{%s}", setting);
}

unsigned rig_count(struct rig *rig, const char *request)
{
    char order[256];
    size_t used = (size_t)snprintf(order, sizeof order, "count?");
    for (const char *at = request; *at != '\0' && used + 4 < sizeof order; at++) {
        used +=
            (size_t)snprintf(order + used, sizeof order - used, *at == ' ' ? "%%%02X" : "%c", *at);
    }
    return (unsigned)strtoul(rig_order(rig, "GET", order, NULL), NULL, 10);
}

void rig_reset(struct rig *rig)
{
    memset(rig->set, 0, sizeof rig->set);
    (void)rig_order(rig, "POST", "reset", NULL);
}
