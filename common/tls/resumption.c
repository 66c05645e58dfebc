/* SPDX-License-Identifier: Apache-2.0
 * The system default is a section of commands that OpenSSL applies to each SSL_CTX. Loading
 * another one replaces it, so the one that there is is read again, with ours behind it. */
#include "common/tls/resumption.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <openssl/bio.h>
#include <openssl/conf.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

/* Sections of ours have names that no file has by chance. */
#define OWN_MODULES "cadre_modules"
#define OWN_SSL     "cadre_ssl"
#define OWN_DEFAULT "cadre_system_default"

/* The section of the file's system default, as the file names it; NULL: it has none. */
static const char *find_system_default(const CONF *conf)
{
    const char *modules = NCONF_get_string(conf, NULL, "openssl_conf");
    const char *ssl = modules != NULL ? NCONF_get_string(conf, modules, "ssl_conf") : NULL;
    return ssl != NULL ? NCONF_get_string(conf, ssl, "system_default") : NULL;
}

/* A configuration that consists of the file's system default and of what disables resumption:
 * no tickets of TLS 1.3 (NumTickets), none of TLS 1.2 (SessionTicket). The prefix of a command is
 * dropped by OpenSSL, and keeps it apart from one of the file. Freed with free(). */
static char *write_text(const char *config_file)
{
    char *text = NULL;
    CONF *conf = NCONF_new(NULL);
    const char *section = NULL;
    if (conf != NULL && config_file != NULL && NCONF_load(conf, config_file, NULL) > 0) {
        section = find_system_default(conf);
    }
    int length = asprintf(&text,
        "cadre = " OWN_MODULES "\n%s%s\n[" OWN_MODULES "]\nssl_conf = " OWN_SSL "\n[" OWN_SSL
        "]\nsystem_default = %s\n[%s]\ncadre.NumTickets = 0\ncadre.Options = -SessionTicket\n",
        section != NULL ? ".include " : "", section != NULL ? config_file : "",
        section != NULL ? section : OWN_DEFAULT, section != NULL ? section : OWN_DEFAULT);
    NCONF_free(conf);
    ERR_clear_error(); /* of a file that is not there, or has no such section */
    return length < 0 ? NULL : text;
}

static bool load(const char *text)
{
    CONF *conf = NCONF_new(NULL);
    BIO *memory = BIO_new_mem_buf(text, -1);
    bool loaded = conf != NULL && memory != NULL && NCONF_load_bio(conf, memory, NULL) > 0 &&
                  CONF_modules_load(conf, "cadre", 0) > 0;
    BIO_free(memory);
    NCONF_free(conf);
    return loaded;
}

cadre_status tls_resumption_disable(const char *config_file, struct cadre_error *error)
{
    char *default_file = NULL;
    if (OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, NULL) != 1) {
        return cadre_error_set(error, CADRE_INTERNAL, "OpenSSL does not start");
    }
    if (config_file == NULL) {
        default_file = CONF_get1_default_config_file();
    }
    char *text = write_text(config_file != NULL ? config_file : default_file);
    OPENSSL_free(default_file);
    if (text == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to configure TLS");
    }
    bool loaded = load(text);
    free(text);
    char reason[160];
    unsigned long code = ERR_get_error();
    ERR_error_string_n(code, reason, sizeof reason);
    ERR_clear_error();
    return loaded ? CADRE_OK
                  : cadre_error_set(error, CADRE_INTERNAL,
                        "OpenSSL does not disable the resumption of TLS sessions: %s", reason);
}
