"""The process that speaks PKCS#11 for `signer_token`: one line of JSON per question. It is apart because a call into a
module's library cannot be ended, while a process can. Run by its path; it uses nothing of Holdpoint."""

import json
import sys
from base64 import b64decode, b64encode
from typing import Any

import pkcs11
import pkcs11.exceptions


def answer(asked: dict[str, Any]) -> dict[str, str]:
    """The public key's point, or a signature; `failed` names the class of an error. Its text may name slots and labels,
    so it is left out."""
    try:
        library = pkcs11.lib(asked["module"])
        # One session per question: a token that was restarted is found again by itself.
        with library.get_token(token_label=asked["token"]).open(user_pin=asked["pin"]) as session:
            done = _sign(session, asked) if asked["do"] == "sign" else _point(session, asked)
    except (pkcs11.exceptions.PKCS11Error, RuntimeError) as error:
        return {"failed": type(error).__name__.lower()}
    return {"done": b64encode(done).decode()}


def _point(session: Any, asked: dict[str, Any]) -> bytes:
    public = pkcs11.ObjectClass.PUBLIC_KEY
    key = session.get_key(object_class=public, key_type=pkcs11.KeyType.EC_EDWARDS, label=asked["label"])
    return bytes(key[pkcs11.Attribute.EC_POINT])


def _sign(session: Any, asked: dict[str, Any]) -> bytes:
    private = pkcs11.ObjectClass.PRIVATE_KEY
    key = session.get_key(object_class=private, key_type=pkcs11.KeyType.EC_EDWARDS, label=asked["label"])
    return bytes(key.sign(b64decode(asked["data"]), mechanism=pkcs11.Mechanism.EDDSA))


if __name__ == "__main__":
    # Ends when the asking process closes its side, also by dying.
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(json.loads(line))) + "\n")
        sys.stdout.flush()
