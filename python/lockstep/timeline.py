"""Timelines: when each action of some steps ran (`lockstep train --trace FILE.json`)."""

from __future__ import annotations

import json
from typing import Any

from lockstep.table import Table


class Timeline:
    """What workers did in some steps.

    events    a row for each action: name, kind, worker, lane ("compute", "communication"), step,
              begin and seconds (from the beginning of the first step), and where it has one layer
              (its name), bucket, virtual_worker, micro_batch, bytes
    """

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        self._other = content.get("otherData", {}) if isinstance(content, dict) else {}
        if self._other.get("format") != "lockstep timeline":
            raise ValueError(f"{path}: is no timeline of lockstep")
        self.path = path
        self.layers: list[str] = self._other["layers"]
        self.workers: int = self._other["nworkers"]
        self.label: str = self._other["label"]
        self.machine: str = self._other["machine"]
        events = [e for e in content["traceEvents"] if e["ph"] == "X"]
        self.events = Table.of_rows(self._row(event) for event in events)

    def _row(self, event: dict[str, Any]) -> dict[str, Any]:
        more = event["args"]
        row = {
            "name": event["name"],
            "kind": event["cat"],
            "worker": event["pid"],
            "lane": ("compute", "communication")[event["tid"]],
            "step": more["step"],
            "begin": event["ts"] * 1e-6,
            "seconds": event["dur"] * 1e-6,
        }
        if "layer" in more:
            row["layer"] = self.layers[more["layer"]]
        names = {"bucket": "bucket", "vw": "virtual_worker", "micro": "micro_batch"}
        row.update({name: more[key] for key, name in names.items() if key in more})
        if "bytes" in more:
            row["bytes"] = more["bytes"]
        return row

    def __repr__(self) -> str:
        return f"<Timeline {self.path!r}: {self.events.nrows} actions of {self.workers} workers>"
