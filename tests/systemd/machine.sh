# SPDX-License-Identifier: Apache-2.0
# A machine that boots systemd: a container of a docker daemon of our own, whose root file system mmdebstrap makes.
# Sourced by run. Everything of it lies in $work, but for the file system, which is kept in $cache.

packages_in_machine=systemd,systemd-sysv,dbus,procps,init-system-helpers,gcc,libc6-dev,cmake,ninja-build,pkg-config
packages_in_machine+=,libprotobuf-c-dev,libisal-dev,libxxhash-dev,libjansson-dev,libssl-dev
packages_in_machine+=,libcurl4-openssl-dev,libexpat1-dev
packages_in_machine+=,libgrpc29,libuv1,libsqlite3-0,libopenblas-dev,libmicrohttpd12
docker_program=/usr/bin/docker # Debian's, of the daemon's version

skip() {
    printf 'skipped: %s\n' "$1"
    exit 77
}

good() {
    printf 'good: %s\n' "$1"
}

# What it needs and this machine may not have.
machine_probe() {
    [ "$(id -u)" -eq 0 ] || skip "only root can make a root file system and start a docker daemon"
    local name
    for name in mmdebstrap dockerd cpack dpkg-deb; do
        command -v "$name" >/dev/null || skip "there is no $name (packages mmdebstrap, docker.io, cmake, dpkg-dev)"
    done
    [ -x "$docker_program" ] || skip "there is no $docker_program (package docker.io)"
    [ -d /sys/fs/cgroup/systemd ] || [ -f /sys/fs/cgroup/cgroup.controllers ] ||
        skip "no hierarchy of cgroups is mounted that systemd could use"
    (: >/sys/fs/cgroup/"$([ -d /sys/fs/cgroup/systemd ] && echo systemd/)"cgroup.procs) 2>/dev/null ||
        skip "cgroups cannot be written here"
}

docker() {
    timeout 180 "$docker_program" -H "unix://$work/docker.sock" "$@"
}

# within SECONDS COMMAND...: until it succeeds.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >"$work/within.log" 2>&1; do
        [ "$SECONDS" -lt "$end" ] || return 1
        read -rt 0.2 <> <(:) || true
    done
}

machine_daemon() {
    dockerd --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/dockerd.pid" \
        -H "unix://$work/docker.sock" --iptables=false --bridge=none \
        --cgroup-parent "/cadremachine$$" >"$work/dockerd.log" 2>&1 &
    dockerd_pid=$!
    within 60 docker version || skip "dockerd does not start here: $(tail -n 1 "$work/dockerd.log")"
}

# The root file system, made once.
machine_tar() {
    local tar=$cache/machine.tar name
    name=$(sha256sum <<<"$packages_in_machine")
    if [ ! -e "$tar" ] || [ "$(cat "$tar.of" 2>/dev/null)" != "$name" ]; then
        mkdir -p "$cache"
        mmdebstrap --quiet --variant=minbase --include="$packages_in_machine" bookworm "$cache/machine.part.tar" \
            "deb http://deb.debian.org/debian bookworm main" >"$work/mmdebstrap.log" 2>&1 ||
            skip "mmdebstrap cannot make a root file system: $(tail -n 1 "$work/mmdebstrap.log")"
        mv "$cache/machine.part.tar" "$tar"
        printf '%s\n' "$name" >"$tar.of"
    fi
}

machine_image() {
    machine_tar
    docker import "$cache/machine.tar" cadre-machine >/dev/null || fail "docker import $cache/machine.tar"
}

# The machine that the functions below are about.
machine=machine

is_up() {
    docker exec "$machine" systemctl is-system-running 2>/dev/null | grep -qE '^(running|degraded)'
}

# On SIGRTMIN+3 (halt) systemd stops services in order. The two capabilities are what it needs for the
# sandboxes of units, and has on a machine of its own.
machine_boot() {
    docker run -d --stop-signal SIGRTMIN+3 --name "$machine" --hostname "$machine" --network none \
        --cap-add SYS_ADMIN --cap-add SYS_PTRACE --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
        -v /sys/fs/cgroup:/sys/fs/cgroup:rw --cgroupns=host --tmpfs /run --tmpfs /tmp:exec -e container=docker \
        -v "$work/shared:/shared:ro" cadre-machine /sbin/init >"$work/boot.log" 2>&1 ||
        skip "a container cannot boot here: $(tail -n 1 "$work/boot.log")"
    within 60 is_up || skip "systemd does not come up in a container here"
}

# A reboot: systemd stops the services, and the machine starts again with its disk.
machine_reboot() {
    docker stop -t 120 "$machine" >/dev/null
    docker start "$machine" >/dev/null
    within 60 is_up
}

in_machine() {
    docker exec "$machine" bash -c "$1"
}

# What there is before the first package is installed, and what of it all is left when the last one is purged.
machine_files='{ find / -xdev -path /tmp -prune -o -path /proc -prune -o -path /sys -prune -o -path /run -prune \
    -o -path /srv -prune -o -path /var/log -prune -o -path /var/lib/dpkg -prune -o -path /var/cache -prune \
    -o -print | sort; cut -d: -f1 /etc/passwd /etc/group; }'
remember_files() {
    in_machine "$machine_files >/srv/before"
}

# The packages in the machine, as arguments of a command.
installed='$(dpkg-query -W -f "\${db:Status-Status} \${Package}\n" "cadre-*" "libcadre*" | sed -n "s/^[ic].* //p")'

purge_all() {
    in_machine "dpkg -P $installed" >"$work/dpkg.log" 2>&1 ||
        fail "dpkg -P: $(tail -n 5 "$work/dpkg.log")"
    local others='^[0-9,]+[acd][0-9,]+$|^---$|/var/lib/systemd|systemd-private-'
    others+='|/etc/(passwd|group|shadow|gshadow|subuid|subgid)-'
    in_machine "$machine_files | diff /srv/before -" | grep -vE "$others" >"$work/left"
    [ ! -s "$work/left" ] || fail "purge left on $machine: $(cat "$work/left")"
    good "$machine, purged: nothing is left"
}

machine_end() {
    if [ -n "${dockerd_pid-}" ]; then
        docker ps -aq | xargs -r "$docker_program" -H "unix://$work/docker.sock" rm -f >/dev/null 2>&1
        kill "$dockerd_pid" 2>/dev/null
        wait "$dockerd_pid" 2>/dev/null
    fi
    # Control groups of a name that is this test's own.
    find /sys/fs/cgroup -depth -type d -path "*/cadremachine$$*" -exec rmdir {} + 2>/dev/null
    mount | awk -v work="$work/" 'index($3, work) == 1 { print $3 }' | sort -r | xargs -r umount
    rm -rf "$work"
}
