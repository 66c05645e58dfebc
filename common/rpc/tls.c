/* SPDX-License-Identifier: Apache-2.0
 * The files of TLS: read, checked for changes each second, warned of before they expire. Used by
 * server.c, channel.c and the daemons through tls.h. */
#include "common/rpc/tls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <uv.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/pure/assert.h"
#include "common/rpc/tls_state.h"
#include "common/tls/report.h"

#define CHECK_EVERY_MS 1000
#define HOUR_S         3600
#define DAY_S          (24 * HOUR_S)
#define FILES          3

/* Differs when a file was replaced or written to. */
struct stamp {
    uint64_t inode, size_bytes, written_ns, changed_ns;
};

struct rpc_tls {
    unsigned users; /* the open object, its timer, servers, channels */
    uv_timer_t timer;
    char *paths[FILES]; /* certificate, key, CA */
    struct stamp loaded[FILES];
    struct stamp seen[FILES]; /* at the last check */
    enum tls_role role;
    bool foreign;
    struct tls_material material;
    uint64_t generation;
    uint64_t warned_us; /* when expiry was last reported; 0: never */
    rpc_tls_event_fn *on_event;
    void *user;
};

static void report_event(struct rpc_tls *tls, enum rpc_tls_event event, const char *text)
{
    if (tls->on_event != NULL) {
        tls->on_event(event, text, tls->user);
    }
}

void rpc_tls_log(enum rpc_tls_event event, const char *text, void *user)
{
    static const struct {
        enum log_level level;
        const char *message;
    } rows[] = {
        [RPC_TLS_RELOADED] = {LOG_LEVEL_INFO, "new files are in use"},
        [RPC_TLS_RELOAD_FAILED] = {LOG_LEVEL_ERROR,
            "the new files are wrong: the old ones stay in use"},
        [RPC_TLS_EXPIRES] = {LOG_LEVEL_WARNING, "the certificate expires soon"},
        [RPC_TLS_EXPIRED] = {LOG_LEVEL_ERROR, "the certificate has expired"},
        [RPC_TLS_REFUSED] = {LOG_LEVEL_WARNING, "a connection is refused"},
    };
    (void)user;
    log_event(rows[event].level, "tls", rows[event].message, LOG_STR("reason", text));
}

void rpc_tls_report_refused(struct rpc_tls *tls, const char *text)
{
    report_event(tls, RPC_TLS_REFUSED, text);
}

/* ---- the files ---- */

static void tls_look(const struct rpc_tls *tls, struct stamp ret_stamps[FILES])
{
    memset(ret_stamps, 0, FILES * sizeof *ret_stamps);
    for (size_t i = 0; i < FILES; i++) {
        struct stat info;
        if (tls->paths[i] != NULL && stat(tls->paths[i], &info) == 0) {
            ret_stamps[i] = (struct stamp){.inode = info.st_ino,
                .size_bytes = (uint64_t)info.st_size,
                .written_ns =
                    (uint64_t)info.st_mtim.tv_sec * 1000000000U + (uint64_t)info.st_mtim.tv_nsec,
                .changed_ns =
                    (uint64_t)info.st_ctim.tv_sec * 1000000000U + (uint64_t)info.st_ctim.tv_nsec};
        }
    }
}

static cadre_status check_identity(
    const struct rpc_tls *tls, const struct tls_identity *identity, struct cadre_error *error)
{
    if (tls->role != TLS_ROLE_NONE && identity->role != tls->role) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the TLS certificate %s is of the role %s (\"%s\"), and this program needs one of the "
            "role %s: `cadre pki issue DIR %s NAME -o OUT`",
            tls->paths[0], tls_role_name(identity->role), identity->name, tls_role_name(tls->role),
            tls_role_name(tls->role));
    }
    const struct tls_identity *old = &tls->material.identity;
    if (tls->generation > 0 &&
        (identity->role != old->role || strcmp(identity->name, old->name) != 0)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the TLS certificate %s is now that of %s \"%s\", and this program is %s \"%s\" until "
            "it is started again",
            tls->paths[0], tls_role_name(identity->role), identity->name, tls_role_name(old->role),
            old->name);
    }
    return CADRE_OK;
}

static cadre_status tls_load(struct rpc_tls *tls, struct cadre_error *error)
{
    struct tls_files files = {tls->paths[0], tls->paths[1], tls->paths[2]};
    struct tls_material material;
    tls_look(tls, tls->loaded);
    memcpy(tls->seen, tls->loaded, sizeof tls->seen);
    CADRE_TRY(
        (tls->foreign ? tls_material_read_foreign : tls_material_read)(&files, &material, error));
    cadre_status status = tls->foreign ? CADRE_OK : check_identity(tls, &material.identity, error);
    if (status != CADRE_OK) {
        tls_material_free(&material);
        return status;
    }
    tls_material_free(&tls->material);
    tls->material = material;
    tls->generation++;
    tls->warned_us = 0;
    return CADRE_OK;
}

