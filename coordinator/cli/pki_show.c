/* SPDX-License-Identifier: Apache-2.0
 * `cadre pki show`: what PEM files are, and what is wrong with them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/tls/report.h"
#include "coordinator/cli/cli.h"

#define DAY_S  86400
#define SOON_S (30 * DAY_S)

static void print_certificate(const struct tls_certificate_info *facts)
{
    char from[TLS_TIME_BYTES];
    char until[TLS_TIME_BYTES];
    int64_t left_s = (int64_t)facts->not_after_s - (int64_t)(clock_wall_us() / CADRE_US_PER_S);
    tls_time_text(facts->not_before_s, from);
    tls_time_text(facts->not_after_s, until);
    if (facts->is_ca) {
        printf("  authority    %s\n", facts->subject);
    } else {
        printf("  role         %s\n  name         %s\n  issued by    %s\n",
            tls_role_name(facts->identity.role), facts->identity.name, facts->issuer);
    }
    printf("  valid        %s to %s", from, until);
    if (left_s <= 0) {
        printf(", expired\n");
    } else {
        printf(", %" PRId64 " days left%s\n", left_s / DAY_S,
            left_s < SOON_S ? ": issue a new one soon" : "");
    }
    printf("  fingerprint  %s\n", facts->fingerprint);
}

/* False: something is wrong with it. */
static bool pki_show_show(const char *path)
{
    struct tls_report report;
    struct cadre_error error = {0};
    if (tls_report_file(path, &report, &error) != CADRE_OK) {
        printf("%s\n  wrong        %s\n", path, error.text);
        tls_report_free(&report);
        return false;
    }
    printf("%s\n", path);
    if (report.has_key) {
        printf("  private key\n");
    }
    for (size_t i = 0; i < report.count; i++) {
        print_certificate(&report.certificates[i]);
    }
    bool good = report.fault[0] == '\0';
    if (!good) {
        printf("  wrong        %s\n", report.fault);
    }
    tls_report_free(&report);
    return good;
}

/* Of a folder, shows its files of the usual names. */
static bool show_all(const char *path)
{
    static const char *const names[] = {"cert.pem", "key.pem", "ca.pem", "ca-key.pem"};
    struct stat facts;
    bool any = false;
    bool good = true;
    if (stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode)) {
        return pki_show_show(path);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CADRE_FREE_AT_EXIT char *file = NULL;
        if (asprintf(&file, "%s/%s", path, names[i]) < 0) {
            file = NULL;
        } else if (access(file, F_OK) == 0) {
            any = true;
            good = pki_show_show(file) && good;
        }
    }
    if (!any) {
        printf("%s\n  wrong        none of cert.pem, key.pem and ca.pem is in this folder\n", path);
    }
    return any && good;
}

int pki_show(const struct cli *cli, int argc, char **argv)
{
    static const struct option_table table = {.program = "cadre pki show",
        .usage = "FILE|FOLDER...",
        .summary = "Prints what certificates and keys are: role, name, validity, fingerprint, and "
                   "what is wrong with them. A certificate is checked against the ca.pem beside "
                   "it. Of a folder its cert.pem, key.pem, ca.pem and ca-key.pem are shown.",
        .notes = "  cadre pki show /etc/cadre/tls\n  cadre pki show cert.pem key.pem\n",
        .positionals_max = 1000};
    char no_values = 0;
    struct invocation invocation;
    int code = CLI_DONE;
    if (invocation_open(&invocation, cli, &table, &no_values, argc, argv, &code)) {
        if (invocation_argument_count(&invocation) == 0) {
            code = invocation_usage(&invocation, "which files? `cadre pki show FILE|FOLDER...`");
        }
        for (int i = 0; i < invocation_argument_count(&invocation); i++) {
            code = show_all(invocation_argument(&invocation, i)) ? code : CLI_FAILED;
        }
        code = invocation_end(&invocation, code);
    }
    invocation_close(&invocation);
    return code;
}
