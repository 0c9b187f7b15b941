"""A witness in a Django storage: one object per head, named by epoch and size. No object is overwritten."""

from collections.abc import Callable, Iterator
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import storages

from governance.sealing.adapters.base import WitnessFailed


def _object_name(prefix: str, *, size: int, epoch: int) -> str:
    """The name of a head's object: folders of three digits each."""
    # Fixed width, so that names sort by size; small folders, so that the newest is found with a few short listings.
    digits = f"{size:015d}"
    parts = [digits[start : start + 3] for start in range(0, 12, 3)]
    return "/".join([*([prefix] if prefix else []), f"{epoch:06d}", *parts, f"{digits}.txt"])


class StorageWitness:
    """`alias` is one of STORAGES."""

    def __init__(self, *, name: str, alias: str, prefix: str) -> None:
        self.name = name
        self.alias = alias
        self.prefix = prefix.strip("/")

    @property
    def _storage(self) -> Any:
        return storages[self.alias]

    def push(self, text: str, *, size: int, epoch: int) -> None:
        name = _object_name(self.prefix, size=size, epoch=epoch)
        # Django's storages save under another name if one is taken, or overwrite it: both would hide a second history.
        if self._call(lambda: self._storage.exists(name)):
            if self._read(name) != text:
                raise WitnessFailed("another_head_is_there", refused=True)
            return
        self._call(lambda: self._storage.save(name, ContentFile(text.encode())))

    def newest(self) -> list[str]:
        folder = self.prefix
        while True:
            folders, files = self._listed(folder)
            if files:
                return [self._read(f"{folder}/{files[-1]}")]
            if not folders:
                return []
            folder = f"{folder}/{folders[-1]}" if folder else folders[-1]

    def heads(self) -> Iterator[str]:
        yield from self._walk(self.prefix)

    def _walk(self, folder: str) -> Iterator[str]:
        folders, files = self._listed(folder)
        for name in files:
            yield self._read(f"{folder}/{name}")
        for name in folders:
            yield from self._walk(f"{folder}/{name}" if folder else name)

    def _listed(self, folder: str) -> tuple[list[str], list[str]]:
        try:
            folders, files = self._call(lambda: self._storage.listdir(folder))
        except WitnessFailed as error:
            # A folder that does not exist yet means no heads. Object stores have no folders and return an empty list.
            if isinstance(error.__cause__, FileNotFoundError):
                return [], []
            raise
        return sorted(folders), sorted(name for name in files if name.endswith(".txt"))

    def _read(self, name: str) -> str:
        def read() -> str:
            with self._storage.open(name) as stream:
                return str(stream.read().decode(errors="replace"))

        return str(self._call(read))

    @staticmethod
    def _call(operation: Callable[[], Any]) -> Any:
        """Run an operation; any error of the storage becomes WitnessFailed."""
        try:
            return operation()
        # Everything: each storage raises its own classes, which are not known here.
        except Exception as error:
            raise WitnessFailed(f"storage_{type(error).__name__}"[:64]) from error
