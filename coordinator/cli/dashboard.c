/* SPDX-License-Identifier: Apache-2.0
 * `cadre dashboard`: the address of the page in a browser, with a token of the caller's role. */
#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/tcp_address.h"
#include "coordinator/cli/cli.h"
#include "coordinator/cli/render/json.h"

#define URL_BYTES 640
#define OPENER    "xdg-open"

struct dashboard_options {
    struct cli_common common;
    bool print;
    bool open;
};

/* "127.0.0.1:9464" in two. */
struct dashboard_host {
    char host[256];
    const char *port;
};

static bool is_loopback(const char *address)
{
    static const char *const prefixes[] = {"127.", "localhost:", "[::1]:", "unix:"};
    bool is = false;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        is = is || strncmp(address, prefixes[i], strlen(prefixes[i])) == 0;
    }
    return is;
}

static struct dashboard_host split_host(const char *address)
{
    const char *colon = strrchr(address, ':');
    struct dashboard_host split = {.port = colon != NULL ? colon + 1 : ""};
    snprintf(split.host, sizeof split.host, "%.*s",
        colon != NULL ? (int)(colon - address) : (int)strlen(address), address);
    return split;
}

/* The token is behind the "#": a browser sends that to no server. A page with TLS that is served at
 * all addresses of its host gets the one at which the coordinator was reached. */
static void make_url(const char *coordinator, const cadre_login *login, char url[URL_BYTES])
{
    struct tcp_address page;
    if (!login->http_tls && login->token[0] == '\0') {
        snprintf(url, URL_BYTES, "http://%s/", login->http);
    } else if (!login->http_tls) {
        snprintf(url, URL_BYTES, "http://%s/#token=%s", login->http, login->token);
    } else if (!tcp_address_parse(login->http, &page) || page.scope != TCP_SCOPE_ANY) {
        snprintf(url, URL_BYTES, "https://%s/", login->http);
    } else if (is_loopback(coordinator)) {
        snprintf(url, URL_BYTES, "https://localhost:%d/", page.port);
    } else {
        struct dashboard_host host = split_host(coordinator);
        snprintf(url, URL_BYTES, "https://%s:%d/", host.host, page.port);
    }
}

/* It becomes a part of an HTML page and of commands to be pasted. */
static bool url_is_plain(const char *url)
{
    return url[strspn(url, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/.[]#=~_"
                           "-")] == '\0';
}

/* What a person has to know of the address. */
static void print_notes(const struct invocation *invocation, const cadre_login *login)
{
    const char *coordinator = invocation_address(invocation);
    char date[64];
    time_t seconds = (time_t)(login->expires_us / CADRE_US_PER_S);
    struct tm broken;
    if (login->http_tls) {
        fputs("The browser has to show a certificate of the cluster. It imports yours from:\n"
              "  openssl pkcs12 -export -in cert.pem -inkey key.pem -certfile ca.pem -out me.p12\n",
            stderr);
        return;
    }
    if (login->token[0] == '\0') {
        fputs("It has no token: every process of the coordinator's host may use the page and all\n"
              "else there, because gRPC listens on a TCP port of loopback without TLS.\n",
            stderr);
    } else {
        localtime_r(&seconds, &broken);
        strftime(date, sizeof date, "%Y-%m-%d %H:%M", &broken);
        fprintf(stderr,
            "It has a token with your rights (%s) until %s, or until the coordinator is\n"
            "started again: give it to no one else.\n",
            login->role, date);
    }
    if (!is_loopback(coordinator)) {
        struct dashboard_host page = split_host(login->http);
        struct dashboard_host host = split_host(coordinator);
        fprintf(stderr,
            "The coordinator serves the page on its own host only. Bring it to this one first:\n"
            "  ssh -N -L %s:%s:%s %s\n",
            page.port, page.host, page.port, host.host);
    }
}

static json_t *json_of_login(const cadre_login *login, const char *url)
{
    json_t *json = json_object();
    json_object_set_new(json, "url", json_string(url));
    json_object_set_new(json, "http", json_string(login->http));
    json_object_set_new(json, "tls", json_boolean(login->http_tls));
    json_object_set_new(json, "role", json_string(login->role));
    json_object_set_new(json, "name", json_string(login->name));
    json_object_set_new(json, "token", json_string(login->token));
    json_object_set_new(json, "expires_us", json_integer((json_int_t)login->expires_us));
    return json;
}

/* The browser is given a file that leads to the URL, readable for its owner only: all users of the
 * host can see a program's arguments, and the URL has the token. */
