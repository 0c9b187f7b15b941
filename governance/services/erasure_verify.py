"""Checks that every payload that is gone was erased by an order, and that the ledger says so. Reads only."""

from dataclasses import dataclass, field

from django.db import connection

from governance.services.erasure import entries_digest

COUNT = "SELECT count(*) FROM governance_erasedpayload"
UNORDERED = """
SELECT entry.id FROM governance_ledgerentry entry
LEFT JOIN governance_erasedpayload erased ON erased.entry_id = entry.id
WHERE (entry.payload IS NULL OR entry.nonce IS NULL) AND erased.entry_id IS NULL ORDER BY entry.id
"""
STILL_THERE = """
SELECT erased.entry_id FROM governance_erasedpayload erased
JOIN governance_ledgerentry entry ON entry.id = erased.entry_id WHERE entry.payload IS NOT NULL ORDER BY 1
"""
BY_ITEM = """
SELECT item.id, array_agg(erased.entry_id ORDER BY erased.entry_id), (
    SELECT entry.payload ->> 'entries_sha256' FROM governance_ledgerentry entry
    WHERE entry.subject_id = item.subject_id AND entry.action = 'erasure.done'
        AND entry.payload ->> 'item' = item.id::text)
FROM governance_erasedpayload erased JOIN governance_erasureitem item ON item.id = erased.item_id
GROUP BY item.id ORDER BY item.id
"""


@dataclass(slots=True)
class Erasures:
    """`count` payloads were erased by order; `wrong` names what does not fit."""

    count: int = 0
    wrong: list[str] = field(default_factory=list)


def erasures_verify() -> Erasures:
    with connection.cursor() as cursor:
        cursor.execute(COUNT)
        found = Erasures(count=cursor.fetchone()[0])
        cursor.execute(UNORDERED)
        found.wrong += [f"the payload of entry {row[0]} is gone without an order" for row in cursor.fetchall()]
        cursor.execute(STILL_THERE)
        found.wrong += [f"the payload of entry {row[0]} counts as erased and is there" for row in cursor.fetchall()]
        cursor.execute(BY_ITEM)
        for item_id, entries, said in cursor.fetchall():
            if said != entries_digest(entries):
                found.wrong.append(f"erasure {item_id}: other payloads are gone than the ledger says")
    return found
