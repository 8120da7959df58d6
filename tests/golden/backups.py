#!/usr/bin/env python3
"""Vectors of docs/protocol/backups.md, by an implementation that shares nothing with runtime/backup/archive.ts.

    backups.py    prints tests/golden/backups.json
"""
import hashlib
import hmac
import json
import sys

sys.dont_write_bytecode = True

from tokens import hkdf  # noqa: E402


def backup(secret, manifest, contents):
    parts = [{"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
             for name, content in contents]
    text = json.dumps({**manifest, "parts": parts}, ensure_ascii=False, separators=(",", ":")).encode()
    head = b"sojourn backup 1\n" + len(text).to_bytes(4, "big") + text
    mac = hmac.new(hkdf(secret, b"sojourn backup key", 32), head, hashlib.sha256).digest()
    return head + mac + b"".join(content for _, content in contents)


def vectors():
    newest, older = b"the newest secret of a cluster", b"an older secret of this cluster"
    root = {"site": "cloud", "parent": None, "tier": "root", "engine": "denokv"}
    edge = {"site": "edge-1", "parent": "core-1", "tier": "edge", "engine": "sqlite"}
    cases = [
        ("of a root", root, [newest],
         [("homes/SOJOURN", b"sojourn storage: sqlite 2\n"), ("homes/rows.db", bytes(range(256)) * 3),
          ("arbiter/rows.db", b"rows"), ("store/disk", b"a name\n"), ("store/root.kv", b"\0" * 100)]),
        ("of an edge that was given another parent, while the secret is changed", edge, [newest, older],
         [("parent.json", b'{"parent":{}}\n'), ("ended/rows.db", b""), ("store/rows.db", b"\xff")]),
    ]
    return {
        "backups": [
            {"says": says, "secret": secrets[0].hex(), "secrets": [secret.hex() for secret in secrets],
             "contents": {name: content.hex() for name, content in contents},
             "file": backup(secrets[0], {
                 **site, "release": "1.0.0", "at": "2026-11-23T10:00:00.000Z", "cut": f"{number:032x}",
                 "incarnation": number + 1, "position": 812, "pending": number,
                 "secrets": [hkdf(secret, b"sojourn backup fingerprint", 8).hex() for secret in secrets],
             }, contents).hex()}
            for number, (says, site, secrets, contents) in enumerate(cases)
        ],
    }


if __name__ == "__main__":
    print(json.dumps(vectors(), indent=1))
