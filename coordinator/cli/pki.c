/* SPDX-License-Identifier: Apache-2.0
 * `cadre pki init` and `issue`: the cluster's certificate authority in a folder. */
#include "coordinator/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/tls/authority.h"
#include "common/tls/pem_file.h"

#define DAY_S     86400
#define EARLIER_S 300 /* valid a little before now: clocks differ */
#define DAYS_MAX  36500

static struct tls_validity validity_of(uint64_t days)
{
    uint64_t now_s = clock_wall_us() / CADRE_US_PER_S;
    return (struct tls_validity){now_s - EARLIER_S, now_s + days * DAY_S};
}

static cadre_status pki_join(
    const char *folder, const char *name, char **ret_path, struct cadre_error *error)
{
    if (asprintf(ret_path, "%s/%s", folder, name) < 0) {
        *ret_path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory");
    }
    return CADRE_OK;
}

/* Writes DIR/NAME, whole or not at all. A file that is replaced keeps its owner, group and mode, so
 * that a daemon that could read the old key reads the new one. */
static cadre_status pki_put(
    const char *folder, const char *name, const char *text, mode_t mode, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    CADRE_FREE_AT_EXIT char *fresh = NULL;
    struct stat old;
    CADRE_TRY(pki_join(folder, name, &path, error));
    if (stat(path, &old) != 0) {
        return file_write_atomic(path, text, strlen(text), mode, error);
    }
    if (asprintf(&fresh, "%s.new", path) < 0) {
        fresh = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory");
    }
    CADRE_TRY(file_write_atomic(fresh, text, strlen(text), 0600, error));
    mode_t kept = old.st_mode & (mode | S_IRGRP) & 0777;
    bool same_owner = chown(fresh, old.st_uid, old.st_gid) == 0;
    if (chmod(fresh, same_owner ? kept : mode) != 0 || rename(fresh, path) != 0) {
        int reason = errno;
        unlink(fresh);
        return cadre_error_errno(error, reason, "cannot replace %s", path);
    }
    return folder_sync(folder, error);
}

static cadre_status refuse_old(
    const char *folder, const char *name, const char *why, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    CADRE_TRY(pki_join(folder, name, &path, error));
    if (access(path, F_OK) == 0) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS, "%s exists: %s", path, why);
    }
    return CADRE_OK;
}

/* ---- init ---- */

static cadre_status cli_pki_init(const char *folder, uint64_t days, struct cadre_error *error)
{
    static const char why[] =
        "with a new authority every certificate of the old one is worthless; choose another folder";
    struct tls_validity validity = validity_of(days);
    struct tls_key_pair ca;
    CADRE_TRY(refuse_old(folder, "ca.pem", why, error));
    CADRE_TRY(refuse_old(folder, "ca-key.pem", why, error));
    CADRE_TRY(folder_make_durable(folder, 0700, error));
    CADRE_TRY(tls_authority_make(&validity, &ca, error));
    cadre_status status = pki_put(folder, "ca-key.pem", ca.key_pem, 0600, error);
    if (status == CADRE_OK) {
        status = pki_put(folder, "ca.pem", ca.cert_pem, 0644, error);
    }
    tls_key_pair_free(&ca);
    return status;
}

static int pki_init(const struct cli *cli, int argc, char **argv)
{
    struct init_options {
        uint64_t days;
    } options = {0};
    static const struct option_row rows[] = {
        {OPTION_ROW(U64, "days", struct init_options, days, "N", "3650"), .min = 1, .max = DAYS_MAX,
            .help = "How long the authority is valid."}};
    static const struct option_table table = {.program = "cadre pki init",
        .usage = "DIR",
        .summary = "Makes the cluster's certificate authority: DIR/ca.pem, which every host gets "
                   "with its certificate, and DIR/ca-key.pem, which stays here. With this key "
                   "certificates of any role can be made: keep it off the cluster's hosts.",
        .notes = "  cadre pki init pki\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = 1};
    struct cadre_error error = {0};
    struct invocation invocation;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code)) {
        if (invocation_argument_count(&invocation) == 0) {
            code = invocation_usage(&invocation, "which folder? `cadre pki init DIR`");
        } else if (cli_pki_init(invocation_argument(&invocation, 0), options.days, &error) !=
                   CADRE_OK) {
            code = invocation_fail(&invocation, cadre_error_publish(&error));
        } else {
            const char *folder = invocation_argument(&invocation, 0);
            printf("%s/ca.pem and %s/ca-key.pem are made; next: `cadre pki issue %s coordinator "
                   "NAME -o OUT`\n",
                folder, folder, folder);
            code = invocation_end(&invocation, CLI_DONE);
        }
    }
    invocation_close(&invocation);
    return code;
}

