"""A service that asks before it acts.

    HOLDPOINT_URL=… HOLDPOINT_KEY=… HOLDPOINT_EXECUTOR_KEY=… python plain_service.py invoice-17 [--contract demo-hold]

Run it twice with the same invoice: it is sent once. Kill it at any point and run it again: it is sent at most once.
"""

import argparse
import hashlib
import sys

from holdpoint_client import (
    Action,
    AlreadyDone,
    DeniedError,
    HeldError,
    Holdpoint,
    OutcomeUnknown,
    Success,
    current_lease,
    governed,
)


def send(invoice: str) -> str:
    """Your own side effect: here it is a line on the screen. What you call gets `effect_key` as its idempotency key."""
    print(f"sending {invoice} under the key {current_lease().effect_key}", flush=True)
    return f"receipt-{invoice}"


def proposed(invoice: str) -> Action:
    """What a reviewer sees: what is done to what, by reference and hash. Never the content."""
    content = f"the document behind {invoice}".encode()
    return Action(
        operation="invoice.send",
        target_ref=invoice,
        risk_tier="low",
        payload_ref=f"invoices/{invoice}",
        payload_sha256=hashlib.sha256(content).hexdigest(),
        fields=("sent_at",),
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("invoice")
    parser.add_argument("--contract", default="demo-allow")
    parser.add_argument("--wait", type=float, default=60.0, help="seconds for people to decide")
    options = parser.parse_args()
    with Holdpoint() as client:
        governed_send = governed(
            client,
            contract=options.contract,
            ref=lambda invoice: f"{invoice}/send",
            action=proposed,
            patient_context_ref=lambda invoice: f"ctx-{invoice}",
            report=lambda receipt: Success({"receipt": receipt}),
            wait=options.wait,
        )(send)
        try:
            print(f"done: {governed_send(options.invoice)}")
        except AlreadyDone as before:
            print(f"done before: {before}")
        except HeldError as held:
            print(f"held: {held}; run this again later")
            return 3
        except DeniedError as denied:
            print(f"denied: {denied}")
            return 1
        except OutcomeUnknown as unknown:
            print(f"unknown: {unknown}; ask an operator, do not send it again")
            return 4
    return 0


if __name__ == "__main__":
    sys.exit(main())
