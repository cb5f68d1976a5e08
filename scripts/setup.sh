# What ./demo and ./check share: options, packages, configuring, building. Sourced, POSIX sh.

install=yes    # --no-install
device=auto    # --cpu, --with-cuda
clean=no       # --clean
started=$(date +%s)

say() { printf '%s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }
phase() { say "[$(($(date +%s) - started)) s] $*"; }

parse_options() {
  for option in "$@"; do
    case $option in
      --no-install) install=no ;;
      --cpu) device=cpu ;;
      --with-cuda) device=cuda ;;
      --clean) clean=yes ;;
      -h | --help) usage; exit 0 ;;
      *) usage >&2; fail "unknown option '$option'" ;;
    esac
  done
}

has() { command -v "$1" >/dev/null 2>&1; }

# Debian's and Ubuntu's names.
packages() {
  echo g++ cmake ninja-build libyaml-cpp-dev libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libxxhash-dev zlib1g-dev libdnnl-dev libstb-dev "$@"
}

missing_packages() {
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || printf '%s ' "$package"
  done
}

# install_packages [MORE...]: what is missing of packages() and MORE.
install_packages() {
  if ! has dpkg-query; then
    say "not a Debian or Ubuntu system: install the equivalents of: $(packages "$@")"
    return
  fi
  # shellcheck disable=SC2046
  missing=$(missing_packages $(packages "$@"))
  [ -n "$missing" ] || return 0
  command="apt-get install -y --no-install-recommends $missing"
  [ "$(id -u)" = 0 ] || command="sudo $command"
  if [ "$install" = no ]; then
    say "missing packages; to install them:"
    printf '%s\n' "$command"
    exit 1
  fi
  if [ "$(id -u)" != 0 ] && ! has sudo; then fail "missing packages and no sudo; as root: $command"; fi
  phase "installing $missing"
  sudo=; [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo apt-get update -qq || say "apt-get update failed; going on with the lists that are there"
  # shellcheck disable=SC2086
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2 || fail "could not install: $missing"
}

# The CUDA side is built where a GPU answers; a toolkit alone must not make anybody wait for nvcc.
cuda_option() {
  case $device in
    cpu) echo OFF ;;
    cuda) echo ON ;;
    *) if has nvcc && has nvidia-smi && nvidia-smi -L >/dev/null 2>&1; then echo ON; else echo OFF; fi ;;
  esac
}

# configure BUILD [CMAKE-OPTION...]; TWIDDLE_CMAKE_ARGS adds to them.
configure() {
  build=$1; shift
  [ "$clean" = no ] || rm -rf "$build"
  phase "configuring $build"
  generator=; if has ninja && [ ! -e "$build/CMakeCache.txt" ]; then generator='-G Ninja'; fi
  # shellcheck disable=SC2086
  cmake -S . -B "$build" $generator -DCMAKE_BUILD_TYPE=Release "$@" ${TWIDDLE_CMAKE_ARGS-} >"${build%/*}/configure.log" 2>&1 || {
    cat "${build%/*}/configure.log" >&2
    fail "configuring failed; --clean starts afresh"
  }
}

# build_targets BUILD [TARGET...]: all without a target.
build_targets() {
  build=$1; shift
  phase "building ${*:-everything}"
  jobs=$(nproc 2>/dev/null || echo 2)
  if [ $# -gt 0 ]; then set -- --target "$@"; fi
  cmake --build "$build" --parallel "$jobs" "$@" >&2 || fail "the build failed"
}