/* ---- issue ---- */

struct issue_options {
    char *out;
    uint64_t days;
    bool force;
    struct option_list hosts;
};

static cadre_status read_authority(
    const char *folder, struct tls_key_pair *ca, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *cert = NULL;
    CADRE_FREE_AT_EXIT char *key = NULL;
    CADRE_TRY(pki_join(folder, "ca.pem", &cert, error));
    CADRE_TRY(pki_join(folder, "ca-key.pem", &key, error));
    CADRE_TRY(tls_file_read(cert, cert, false, &ca->cert_pem, error));
    return tls_file_read(key, key, true, &ca->key_pem, error);
}

static cadre_status put_pair(const struct issue_options *options, const struct tls_key_pair *pair,
    const char *ca_pem, struct cadre_error *error)
{
    CADRE_TRY(folder_make_durable(options->out, 0700, error));
    CADRE_TRY(pki_put(options->out, "key.pem", pair->key_pem, 0600, error));
    CADRE_TRY(pki_put(options->out, "cert.pem", pair->cert_pem, 0644, error));
    return pki_put(options->out, "ca.pem", ca_pem, 0644, error);
}

static cadre_status cli_pki_issue(const char *folder, const char *role, const char *name,
    const struct issue_options *options, struct cadre_error *error)
{
    static const char why[] = "--force replaces it, to renew or to change it";
    struct tls_request request = {.validity = validity_of(options->days),
        .hosts = (const char *const *)options->hosts.items,
        .host_count = options->hosts.count};
    CADRE_TRY(tls_role_check(role, &request.identity.role, error));
    CADRE_TRY(tls_name_check(name, error));
    snprintf(request.identity.name, sizeof request.identity.name, "%s", name);
    if (!options->force) {
        CADRE_TRY(refuse_old(options->out, "cert.pem", why, error));
        CADRE_TRY(refuse_old(options->out, "key.pem", why, error));
    }
    struct tls_key_pair ca = {NULL, NULL};
    struct tls_key_pair pair = {NULL, NULL};
    cadre_status status = read_authority(folder, &ca, error);
    if (status == CADRE_OK) {
        status = tls_authority_issue(&ca, &request, &pair, error);
    }
    if (status == CADRE_OK) {
        status = put_pair(options, &pair, ca.cert_pem, error);
    }
    tls_key_pair_free(&pair);
    tls_key_pair_free(&ca);
    return status;
}

static const struct option_row issue_rows[] = {
    {OPTION_ROW(TEXT, "output", struct issue_options, out, "OUT", NULL), .letter = 'o',
        .required = true,
        .help = "The folder for cert.pem, key.pem and ca.pem: what --tls-dir is given."},
    {OPTION_ROW(U64, "days", struct issue_options, days, "N", "365"), .min = 1, .max = DAYS_MAX,
        .help = "How long the certificate is valid."},
    {OPTION_ROW(LIST, "host", struct issue_options, hosts, "NAME|IP", NULL),
        .help = "A host's name or address in the certificate, for programs that check it, such as "
                "one that reads metrics. Cadre's own do not. May be given several times."},
    {OPTION_ROW(FLAG, "force", struct issue_options, force, NULL, NULL),
        .help =
            "Replace the files that are there: to renew. Running daemons load them by themselves."},
};

