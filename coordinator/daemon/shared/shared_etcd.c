/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/shared/shared_etcd.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"

#define PASSWORD_BYTES_MAX 1024

cadre_status shared_etcd_open(struct rpc_loop *loop, const struct ha_options *options,
    struct shared_etcd *ret_etcd, struct cadre_error *error)
{
    struct etcd_address address;
    CADRE_FREE_AT_EXIT char *password = NULL;
    size_t size = 0;
    bool tls = options->tls.ca != NULL;
    CADRE_TRY(etcd_address_parse(options->address, tls, &address, error));
    CADRE_TRY(rpc_tls_open_foreign(loop, &options->tls, rpc_tls_log, NULL, &ret_etcd->tls, error));
    if (options->password_file != NULL) {
        CADRE_TRY(file_read(options->password_file, PASSWORD_BYTES_MAX, &password, &size, error));
        password[strcspn(password, "\r\n")] = '\0';
    }
    const struct etcd_options etcd_options = {
        .address = &address, .tls = ret_etcd->tls, .user = options->user, .password = password};
    return etcd_open(loop, &etcd_options, &ret_etcd->etcd, error);
}

void shared_etcd_close(struct shared_etcd *etcd)
{
    etcd_close(etcd->etcd);
    rpc_tls_close(etcd->tls);
    *etcd = (struct shared_etcd){0};
}
