"""Hashes with our secret key, for values that are only compared and could be guessed: names and addresses.

Somebody who can only read the database cannot try candidates. After a change of SECRET_KEY old hashes match nothing.
"""

import hmac
from hashlib import sha256

from governance.outside.configured import secret_keys


def keyed_hash(text: str, *, purpose: str) -> str:
    # A key per purpose: a hash of one table says nothing about another one's.
    key = sha256(f"holdpoint {purpose}\x00{secret_keys()[0]}".encode()).digest()
    return hmac.new(key, text.encode(errors="surrogatepass"), sha256).hexdigest()
