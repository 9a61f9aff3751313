"""Where the programs come from: built from Go modules by `build.sh`, or named in KUBEBUILDER_ASSETS."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
STAGES = HERE / "kwok-stages.yaml"
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
ALL = (*CONTROL_PLANE, "kwok", "kueue")

# A program that is not ours outlives a killed test run; this shell ends it when its own parent changes.
TETHER = """
"$@" & child=$!
trap 'kill -KILL $child' TERM
while kill -0 $child 2>/dev/null; do
  read -r _ _ _ parent _ </proc/$$/stat
  [ "$parent" = "$KUBELAB_PARENT" ] || kill -KILL $child
  sleep 0.5
done
wait $child
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """How to start each program. ``built`` is the folder of `build.sh`; None where all come from ``assets``."""

    built: Path | None
    assets: Path | None = None

    def command(self, name: str) -> list[str]:
        """The words before a program's own arguments; ends with its parent, however that ends."""
        if self.assets is not None and (self.assets / name).is_file():
            return ["bash", "-c", TETHER, name, str(self.assets / name)]
        assert self.built is not None, f"{name}: neither in KUBEBUILDER_ASSETS nor built"
        kubelab = str(self.built / "kubelab")
        return [kubelab, name] if name in CONTROL_PLANE else [kubelab, "run", str(self.built / name)]

    @property
    def manifests(self) -> Path:
        """The CRDs of Kueue and Cluster API, and Kueue's webhooks."""
        if self.assets is not None and (self.assets / "manifests").is_dir():
            return self.assets / "manifests"
        assert self.built is not None, "no manifests in KUBEBUILDER_ASSETS, and nothing built"
        return self.built / "manifests"


def find_programs() -> Programs:
    """What KUBEBUILDER_ASSETS holds; the rest is built, or the running build waited for. RuntimeError if it fails."""
    named = os.environ.get("KUBEBUILDER_ASSETS", "")
    assets = Path(named) if named else None
    if assets is not None and all((assets / name).exists() for name in (*ALL, "manifests")):
        return Programs(built=None, assets=assets)
    build = subprocess.run([HERE / "build.sh"], capture_output=True, text=True, check=False)
    if build.returncode != 0:
        raise RuntimeError(f"tests/kubelab/build.sh failed ({build.returncode}):\n{build.stderr[-4000:]}")
    return Programs(built=Path(build.stdout.strip().splitlines()[-1]), assets=assets)