/* The file that messages name first: without an own certificate the CA's. */
static const char *leading_path(const struct rpc_tls *tls)
{
    return tls->paths[0] != NULL ? tls->paths[0] : tls->paths[2];
}

void rpc_tls_reload(struct rpc_tls *tls)
{
    struct cadre_error error = {0};
    if (tls == NULL) {
        return;
    }
    if (tls_load(tls, &error) != CADRE_OK) {
        report_event(tls, RPC_TLS_RELOAD_FAILED, error.text);
        return;
    }
    char text[CADRE_ERROR_TEXT_BYTES];
    if (tls->foreign) {
        snprintf(text, sizeof text, "%s, valid for %" PRId64 " days", leading_path(tls),
            rpc_tls_expires_in_s(tls) / DAY_S);
    } else {
        snprintf(text, sizeof text, "%s of %s \"%s\", valid for %" PRId64 " days", tls->paths[0],
            tls_role_name(tls->material.identity.role), tls->material.identity.name,
            rpc_tls_expires_in_s(tls) / DAY_S);
    }
    report_event(tls, RPC_TLS_RELOADED, text);
}

/* Files that are changed one after the other are read when they did not change between two
 * checks, so that a new certificate is not tried with the old key. */
static void check_for_changes(struct rpc_tls *tls)
{
    struct stamp now[FILES];
    tls_look(tls, now);
    if (memcmp(now, tls->loaded, sizeof now) != 0 && memcmp(now, tls->seen, sizeof now) == 0) {
        rpc_tls_reload(tls);
    } else {
        memcpy(tls->seen, now, sizeof now);
    }
}

/* ---- expiry ---- */

int64_t rpc_tls_expires_in_s(const struct rpc_tls *tls)
{
    return (int64_t)tls->material.not_after_s - (int64_t)(clock_wall_us() / CADRE_US_PER_S);
}

static void check_expiry(struct rpc_tls *tls)
{
    int64_t left_s = rpc_tls_expires_in_s(tls);
    uint64_t now_us = clock_monotonic_us();
    uint64_t pause_s = left_s < DAY_S ? HOUR_S : DAY_S;
    if (left_s >= (int64_t)TLS_EXPIRY_WARNING_S ||
        (tls->warned_us != 0 && now_us - tls->warned_us < pause_s * CADRE_US_PER_S)) {
        return;
    }
    tls->warned_us = now_us;
    char text[CADRE_ERROR_TEXT_BYTES];
    if (left_s <= 0) {
        snprintf(text, sizeof text,
            "%s, or its CA, has expired: no peer accepts it any more; issue a new one into the "
            "same folder, it is taken up without a restart",
            leading_path(tls));
    } else {
        snprintf(text, sizeof text,
            "%s, or its CA, expires in %" PRId64 " %s: issue a new one into the same folder, it is "
            "taken up without a restart",
            leading_path(tls),
            left_s >= 2 * DAY_S ? left_s / DAY_S : (left_s + HOUR_S - 1) / HOUR_S,
            left_s >= 2 * DAY_S ? "days" : "hours");
    }
    report_event(tls, left_s <= 0 ? RPC_TLS_EXPIRED : RPC_TLS_EXPIRES, text);
}

static void on_timer(uv_timer_t *timer)
{
    struct rpc_tls *tls = timer->data;
    check_for_changes(tls);
    check_expiry(tls);
}

/* ---- opening and closing ---- */

void rpc_tls_ref(struct rpc_tls *tls)
{
    if (tls != NULL) {
        tls->users++;
    }
}

void rpc_tls_unref(struct rpc_tls *tls)
{
    if (tls == NULL || --tls->users > 0) {
        return;
    }
    for (size_t i = 0; i < FILES; i++) {
        free(tls->paths[i]);
    }
    tls_material_free(&tls->material);
    free(tls);
}

static const char *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? text : NULL;
}