static int pki_issue(const struct cli *cli, int argc, char **argv)
{
    static const struct option_table table = {.program = "cadre pki issue",
        .usage = "DIR ROLE NAME",
        .summary = "Issues a certificate of the authority in DIR. Roles: coordinator; worker, "
                   "whose NAME is the worker's; client, for people: may do everything; submitter: "
                   "submits, follows and cancels jobs; viewer: reads only.",
        .notes = "  cadre pki issue pki coordinator main -o tls-main\n"
                 "  cadre pki issue pki worker host-a -o tls-host-a\n"
                 "  cadre pki issue pki client anna -o ~/.config/cadre/tls\n"
                 "  cadre pki issue pki worker host-a -o tls-host-a --force      renews it\n",
        .rows = issue_rows,
        .row_count = sizeof issue_rows / sizeof issue_rows[0],
        .positionals_max = 3};
    struct issue_options options = {0};
    struct cadre_error error = {0};
    struct invocation invocation;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code)) {
        if (invocation_argument_count(&invocation) != 3) {
            code = invocation_usage(
                &invocation, "expected `cadre pki issue DIR ROLE NAME -o OUT`; --help shows more");
        } else if (cli_pki_issue(invocation_argument(&invocation, 0),
                       invocation_argument(&invocation, 1), invocation_argument(&invocation, 2),
                       &options, &error) != CADRE_OK) {
            code = invocation_fail(&invocation, cadre_error_publish(&error));
        } else {
            printf("%s/cert.pem, key.pem and ca.pem are those of %s \"%s\" for %u days\n",
                options.out, invocation_argument(&invocation, 1),
                invocation_argument(&invocation, 2), (unsigned)options.days);
            code = invocation_end(&invocation, CLI_DONE);
        }
    }
    invocation_close(&invocation);
    return code;
}

/* ---- the verb ---- */

static const struct verb pki_verbs[] = {
    {"init", "make the certificate authority", EXIT_CODES_LOCAL, pki_init},
    {"issue", "issue or renew a certificate", EXIT_CODES_LOCAL, pki_issue},
    {"show", "show what a file is and what is wrong with it", EXIT_CODES_LOCAL, pki_show},
    {.name = NULL},
};

static const struct option_table pki_table = {.program = "cadre pki",
    .usage = "init|issue|show",
    .summary = "The certificates with which the hosts of a cluster trust each other (mutual TLS).",
    .notes = "  cadre pki init pki\n"
             "  cadre pki issue pki coordinator main -o tls-main\n"
             "  cadre pki issue pki worker host-a -o tls-host-a\n"
             "  cadre pki issue pki client anna -o tls-anna\n"
             "  cadre-coordinator --listen 0.0.0.0:7070 --tls-dir tls-main\n"
             "  cadre-worker --coordinator main-host:7070 --tls-dir tls-host-a\n"
             "  cadre --coordinator main-host:7070 --tls-dir tls-anna workers\n"};

static void print_overview(FILE *out)
{
    fprintf(out, "usage: cadre pki init|issue|show [OPTION...]\n\n%s\n\n", pki_table.summary);
    for (const struct verb *verb = pki_verbs; verb->name != NULL; verb++) {
        fprintf(out, "  %-9s %s\n", verb->name, verb->summary);
    }
    fprintf(out,
        "\nExamples:\n%s\n"
        "`cadre pki VERB --help` shows more about each.\n\n",
        pki_table.notes);
}

int verb_pki(const struct cli *cli, int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (cli->ret_shape != NULL) {
        *cli->ret_shape = (struct verb_shape){.table = &pki_table, .verbs = pki_verbs};
        return CLI_DONE;
    }
    for (const struct verb *verb = pki_verbs; verb->name != NULL; verb++) {
        if (strcmp(word, verb->name) == 0) {
            return verb->run(cli, argc - 1, argv + 1);
        }
    }
    bool asked = strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
    if (word[0] != '\0' && !asked) {
        fprintf(stderr, "cadre pki: there is no verb \"%s\": init, issue or show\n", word);
        return CLI_USAGE;
    }
    print_overview(asked ? stdout : stderr);
    exit_codes_print(cli->exit_codes, asked ? stdout : stderr);
    return asked ? CLI_DONE : CLI_USAGE;
}
