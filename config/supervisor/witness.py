"""The witness of `make run`: a process of its own, with a folder of its own, that cosigns the ledger's heads. Somebody
else should run one in production; here it shows how that works."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path

from config.embedded.paths import StackPaths, make_private_folder
from config.supervisor.children import Child
from config.supervisor.environment import write_private
from config.supervisor.forkserver import ForkServer
from governance.sealing.rules.signing import SealingStopped, sealing_key_read
from sdk.holdpoint_witness import cosigner_key

NAME = "holdpoint.local/witness"


def witness_describe(*, paths: StackPaths, inherited: Mapping[str, str]) -> list[str] | None:
    """How it is started, after its facts were written for the settings (`config/settings/local.py`); None if somebody
    named other witnesses, or if the ledger's key is elsewhere."""
    if "HOLDPOINT_WITNESSES" in inherited or inherited.get("HOLDPOINT_LEDGER_SIGNER"):
        return None
    folder, name = paths.home / "witness", inherited.get("HOLDPOINT_LEDGER_NAME") or "holdpoint.local/ledger"
    make_private_folder(folder)
    try:
        log = sealing_key_read(
            name=name,
            text=inherited.get("HOLDPOINT_LEDGER_KEY", ""),
            file=inherited.get("HOLDPOINT_LEDGER_KEY_FILE") or str(paths.home / "ledger.key"),
            create=True,
        ).verifier
    except SealingStopped:
        return None
    state, facts = folder / "cosigner", folder / "cosigner.json"
    port = _port(facts)
    entry = {"kind": "cosign", "name": "local", "url": f"http://127.0.0.1:{port}", "verifier_key": _verifier(state)}
    write_private(facts, json.dumps(entry) + "\n")
    return ["witness", "serve", "--state", str(state), "--port", str(port), "--log", log]


def _verifier(state: Path) -> str:
    """Of its key, which is made here if there is none: the settings pin it before the witness runs."""
    make_private_folder(state)
    return str(cosigner_key(state, NAME if not (state / "key").exists() else "").public.text)


def _port(facts: Path) -> int:
    """The one of the last start if it is free: two people may have confirmed the witness by its address."""
    try:
        wanted = int(json.loads(facts.read_text())["url"].rpartition(":")[2])
    except (OSError, ValueError, KeyError, TypeError):
        wanted = 0
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    return wanted


def make_witness(*, paths: StackPaths, forkserver: ForkServer, arguments: list[str]) -> Child:
    return Child(name="witness", arguments=arguments, forkserver=forkserver, log=paths.logs / "witness.log")