static cadre_status choose_paths(
    struct rpc_tls *tls, const struct rpc_tls_options *options, struct cadre_error *error)
{
    static const char *const names[FILES] = {"cert.pem", "key.pem", "ca.pem"};
    static const char *const flags[FILES] = {"--tls-cert", "--tls-key", "--tls-ca"};
    const char *given[FILES] = {
        text_or_null(options->cert), text_or_null(options->key), text_or_null(options->ca)};
    const char *dir = text_or_null(options->dir);
    for (size_t i = 0; i < FILES; i++) {
        if (given[i] == NULL && dir == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s is missing: TLS needs --tls-cert, --tls-key and --tls-ca, or --tls-dir with "
                "all three files in it",
                flags[i]);
        }
        int length = given[i] != NULL ? asprintf(&tls->paths[i], "%s", given[i])
                                      : asprintf(&tls->paths[i], "%s/%s", dir, names[i]);
        if (length < 0) {
            tls->paths[i] = NULL;
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for TLS");
        }
    }
    return CADRE_OK;
}

/* The paths as they are given; a certificate has its key. */
static cadre_status choose_foreign_paths(
    struct rpc_tls *tls, const struct rpc_tls_options *options, struct cadre_error *error)
{
    const char *given[FILES] = {
        text_or_null(options->cert), text_or_null(options->key), text_or_null(options->ca)};
    if ((given[0] == NULL) != (given[1] == NULL)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the certificate %s has no %s: give both files, or neither",
            given[0] != NULL ? given[0] : given[1], given[0] != NULL ? "key" : "certificate");
    }
    for (size_t i = 0; i < FILES; i++) {
        tls->paths[i] = given[i] != NULL ? strdup(given[i]) : NULL;
        if (given[i] != NULL && tls->paths[i] == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for TLS");
        }
    }
    return CADRE_OK;
}

static void timer_closed(uv_handle_t *handle)
{
    rpc_tls_unref(handle->data);
}

static cadre_status tls_open(struct rpc_loop *loop, const struct rpc_tls *first,
    const struct rpc_tls_options *options, struct rpc_tls **ret_tls, struct cadre_error *error)
{
    struct rpc_tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for TLS");
    }
    *tls = *first;
    cadre_status status = (tls->foreign ? choose_foreign_paths : choose_paths)(tls, options, error);
    if (status == CADRE_OK) {
        status = tls_load(tls, error);
    }
    if (status != CADRE_OK) {
        rpc_tls_unref(tls);
        return status;
    }
    int failed = uv_timer_init(rpc_loop_uv(loop), &tls->timer);
    CADRE_ASSERT(failed == 0);
    tls->timer.data = tls;
    uv_timer_start(&tls->timer, on_timer, 0, CHECK_EVERY_MS);
    uv_unref((uv_handle_t *)&tls->timer);
    rpc_tls_ref(tls);
    *ret_tls = tls;
    return CADRE_OK;
}

cadre_status rpc_tls_open(struct rpc_loop *loop, const struct rpc_tls_options *options,
    enum tls_role role, rpc_tls_event_fn *on_event, void *user, struct rpc_tls **ret_tls,
    struct cadre_error *error)
{
    *ret_tls = NULL;
    if (text_or_null(options->dir) == NULL && text_or_null(options->cert) == NULL &&
        text_or_null(options->key) == NULL && text_or_null(options->ca) == NULL) {
        return CADRE_OK;
    }
    const struct rpc_tls first = {.users = 1, .role = role, .on_event = on_event, .user = user};
    return tls_open(loop, &first, options, ret_tls, error);
}

cadre_status rpc_tls_open_foreign(struct rpc_loop *loop, const struct rpc_tls_options *options,
    rpc_tls_event_fn *on_event, void *user, struct rpc_tls **ret_tls, struct cadre_error *error)
{
    *ret_tls = NULL;
    if (text_or_null(options->ca) == NULL) {
        return text_or_null(options->cert) == NULL && text_or_null(options->key) == NULL
                   ? CADRE_OK
                   : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                         "a certificate is given, but no CA of the servers: TLS needs both");
    }
    const struct rpc_tls first = {.users = 1, .foreign = true, .on_event = on_event, .user = user};
    return tls_open(loop, &first, options, ret_tls, error);
}

void rpc_tls_close(struct rpc_tls *tls)
{
    if (tls != NULL) {
        tls->on_event = NULL;
        uv_close((uv_handle_t *)&tls->timer, timer_closed);
        rpc_tls_unref(tls);
    }
}

const struct tls_material *rpc_tls_material(const struct rpc_tls *tls)
{
    return &tls->material;
}

uint64_t rpc_tls_generation(const struct rpc_tls *tls)
{
    return tls->generation;
}

bool rpc_tls_is_foreign(const struct rpc_tls *tls)
{
    return tls->foreign;
}

const char *rpc_tls_cert_file(const struct rpc_tls *tls)
{
    return tls->paths[0] != NULL ? tls->paths[0] : "";
}

const char *rpc_tls_ca_file(const struct rpc_tls *tls)
{
    return tls->paths[2];
}
