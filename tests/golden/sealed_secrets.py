#!/usr/bin/env python3
"""Vectors of docs/protocol/secrets.md, by an implementation that shares nothing with runtime/secrets/sealing.ts.

    sealed_secrets.py    prints tests/golden/sealed_secrets.json
"""
import base64
import json
import sys

sys.dont_write_bytecode = True

from tokens import gcm, hkdf  # noqa: E402

FORMAT = b"\1"


def seal(secret, app, name, value, iv):
    head = FORMAT + hkdf(secret, b"sojourn secret key id", 4)
    body, tag = gcm(hkdf(secret, b"sojourn secret key", 32), iv, head + app.encode() + b"\0" + name.encode(),
                    value.encode(), False)
    return base64.urlsafe_b64encode(head + iv + body + tag).rstrip(b"=").decode()


def vectors():
    secrets = [b"the newest secret of a cluster", b"an older secret of this cluster"]
    cases = [
        ("a word", 0, "shop", "SMS_KEY", "correct horse battery staple"),
        ("one character", 0, "shop", "A", "x"),
        ("text that is not ASCII", 0, "s", "PEPPER", "Pfeffer \u2013 \U0001F336"),
        ("several lines", 0, "shop", "PRIVATE_KEY", "-----BEGIN KEY-----\nMC4CAQ\n-----END KEY-----\n"),
        ("under the older secret", 1, "shop", "SMS_KEY", "correct horse battery staple"),
    ]
    return {
        "secrets": [secret.hex() for secret in secrets],
        "sealed": [
            {"says": says, "app": app, "name": name, "value": value, "iv": iv.hex(), "key": key,
             "sealed": seal(secrets[key], app, name, value, iv)}
            for number, (says, key, app, name, value) in enumerate(cases)
            for iv in [bytes([number] * 12)]
        ],
    }


if __name__ == "__main__":
    print(json.dumps(vectors(), indent=1))