static cadre_status write_page(const char *url, char **ret_path, struct cadre_error *error)
{
    const char *folder = getenv("XDG_RUNTIME_DIR");
    CADRE_FREE_AT_EXIT char *text = NULL;
    if (folder == NULL || folder[0] == '\0') {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "--open: XDG_RUNTIME_DIR is not set, so this is no session with a browser: open the "
            "address that is printed in one");
    }
    int size = asprintf(&text,
        "<!doctype html><title>Cadre</title><meta http-equiv=\"refresh\" content=\"0; url=%s\">\n",
        url);
    if (size < 0 || asprintf(ret_path, "%s/cadre-dashboard.html", folder) < 0) {
        *ret_path = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to open the browser");
    }
    return file_write_atomic(*ret_path, text, (size_t)size, 0600, error);
}

static cadre_status open_browser(const char *url, struct cadre_error *error)
{
    extern char **environ;
    CADRE_FREE_AT_EXIT char *path = NULL;
    CADRE_TRY(write_page(url, &path, error));
    char opener[] = OPENER;
    char *const argv[] = {opener, path, NULL};
    pid_t pid = 0;
    int status = 0;
    int failed = posix_spawnp(&pid, opener, NULL, NULL, argv, environ);
    if (failed != 0) {
        return cadre_error_errno(error, failed,
            "--open: %s, which opens the browser, cannot be started: install xdg-utils, or open "
            "the address that is printed",
            opener);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return cadre_error_set(error, CADRE_UNAVAILABLE,
            "--open: %s opened no browser: open the address that is printed", opener);
    }
    return CADRE_OK;
}

static int dashboard_show(const struct invocation *invocation,
    const struct dashboard_options *options, const char *coordinator, const cadre_login *login)
{
    char url[URL_BYTES];
    if (login->http[0] == '\0') {
        return invocation_fail_with(invocation, CADRE_FAILED_PRECONDITION,
            "the coordinator serves no page: start it with --http 127.0.0.1:9464, or with "
            "CADRE_COORDINATOR_HTTP set to that");
    }
    make_url(coordinator, login, url);
    if (!url_is_plain(url)) {
        return invocation_fail_with(invocation, CADRE_DATA_LOSS,
            "the coordinator's answer has an address or token that cannot be one: ask its operator "
            "what --http is");
    }
    if (options->common.json) {
        if (!json_print(json_of_login(login, url), stdout)) {
            return invocation_print_status(invocation, false);
        }
    } else {
        puts(url);
        fflush(stdout);
    }
    if (!options->print && !options->common.json) {
        print_notes(invocation, login);
    }
    struct cadre_error error = {0};
    if (options->open && open_browser(url, &error) != CADRE_OK) {
        return invocation_fail_with(invocation, error.code, error.text);
    }
    return CLI_DONE;
}

int verb_dashboard(const struct cli *cli, int argc, char **argv)
{
    static const struct option_row rows[] = {
        CLI_COORDINATOR_ROW,
        CLI_JSON_ROW("Print JSON instead; its keys are stable."),
        {OPTION_ROW(FLAG, "print", struct dashboard_options, print, NULL, NULL),
            .help = "Print the address only."},
        {OPTION_ROW(FLAG, "open", struct dashboard_options, open, NULL, NULL),
            .help = "Open it in the browser of this session, too (xdg-open)."},
    };
    static const struct option_table table = {.program = "cadre dashboard",
        .summary =
            "Prints the address of the coordinator's page for a browser: workers, queue, jobs with "
            "their curves, history and logs. The address has a token with your rights: those of "
            "your certificate's role, and all on a Unix socket. It is valid for 12 hours, no "
            "longer than your certificate, and until the coordinator is started again. Where "
            "every process of the coordinator's host may do everything there is none. The "
            "coordinator's --http serves the page.",
        .notes = "  cadre dashboard\n"
                 "  cadre dashboard --open\n"
                 "  cadre -c cluster:9460 --tls-dir ~/cadre dashboard     from another host\n"
                 "\n"
                 "The token is behind the #, which a browser sends to no server; the page takes\n"
                 "it out of the address. A script sends \"Authorization: Bearer TOKEN\".\n",
        .rows = rows,
        .row_count = sizeof rows / sizeof rows[0],
        .positionals_max = 0};
    struct dashboard_options options = {0};
    struct invocation invocation;
    cadre_client *client = NULL;
    cadre_login *login = NULL;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &options, argc, argv, &code) &&
        invocation_connect(&invocation, NULL, &client, &code)) {
        cadre_status status = cadre_client_login(client, &login, NULL);
        code = status == CADRE_OK
                   ? dashboard_show(&invocation, &options, cadre_client_address(client), login)
                   : invocation_fail(&invocation, status);
        code = invocation_end(&invocation, code);
    }
    cadre_result_release(login);
    cadre_client_release(client);
    invocation_close(&invocation);
    return code;
}
