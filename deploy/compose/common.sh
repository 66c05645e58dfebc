# SPDX-License-Identifier: Apache-2.0
# What the scripts here share; sourced by those that set $here and $root.

# Where the compiler's results and the base lie; kept between calls, until "down --purge".
build=$(realpath -m -- "${CADRE_COMPOSE_BUILD:-$root/build-compose}")
build_mark=$build/made-by-deploy-compose
project=${CADRE_PROJECT:-cadre}
# For clients outside of the containers; each cluster has an authority of its own.
client=$build/client
[ "$project" = cadre ] || client=$build/client-$project
tag=cadre:latest
base=cadre-base:bookworm
image_label=cadre.image # every image that build-image makes has it

# shellcheck source=../report.sh
. "$root/deploy/report.sh"

# May "down --purge" remove $build? Not what a user named and what held other files before.
build_is_ours() {
    [ -e "$build_mark" ] || [ "$build" = "$(realpath -m -- "$root/build-compose")" ] ||
        [ -z "$(ls -A "$build" 2>/dev/null)" ]
}

# Names what is missing, and how to install it.
check_docker() {
    command -v docker >/dev/null ||
        fail "docker is not installed: apt-get install docker.io docker-compose mmdebstrap"
    local said
    said=$(docker version --format '{{.Server.Version}}' 2>&1) && return
    case "$said" in
    *"ermission denied"*) fail "docker refuses this user: be root, or of the group docker ($said)" ;;
    esac
    local start="dockerd >/var/log/dockerd.log 2>&1 &    (in a shell of root)"
    [ ! -d /run/systemd/system ] || start="systemctl start docker"
    fail "no docker daemon answers at ${DOCKER_HOST:-unix:///var/run/docker.sock}. Start it:
  $start
It said: $said"
}

# compose: the arguments before every command to the cluster.
#   find_compose [ha]      with the services of several coordinators
find_compose() {
    if docker compose version >/dev/null 2>&1; then
        compose=(docker compose --compatibility) # names of containers as those of docker-compose
    elif command -v docker-compose >/dev/null; then
        compose=(docker-compose)
    else
        fail "docker has no compose: apt-get install docker-compose"
    fi
    compose+=(--project-name "$project" --file "$here/docker-compose.yml")
    [ "${1-}" != ha ] || compose+=(--file "$here/high-availability.yml")
    [ -z "${CADRE_OVERRIDE-}" ] || compose+=(--file "$CADRE_OVERRIDE")
}
