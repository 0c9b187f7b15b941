"""Requests to an identity provider (discovery, keys, token, user info), in the shape that allauth expects, through the
guard that keeps them out of the internal network."""

from typing import Any

import httpcore
import httpx
import requests
from requests.structures import CaseInsensitiveDict

from governance.identity.configured import private_hosts
from governance.outside.http import AddressRefused, GuardedBackend, guarded_client, url_check

SECONDS = 10.0
MOST_BYTES = 512 * 1024  # a key set or a discovery document has some kilobytes


class GuardedSession:
    """One exchange per call. Redirects are not followed: the answer would come from an address that nobody chose."""

    def __enter__(self) -> "GuardedSession":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def get(self, url: str, **options: Any) -> requests.Response:
        return self.request("GET", url, **options)

    def request(
        self,
        method: str,
        url: str,
        *,
        params: Any = None,
        data: Any = None,
        headers: Any = None,
        auth: Any = None,
        **_: Any,
    ) -> requests.Response:
        try:
            hosts = private_hosts()
            url_check(url, private_hosts=hosts)
            backend = GuardedBackend(private_hosts=hosts, seconds=SECONDS)
            with (
                guarded_client(backend) as client,
                client.stream(method, url, params=params, data=data, headers=headers, auth=auth) as answer,
            ):
                return _response(answer)
        except (httpx.HTTPError, httpcore.NetworkError, httpcore.TimeoutException, AddressRefused, OSError) as error:
            # allauth handles the errors of `requests`. The text of ours may contain an address.
            raise requests.ConnectionError("the provider could not be asked") from error


def _response(answer: httpx.Response) -> requests.Response:
    body = b""
    for part in answer.iter_bytes():
        body += part
        if len(body) > MOST_BYTES:
            raise requests.ConnectionError("the provider's answer is too long")
    made = requests.Response()
    made.status_code = answer.status_code
    # A redirect that is not followed must not be read as an answer.
    if 300 <= made.status_code < 400:
        raise requests.ConnectionError("the provider redirected the request")
    made._content = body
    made.headers = CaseInsensitiveDict(answer.headers)
    made.encoding = "utf-8"
    return made
