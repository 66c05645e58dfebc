/* SPDX-License-Identifier: Apache-2.0
 * The echo over a Unix socket that libuv serves, as a worker serves its tasks. */
#ifndef CADRE_BENCH_UV_ECHO_H
#define CADRE_BENCH_UV_ECHO_H

struct uv_loop_s;

void uv_echo_open(struct uv_loop_s *uv, const char *path);

#endif
