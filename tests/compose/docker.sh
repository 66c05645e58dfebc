# SPDX-License-Identifier: Apache-2.0
# A docker to test with: the one that answers already, or one of our own for as long as the test runs, in a network
# namespace and a mount namespace that vanish with it. Sourced; sets DOCKER_HOST.

docker_pid=
docker_folder=
docker_cgroup=/cadretest$$

skip() {
    printf 'skipped: %s\n' "$1"
    exit 77
}

# Sets `inside`, the words that run a command where published ports are.
docker_probe() {
    local name
    [ "$(id -u)" -eq 0 ] || skip "containers are started by root only"
    for name in docker mmdebstrap unshare nsenter ip; do
        command -v "$name" >/dev/null || skip "there is no $name: apt-get install docker.io mmdebstrap iproute2"
    done
    docker compose version >/dev/null 2>&1 || command -v docker-compose >/dev/null ||
        skip "docker has no compose: apt-get install docker-compose"
    inside=()
    ! docker version >/dev/null 2>&1 || return 0
    command -v dockerd >/dev/null || skip "no docker daemon answers, and there is no dockerd to start"
    # Its sockets have long names, and those of Unix sockets are limited.
    docker_folder=$(mktemp -d /tmp/cadre-docker.XXXX) || skip "no folder can be made in /tmp"
    export DOCKER_HOST=unix://$docker_folder/sock
    docker_try || docker_try --iptables=false --ip6tables=false || {
        tail -n 3 "$docker_folder/log"
        docker_stop
        skip "dockerd does not start here; the lines above are its last"
    }
    inside=(nsenter --target "$docker_pid" --net)
}

# docker_try OPTION...
docker_try() {
    # unshare and sh become dockerd, so that the pid is its.
    setsid unshare --net --mount sh -c 'ip link set lo up; exec dockerd "$@"' dockerd "$@" \
        --data-root "$docker_folder/data" --exec-root "$docker_folder/exec" --pidfile "$docker_folder/pid" \
        --cgroup-parent "$docker_cgroup" --host "$DOCKER_HOST" >"$docker_folder/log" 2>&1 </dev/null &
    docker_pid=$!
    local end=$((SECONDS + 30))
    until docker version >/dev/null 2>&1; do
        if ! kill -0 "$docker_pid" 2>/dev/null || [ "$SECONDS" -ge "$end" ]; then
            kill -9 "$docker_pid" 2>/dev/null
            wait "$docker_pid" 2>/dev/null
            return 1
        fi
        wait_a_moment
    done
    printf 'dockerd %s: started for this test, %s, %s\n' "$*" \
        "$(docker info -f '{{.ServerVersion}}, {{.Driver}}' 2>/dev/null)" "$docker_folder"
}

docker_stop() {
    [ -n "$docker_folder" ] || return 0
    kill -TERM "$docker_pid" 2>/dev/null
    wait "$docker_pid" 2>/dev/null
    rm -rf --one-file-system "$docker_folder"
    # What it made outside of its namespaces: cgroups of a name that is the test's own.
    find /sys/fs/cgroup -depth -type d -path "*$docker_cgroup*" -exec rmdir {} + 2>/dev/null
    return 0
}
