"""The shape of a typed fact in answers of the API."""

from typing import Any

from rest_framework import serializers


class ShownFactOut(serializers.Serializer[Any]):
    """A typed fact that the contract declares. The approval is bound to its value."""

    name = serializers.CharField()
    type = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    value = serializers.JSONField(help_text="As the caller sent it.")
    text = serializers.CharField(help_text="As people read it, such as `149.00 EUR`.")
